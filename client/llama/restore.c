/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "client/llama/adapter.h"

#define EXPORT __attribute__((visibility("default")))

#define ROUNDS_MAX 8 /* of reserving, finding that another program was faster, and looking again */

/* A prompt that is being looked for. */
struct search {
	const int32_t *tokens;
	size_t n_tokens;
	size_t n_keys;
	uint64_t deadline;
	int32_t seq;
};

/*
 * True when a claim of this very handle has the block: waiting for it would be waiting for oneself.
 */
static bool is_own(const struct kvpool_llama *k, size_t block)
{
	for (uint32_t i = 0; i < k->n_claims; i++)
		if (claim_holds(&k->claims[i], k->keys, block))
			return true;
	return false;
}

/*
 * Waits for the program that writes the block after the lease. True when there is more to find now.
 */
static bool wait_for_writer(struct kvpool_llama *k, const struct search *s)
{
	size_t have = kvpool_lease_blocks(k->lease);
	uint64_t start = clock_ns();
	long r;

	if (is_own(k, have)) {
		adapter_why(k, "another sequence of this handle has claimed the prefix");
		return false;
	}
	if (start >= s->deadline)
		return false;
	r = kvpool_wait(k->ns, s->tokens, s->n_tokens, have,
			(unsigned)((s->deadline - start) / NSEC_PER_MSEC + 1));
	k->stats.waits++;
	k->stats.wait_ns += clock_ns() - start;
	if (r < 0)
		adapter_why(k, "another program computes the prefix: %s",
			    r == -ETIMEDOUT ? "it took longer than wait_ms" : strerror((int)-r));
	return r >= 0;
}

/*
 * Reserves what follows the lease. True when it is worth to look again: others have stored it, or
 * are about to.
 */
static bool claim_rest(struct kvpool_llama *k, const struct search *s)
{
	size_t have = kvpool_lease_blocks(k->lease);
	struct kvpool_write *write;
	enum kvpool_verdict first;
	int granted;

	granted = kvpool_reserve_keys(k->ns, have ? &k->keys[have - 1] : NULL, k->keys + have,
				      s->n_keys - have, &write);
	if (granted < 0) {
		adapter_why(k, "%s; not claimed: %s",
			    kvpool_reason_name(kvpool_lease_reason(k->lease)), strerror(-granted));
		return false;
	}
	first = kvpool_write_verdict(write, 0);
	if (granted > 0)
		claim_set(&k->claims[s->seq], write, k->keys, have);
	else
		kvpool_write_free(write);
	if (first == KVPOOL_BUSY)
		return wait_for_writer(k, s);
	return first == KVPOOL_PRESENT;
}

/*
 * Leaves in the lease the longest prefix that is there, or gets there while another program is
 * writing it.
 */
static void find(struct kvpool_llama *k, const struct search *s)
{
	size_t usable = kvpool_usable_tokens(s->n_tokens, k->block_tokens);

	kvpool_acquire(k->ns, k->lease, s->tokens, s->n_tokens, 0);
	if (k->flags & KVPOOL_LLAMA_NO_CLAIM)
		return;
	for (int round = 0; round < ROUNDS_MAX; round++) {
		if (kvpool_lease_tokens(k->lease) >= usable ||
		    kvpool_lease_blocks(k->lease) >= s->n_keys)
			return;
		if (!claim_rest(k, s))
			return;
		kvpool_extend(k->lease, s->tokens, s->n_tokens);
		if (k->claims[s->seq].write)
			return;
	}
}

static int load(struct kvpool_llama *k, struct sequence *q)
{
	size_t n = kvpool_lease_blocks(k->lease);
	int r;

	for (size_t i = 0; i < n; i++) {
		k->images[i] = (void *)kvpool_lease_block(k->lease, i);
		if (!k->images[i])
			return -ESTALE;
	}
	r = sequence_load(q, (const void *const *)k->images, (uint32_t)n);
	if (r == -EBADMSG)
		adapter_why(k, "a cached block is not what its namespace says");
	else if (r < 0)
		adapter_why(k,
			    "the engine did not take %zu tokens: its KV cache has no room, or %s",
			    kvpool_lease_tokens(k->lease), strerror(-r));
	return r;
}

static size_t restore(struct kvpool_llama *k, struct sequence *q, const struct search *s)
{
	size_t tokens;

	adapter_why(k, "%s", "");
	claim_drop(&k->claims[s->seq]);
	find(k, s);
	if (!k->why[0])
		adapter_why(k, "%s", kvpool_reason_name(kvpool_lease_reason(k->lease)));
	tokens = kvpool_lease_tokens(k->lease);
	if (!tokens || load(k, q) < 0) {
		sequence_clear(q);
		tokens = 0;
	}
	kvpool_release(k->lease);
	return tokens;
}

EXPORT size_t kvpool_llama_restore(struct kvpool_llama *k, int32_t seq, const int32_t *tokens,
				   size_t n_tokens)
{
	uint64_t start = clock_ns();
	struct search s = {
		.tokens = tokens,
		.n_tokens = n_tokens,
		.deadline = start + k->wait_ms * NSEC_PER_MSEC,
		.seq = seq,
	};
	struct sequence q;
	size_t have;

	if (sequence_init(&q, k->ctx, &k->shape, k->block_tokens, seq) < 0) {
		adapter_why(k, "the context has no sequence %d", (int)seq);
		return 0;
	}
	s.n_keys = kvpool_hash(k->ns, NULL, tokens, n_tokens, k->keys, k->max_blocks);
	have = restore(k, &q, &s);
	k->stats.restores++;
	k->stats.restored_tokens += have;
	k->stats.restore_engine_ns += q.engine_ns;
	k->stats.restore_ns += clock_ns() - start;
	return have;
}
