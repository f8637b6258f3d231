/* SPDX-License-Identifier: Apache-2.0 */
/* What the pool knows of one key or block, for those who ask why something was not a hit. */
#ifndef KVP_DAEMON_EXPLAIN_H
#define KVP_DAEMON_EXPLAIN_H

#include "daemon/pool.h"
#include "proto/reason.h"

struct explain_missing {
	enum miss_reason why; /* MISS_COLD: nothing is remembered */
	uint64_t when;        /* it went; 0: not known, or not gone */
	uint64_t writer;      /* MISS_IN_FLIGHT: session of who writes it */
};

/*
 * Why a reader did not find the key. One that is there by now was being written then: nobody begins
 * to write before the pool has heard of all lookups.
 */
void explain_missing(const struct pool *p, const struct block_key *key,
		     struct explain_missing *ret);

/* A cached block. */
struct explain_block {
	uint32_t desc, ns;
	uint64_t gen, writer;
	uint64_t tokens, bytes; /* of the whole prefix */
};

/* Returns 0, or -ENOENT when desc is the number of no cached block. */
int explain_block(const struct pool *p, uint32_t desc, struct explain_block *ret);

/* Continuations are counted up to so many. */
#define EXPLAIN_CHILDREN_MAX 1000u

struct explain_fanout {
	uint32_t children; /* cached blocks right behind it */
	uint32_t once;     /* of them: with nothing below, and not shared */
};

/*
 * How the chains go on behind a cached block, or (DESC_NONE) from the start of a namespace. shared
 * says of a block with nothing below whether it is known to have several readers.
 */
void explain_fanout(const struct pool *p, uint32_t ns, uint32_t desc,
		    int (*shared)(void *ctx, uint32_t desc), void *ctx, struct explain_fanout *ret);

#endif
