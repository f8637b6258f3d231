/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of keys of a prompt (doc/keys.md). */
#ifndef KVP_CLIENT_HASH_H
#define KVP_CLIENT_HASH_H

#include "client/kvpool.h"
#include "shm/layout.h"

static_assert(sizeof(struct kvpool_key) == sizeof(struct block_key), "the same 32 bytes");

/*
 * The keys of n_blocks full blocks; after is the key before the first one, or the seed. Part of the
 * hit path.
 */
void hash_blocks(const struct block_key *after, const int32_t *tokens, uint32_t block_tokens,
		 size_t n_blocks, struct block_key *keys);

#endif
