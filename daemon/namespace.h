/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: what the pool knows of each, and the table that they stand in. */
#ifndef KVP_DAEMON_NAMESPACE_H
#define KVP_DAEMON_NAMESPACE_H

#include "daemon/extent.h"
#include "policy/lru.h"
#include "policy/priority.h"

struct namespace
{
	uint8_t *desc; /* canonical bytes; NULL: this number is of no namespace */
	size_t n_desc;
	char *model;
	uint8_t seed[KEY_BYTES];
	uint32_t number;
	uint32_t block_tokens;
	uint64_t block_bytes, stride;
	uint32_t holds;

	struct extent_set extents;
	struct lru lru;                 /* its leaves */
	uint32_t lru_room;              /* blocks that fit the heap: its slots */
	uint32_t roots;                 /* first blocks of its chains */
	uint32_t flush_roots;           /* those that a flush has not come to yet */
	int flushing;                   /* a flush is under way */
	uint32_t flush;                 /* the number of the last one */
	uint64_t flush_kept;            /* blocks that it doomed and that are still there */
	uint64_t n[DESC_STATE_MAX + 1]; /* blocks by state, but FREE and EVICTING */
	uint64_t n_unnamed;             /* of those RESERVED */

	uint64_t lookups, asked_tokens, hit_tokens;
	uint64_t missed[MISS_MAX + 1]; /* tokens, by enum miss_reason */
	uint64_t used;   /* when */
	uint64_t ttl_ns; /* blocks that nobody used for longer expire; 0: never */
	uint32_t priority;
	uint64_t expired;       /* blocks, since it was opened */
	uint64_t pinned;        /* blocks that operators' pins keep */
	uint64_t leased;        /* blocks, as pool_count_leased() found it last */
	uint64_t evict_after;   /* background eviction found only pins: not before then */
	uint64_t reclaim_after; /* nothing was cold enough: not before then */
};

/* A time of use in it, to be compared with one in another namespace. */
static inline uint64_t namespace_order(const struct namespace *ns, uint64_t used)
{
	return used + priority_bias(ns->priority);
}

/* NULL for the number of no namespace. */
struct namespace *namespace_get(const struct pool *p, uint32_t number);

/* Hands it the free granules from first on. 0 or -ENOMEM. */
int namespace_grow(struct pool *p, struct namespace *ns, uint32_t first, uint64_t now);

/*
 * Gives back, and has punched, the extents of those that nobody holds and that have no block left,
 * whatever became of the last one: whoever comes back starts from nothing.
 */
void namespace_shrink_unused(struct pool *p);

/* Frees what it holds of the heap. */
void namespace_fini(struct namespace *ns);

/* All open ones: for (ns = NULL; (ns = namespace_next(p, ns)) != NULL;) */
struct namespace *namespace_next(const struct pool *p, const struct namespace *after);

#endif
