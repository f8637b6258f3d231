/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up libkvpool for tests of the adapter: the functions of kvpool.h that it calls, over an
 * array in this process, with hooks at the moments where another program or the daemon could act.
 * Tests link it instead of libkvpool.
 */
#ifndef KVP_TESTS_LLAMA_FAKE_POOL_H
#define KVP_TESTS_LLAMA_FAKE_POOL_H

#include <stdbool.h>

#include "client/kvpool.h"

#define FAKE_POOL_BLOCKS 256

enum fake_block_state {
	FAKE_FREE,
	FAKE_RESERVED, /* by a write of this process */
	FAKE_FOREIGN, /* by another program */
	FAKE_COMMITTED,
};

struct fake_block {
	enum fake_block_state state;
	struct kvpool_key key;
	uint8_t *data;
};

struct kvpool {
	struct fake_block blocks[FAKE_POOL_BLOCKS];
	uint64_t block_bytes; /* of the namespace that is open */
	uint32_t block_tokens;
	uint8_t seed[32];
	size_t capacity; /* blocks; 0: all */
	bool no_daemon;
	bool refuse_namespace;
	bool commit_fails;

	/* Called before an answer is given; may change blocks. */
	void (*on_reserve)(struct kvpool *pool);
	void (*on_wait)(struct kvpool *pool);

	unsigned int waits, reserves, leases, writes;
};

/* A pool without blocks; fake_pool_free expects that nothing of it is in use any more. */
struct kvpool *fake_pool_new(void);
void fake_pool_free(struct kvpool *pool);

/* How many blocks are in a state. */
unsigned int fake_pool_count(const struct kvpool *pool, enum fake_block_state state);

/* Turns every block of one state into another one. */
void fake_pool_turn(struct kvpool *pool, enum fake_block_state from, enum fake_block_state to);

/* Drops the block with the most recent number of that state. */
void fake_pool_drop_last(struct kvpool *pool, enum fake_block_state state);

#endif
