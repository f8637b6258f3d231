/* SPDX-License-Identifier: Apache-2.0 */
/* The session region: its geometry, and the touch ring in it. */
#ifndef KVP_SHM_SESSION_H
#define KVP_SHM_SESSION_H

#include "base/atomic.h"
#include "shm/layout.h"

#define SESSION_HAZARDS_MAX 65536u
#define SESSION_TOUCHES_MAX 65536u

/*
 * A session region as pointers. The daemon keeps one with counts of its own; a client makes one
 * from the header.
 */
struct session_map {
	struct session_header *head;
	uint64_t *hazard;
	struct touch *touch;
	uint32_t hazard_count;
	uint32_t touch_count; /* a power of two */
};

/* Bytes of a region; 0 when a count is out of bounds (touches must be a power of two). */
uint64_t session_size(uint32_t hazards, uint32_t touches);

/* Lays out zeroed memory of session_size() bytes. */
void session_format(void *base, uint64_t session, uint32_t hazards, uint32_t touches);

/* For the daemon: pointers by the counts that it chose itself, whatever the region says. */
void session_map_trusted(void *base, uint32_t hazards, uint32_t touches, struct session_map *m);

/* For the client: pointers by the header. Returns NULL, or what is wrong with the region. */
const char *session_attach(void *base, uint64_t size, struct session_map *m);

/* The field of a record, and what is in it. */
static inline uint32_t touch_reason_tail(uint32_t reason, uint32_t tail)
{
	return tail << 8 | reason;
}

static inline uint32_t touch_reason(const struct touch *t)
{
	return t->reason_tail & 0xff;
}

static inline uint32_t touch_tail(const struct touch *t)
{
	return t->reason_tail >> 8;
}

/*
 * Appends a record; t->seq is ignored. Any thread of the client, no lock; overwrites the oldest
 * when the ring is full. Two threads that are a whole ring apart in the same record can mix it: the
 * daemon takes a record for a hint, never for a fact. (tests/models/touch.pml)
 */
void touch_push(const struct session_map *m, const struct touch *t);

/*
 * The daemon's side. *place is how many records it has seen; the region is not trusted. Returns 1
 * and *ret when there is a record, 0 when there is none at the moment. Records that were
 * overwritten or not yet whole when their turn came add to *lost. A head that jumps out of all
 * proportion or steps back counts as one lost record: the reader then starts at the new head. A
 * hostile client can raise its head as fast as records are taken: the caller bounds how many it
 * takes in one go. *ret is a copy, and every field of it may be anything.
 */
int touch_pop(const struct session_map *m, uint64_t *place, uint64_t *lost, struct touch *ret);

static inline void session_count(const struct session_map *m, enum session_counter c, uint64_t n)
{
	add_relaxed(&m->head->counter[c], n);
}

#endif
