/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "client/chain.h"
#include "client/hash.h"
#include "client/ns.h"
#include "client/prompt.h"

#define ROOM_MIN 1024u

/* Room for tokens, whole blocks of them. */
static struct prompt_buffer *buffer_new(size_t room, uint32_t block_tokens)
{
	size_t n_blocks = room / block_tokens + 1;
	struct prompt_buffer *b = malloc(sizeof(*b));

	room = n_blocks * block_tokens;
	if (!b)
		return NULL;
	*b = (struct prompt_buffer){
		.refs = 1,
		.room = room,
		.tokens = malloc(room * sizeof(b->tokens[0])),
		.keys = malloc(n_blocks * sizeof(b->keys[0])),
	};
	if (b->tokens && b->keys)
		return b;
	free(b->tokens);
	free(b->keys);
	free(b);
	return NULL;
}

static void buffer_put(struct prompt_buffer *b)
{
	if (!b || add_acq_rel(&b->refs, (uint64_t)-1) != 1)
		return;
	free(b->tokens);
	free(b->keys);
	free(b);
}

static size_t full_blocks(const struct kvpool_chain *c)
{
	return c->n_tokens / c->ns->block_tokens;
}

/* Moves the chain to a buffer of its own, with room for more behind what it has. */
static int move_out(struct kvpool_chain *c, size_t more)
{
	struct prompt_buffer *b =
		buffer_new(MAX(2 * c->n_tokens + more, (size_t)ROOM_MIN), c->ns->block_tokens);

	if (!b)
		return -ENOMEM;
	if (c->n_tokens) {
		memcpy(b->tokens, c->buffer->tokens, c->n_tokens * sizeof(b->tokens[0]));
		memcpy(b->keys, c->buffer->keys, full_blocks(c) * sizeof(b->keys[0]));
	}
	b->end = c->n_tokens;
	buffer_put(c->buffer);
	c->buffer = b;
	return 0;
}

/* Claims n tokens of room behind the chain. False: another one has them, or there is none. */
static int claim(struct kvpool_chain *c, size_t n)
{
	struct prompt_buffer *b = c->buffer;
	uint64_t end = c->n_tokens;

	if (!b || n > b->room - c->n_tokens)
		return 0;
	/* Acquire: a buffer that is nobody else's any more may have been written by who left. */
	if (load_acquire(&b->refs) == 1) {
		b->end = c->n_tokens + n;
		return 1;
	}
	return cas_acq_rel(&b->end, &end, c->n_tokens + n);
}

/* Hashes the blocks that became full when the chain grew from had full blocks. */
static void hash_new(struct kvpool_chain *c, size_t had)
{
	struct prompt_buffer *b = c->buffer;
	const struct block_key *after = had ? &b->keys[had - 1] : &c->ns->seed;

	hash_blocks(after, b->tokens + had * c->ns->block_tokens, c->ns->block_tokens,
		    full_blocks(c) - had, b->keys + had);
}

int kvpool_chain_new(struct kvpool_ns *ns, struct kvpool_chain **ret)
{
	struct kvpool_chain *c;

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return handle_error(ns->pool, -ENOMEM, "no memory for a chain");
	handle_ref(ns->pool);
	ns_ref(ns);
	c->ns = ns;
	*ret = c;
	return 0;
}

struct kvpool_chain *kvpool_chain_free(struct kvpool_chain *c)
{
	struct kvpool *p;

	if (!c)
		return NULL;
	p = c->ns->pool;
	buffer_put(c->buffer);
	ns_put(c->ns);
	free(c);
	handle_tidy(p);
	handle_unref(p);
	return NULL;
}

int kvpool_chain_fork(const struct kvpool_chain *c, struct kvpool_chain **ret)
{
	struct kvpool_chain *copy;
	int err = kvpool_chain_new(c->ns, &copy);

	if (err < 0)
		return err;
	copy->n_tokens = c->n_tokens;
	copy->buffer = c->buffer;
	if (copy->buffer)
		add_relaxed(&copy->buffer->refs, 1);
	*ret = copy;
	return 0;
}

int kvpool_chain_append(struct kvpool_chain *c, const int32_t *tokens, size_t n)
{
	size_t had = full_blocks(c), most = (size_t)CHAIN_BLOCKS_MAX * c->ns->block_tokens;

	if (handle_is_forked(c->ns->pool))
		return -ESTALE;
	if (n > most - c->n_tokens)
		return handle_error(c->ns->pool, -EINVAL,
				    "a chain of %zu tokens and %zu more: %u blocks are the most",
				    c->n_tokens, n, CHAIN_BLOCKS_MAX);
	if (!n)
		return 0;
	if (!claim(c, n) && (move_out(c, n) < 0 || !claim(c, n)))
		return handle_error(c->ns->pool, -ENOMEM, "no memory for a chain of %zu tokens",
				    c->n_tokens + n);
	memcpy(c->buffer->tokens + c->n_tokens, tokens, n * sizeof(tokens[0]));
	c->n_tokens += n;
	hash_new(c, had);
	return 0;
}

int kvpool_chain_truncate(struct kvpool_chain *c, size_t n_tokens)
{
	if (handle_is_forked(c->ns->pool))
		return -ESTALE;
	if (n_tokens > c->n_tokens)
		return handle_error(c->ns->pool, -EINVAL,
				    "cannot cut a chain of %zu tokens to %zu: that is longer",
				    c->n_tokens, n_tokens);
	c->n_tokens = n_tokens;
	return 0;
}

/* How many tokens are the same from the first on. */
static size_t same_tokens(const struct kvpool_chain *c, const int32_t *tokens, size_t n)
{
	size_t i = 0;

	n = MIN(n, c->n_tokens);
	while (i < n && c->buffer->tokens[i] == tokens[i])
		i++;
	return i;
}

int kvpool_chain_update(struct kvpool_chain *c, const int32_t *tokens, size_t n, size_t *ret_same)
{
	size_t same = same_tokens(c, tokens, n), had = c->n_tokens;
	int err;

	c->n_tokens = same;
	err = kvpool_chain_append(c, tokens + same, n - same);
	if (err < 0) {
		c->n_tokens = had;
		return err;
	}
	if (ret_same)
		*ret_same = same;
	return 0;
}

size_t kvpool_chain_tokens(const struct kvpool_chain *c)
{
	return c->n_tokens;
}

size_t kvpool_chain_blocks(const struct kvpool_chain *c)
{
	return full_blocks(c);
}

int prompt_run(const struct kvpool_chain *c, size_t first, struct chain *ret)
{
	size_t full = full_blocks(c);

	if (handle_is_forked(c->ns->pool))
		return -ESTALE;
	if (first > full)
		return handle_error(c->ns->pool, -EINVAL,
				    "blocks from number %zu on: a chain of %zu tokens has %zu full "
				    "blocks",
				    first, c->n_tokens, full);
	*ret = (struct chain){ .first = first, .n = full - first };
	if (c->buffer)
		ret->keys = c->buffer->keys + first;
	if (first)
		ret->parent = c->buffer->keys[first - 1];
	return 0;
}

int prompt_copy(const struct kvpool_chain *c, size_t first, struct chain *ret)
{
	struct block_key *keys;
	struct chain run;
	int err = prompt_run(c, first, &run);

	if (err < 0)
		return err;
	keys = malloc(MAX(run.n, (size_t)1) * sizeof(*keys));
	if (!keys)
		return handle_error(c->ns->pool, -ENOMEM, "no memory for the keys of %zu blocks",
				    run.n);
	if (run.n)
		memcpy(keys, run.keys, run.n * sizeof(*keys));
	run.keys = keys;
	*ret = run;
	return 0;
}

const struct kvpool_key *kvpool_chain_keys(const struct kvpool_chain *c)
{
	return c->buffer ? (const struct kvpool_key *)c->buffer->keys : NULL;
}
