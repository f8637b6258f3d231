/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "base/sha256.h"
#include "client/hash.h"
#include "client/ns.h"

/* Tokens are hashed as they lie in memory. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are hashed as little endian");

static void hash_one(const struct block_key *after, const int32_t *tokens, uint32_t block_tokens,
		     struct block_key *key)
{
	sha256_pair(after, sizeof(*after), tokens, block_tokens * sizeof(*tokens),
		    (uint8_t *)key->w);
}

void hash_blocks(const struct block_key *after, const int32_t *tokens, uint32_t block_tokens,
		 size_t n_blocks, struct block_key *keys)
{
	for (size_t i = 0; i < n_blocks; i++) {
		hash_one(after, tokens + i * block_tokens, block_tokens, &keys[i]);
		after = &keys[i];
	}
}

size_t kvpool_hash(const struct kvpool_ns *ns, const struct kvpool_key *after,
		   const int32_t *tokens, size_t n_tokens, struct kvpool_key *keys, size_t max)
{
	size_t n = MIN(n_tokens / ns->block_tokens, max);

	hash_blocks(after ? (const struct block_key *)after : &ns->seed, tokens, ns->block_tokens,
		    n, (struct block_key *)keys);
	return n;
}

size_t kvpool_usable_tokens(size_t n_tokens, uint32_t block_tokens)
{
	if (!n_tokens || !block_tokens)
		return 0;
	return (n_tokens - 1) / block_tokens * block_tokens;
}
