/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks at which lookups end most often: a table of fixed size (space-saving: a block that is
 * not in a full table takes the place of the one with the least hits, and counts on from there, so
 * that what is used often comes in and stays).
 *
 * It knows a block by number and gen only; whether that one is still there is its caller's to know.
 */
#ifndef KVP_DAEMON_PREFIXES_H
#define KVP_DAEMON_PREFIXES_H

#include <stdint.h>

#define PREFIXES_MAX 1024u

struct prefix {
	uint64_t gen;
	uint32_t desc;
	uint32_t ns;
	uint32_t next;   /* of the same hash */
	uint32_t place;  /* in the heap */
	uint64_t weight; /* hits, and those of whom it took the place of */
	uint64_t hits, hit_tokens;
	uint64_t readers;     /* a bit each, by a hash of their sessions */
	uint64_t first, used; /* when */
};

struct prefixes {
	uint32_t n;
	uint32_t since_sweep; /* places that were taken since the last one */
	uint32_t bucket[PREFIXES_MAX];
	uint32_t heap[PREFIXES_MAX]; /* the least weight first */
	struct prefix entry[PREFIXES_MAX];
};

void prefixes_init(struct prefixes *t);

/* A lookup of a session ended at that block, with so many tokens. */
void prefixes_hit(struct prefixes *t, uint32_t desc, uint64_t gen, uint32_t ns, uint64_t session,
		  uint64_t tokens, uint64_t now);

/* NULL when it is not in the table. */
const struct prefix *prefixes_find(const struct prefixes *t, uint32_t desc, uint64_t gen);

/* Clients that read it, up to 64; 0 for NULL. */
uint32_t prefixes_readers(const struct prefix *e);

/* True when the table is full of what was not looked at for long: time for prefixes_sweep. */
int prefixes_wants_sweep(const struct prefixes *t);

/* Takes out what is gone. */
void prefixes_sweep(struct prefixes *t, int (*is_there)(const void *ctx, const struct prefix *e),
		    const void *ctx);

#endif
