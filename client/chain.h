/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a run of full blocks of a prompt, for requests to the daemon. */
#ifndef KVP_CLIENT_CHAIN_H
#define KVP_CLIENT_CHAIN_H

#include "client/kvpool.h"
#include "shm/layout.h"

#define CHAIN_BLOCKS_MAX 1048576u

struct chain {
	struct block_key parent; /* the key before block first, when that is not 0 */
	size_t first, n;
	struct block_key *keys;
};

/*
 * The keys of full blocks [first, first + n), which the prompt must have; CHAIN_ALL: all from first
 * on. Returns 0; -EINVAL or -ENOMEM with the text of kvpool_error made; or -ESTALE: this is a child.
 */
#define CHAIN_ALL SIZE_MAX
int chain_open(struct chain *c, struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
	       size_t first, size_t n);
void chain_close(struct chain *c);

/* The key before block first + i; NULL at the start of the prompt. */
static inline const struct block_key *chain_parent(const struct chain *c, size_t i)
{
	if (i)
		return &c->keys[i - 1];
	return c->first ? &c->parent : NULL;
}

#endif
