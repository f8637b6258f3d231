/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "client/chain.h"
#include "client/hash.h"
#include "client/ns.h"

/* The key before block first: that of the blocks before it, of which only the last one is kept. */
static struct block_key hash_up_to(const struct kvpool_ns *ns, const int32_t *tokens, size_t first)
{
	struct block_key key = ns->seed;

	for (size_t i = 0; i < first; i++)
		hash_blocks(&key, tokens + i * ns->block_tokens, ns->block_tokens, 1, &key);
	return key;
}

int chain_open(struct chain *c, struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
	       size_t first, size_t n)
{
	size_t full = n_tokens / ns->block_tokens;

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	if (first > full || (n != CHAIN_ALL && n > full - first))
		return handle_error(ns->pool, -EINVAL,
				    "blocks from number %zu on: a prompt of %zu tokens "
				    "has %zu full blocks",
				    first, n_tokens, full);
	n = MIN(n, full - first);
	if (n > CHAIN_BLOCKS_MAX)
		return handle_error(ns->pool, -EINVAL, "%zu blocks in one call: %u are the most", n,
				    CHAIN_BLOCKS_MAX);
	*c = (struct chain){ .first = first, .n = n };
	c->keys = malloc(MAX(n, (size_t)1) * sizeof(c->keys[0]));
	if (!c->keys)
		return handle_error(ns->pool, -ENOMEM, "no memory for the keys of %zu blocks", n);
	c->parent = hash_up_to(ns, tokens, first);
	hash_blocks(&c->parent, tokens + first * ns->block_tokens, ns->block_tokens, n, c->keys);
	return 0;
}

void chain_close(struct chain *c)
{
	free(c->keys);
	c->keys = NULL;
}
