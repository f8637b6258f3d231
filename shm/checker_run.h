/* SPDX-License-Identifier: Apache-2.0 */
/* A check under way: what the files of the checker share, and nobody else includes. */
#ifndef KVP_SHM_CHECKER_RUN_H
#define KVP_SHM_CHECKER_RUN_H

#include "shm/checker.h"
#include "shm/control.h"

#define CHECKER_NO_NUMBER UINT64_MAX

struct checker_run {
	const struct checker *k;
	struct control c;
	uint64_t pool_units; /* slot units of the pool */
	/* Bits in the caller's scratch: */
	uint64_t *listed;    /* descriptors that an entry names */
	uint64_t *taken;     /* slot units that a block has */
	uint32_t findings;
};

/* A number in words: NS_NONE, SLOT_NONE and DESC_NONE are "none". */
struct checker_number {
	char text[12];
};

struct checker_number checker_number(uint32_t n);

/* A finding: format is the text behind "WHERE NUMBER: ". */
__attribute__((format(printf, 4, 5)))
void checker_found(struct checker_run *r, const char *where, uint64_t number, const char *format,
		   ...);

/* True when no further finding is wanted. */
static inline int checker_full(const struct checker_run *r)
{
	return r->findings >= r->k->max_findings;
}

static inline int checker_quiet(const struct checker_run *r)
{
	return r->k->mode == CHECKER_QUIET;
}

/* True when ns is an open namespace whose numbers are sound. */
int checker_ns_sound(const struct checker_run *r, uint32_t ns);

const char *checker_state_name(enum desc_state state);

/* The parts: index entries, then descriptors (which need to know what is listed), and sessions. */
void checker_index(struct checker_run *r);
void checker_descs(struct checker_run *r);
void checker_session(struct checker_run *r, uint32_t i);

#endif
