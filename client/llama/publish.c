/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "client/llama/adapter.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * Fills the granted blocks of a write, whose first block is block first of the prompt, and makes
 * them visible.
 */
static long store(struct kvpool_llama *k, struct sequence *q, struct kvpool_write *write,
		  size_t first)
{
	size_t n = kvpool_write_blocks(write), from = 0, to;
	const char *why;
	int r;

	while (from < n && kvpool_write_verdict(write, from) != KVPOOL_GRANTED)
		from++;
	for (to = from; to < n && kvpool_write_verdict(write, to) == KVPOOL_GRANTED; to++)
		k->images[to - from] = kvpool_write_block(write, to);
	if (from == to)
		return 0;
	r = sequence_save(q, (uint32_t)(first + from), (uint32_t)(to - from), k->images, &why);
	if (r < 0) {
		adapter_why(k, "%s", why);
		return r;
	}
	r = kvpool_commit(write, to);
	if (r < 0)
		adapter_why(k, "the blocks were not stored: %s", strerror(-r));
	return r;
}

/* Stores what restore claimed, when it is for this very prompt. */
static long store_claim(struct kvpool_llama *k, struct sequence *q, struct claim *c, size_t n_keys)
{
	long stored = 0;

	if (claim_fits(c, k->keys, n_keys))
		stored = store(k, q, c->write, c->first);
	claim_drop(c);
	return stored;
}

/*
 * Stores what follows the blocks that are cached already. They stay held, so that none of them can
 * go meanwhile.
 */
static long store_rest(struct kvpool_llama *k, struct sequence *q, size_t n_keys)
{
	struct kvpool_write *write;
	size_t have;
	long stored;

	kvpool_acquire_keys(k->ns, k->lease, k->keys, n_keys, KVPOOL_DEPTH_ONLY);
	have = kvpool_lease_blocks(k->lease);
	if (have == n_keys) {
		kvpool_release(k->lease);
		return 0;
	}
	stored = kvpool_reserve_keys(k->ns, have ? &k->keys[have - 1] : NULL, k->keys + have,
				     n_keys - have, &write);
	if (stored >= 0) {
		stored = store(k, q, write, have);
		kvpool_write_free(write);
	} else {
		adapter_why(k, "no room was reserved: %s", strerror((int)-stored));
	}
	kvpool_release(k->lease);
	return stored;
}

EXPORT long kvpool_llama_publish(struct kvpool_llama *k, int32_t seq, const int32_t *tokens,
				 size_t n_tokens)
{
	uint64_t start = clock_ns();
	struct sequence q;
	size_t n_keys;
	long claimed, rest = 0;

	adapter_why(k, "%s", "");
	if (sequence_init(&q, k->ctx, &k->shape, k->block_tokens, seq) < 0) {
		adapter_why(k, "the context has no sequence %d", (int)seq);
		return -EINVAL;
	}
	n_keys = kvpool_hash(k->ns, NULL, tokens, n_tokens, k->keys, k->max_blocks);
	claimed = store_claim(k, &q, &k->claims[seq], n_keys);
	if (claimed >= 0)
		rest = store_rest(k, &q, n_keys);
	k->stats.published_blocks += (claimed > 0 ? claimed : 0) + (rest > 0 ? rest : 0);
	k->stats.publish_engine_ns += q.engine_ns;
	k->stats.publish_ns += clock_ns() - start;
	if (claimed < 0)
		return claimed;
	/* What was stored counts, also when there is no room for more. */
	return rest < 0 && claimed ? claimed : claimed + rest;
}
