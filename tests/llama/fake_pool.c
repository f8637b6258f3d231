/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/llama/fake_pool.h"

struct kvpool_ns {
	struct kvpool *pool;
	uint8_t seed[32];
	uint32_t block_tokens;
	uint64_t block_bytes;
};

struct kvpool_lease {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	size_t max, n;
	enum kvpool_reason reason;
	const struct fake_block **blocks;
};

struct kvpool_write {
	struct kvpool *pool;
	size_t n;
	enum kvpool_verdict *verdicts;
	struct fake_block **blocks;
};

struct kvpool *fake_pool_new(void)
{
	struct kvpool *pool = calloc(1, sizeof(*pool));

	assert(pool);
	return pool;
}

void fake_pool_free(struct kvpool *pool)
{
	assert(!pool->leases && !pool->writes);
	for (int i = 0; i < FAKE_POOL_BLOCKS; i++)
		free(pool->blocks[i].data);
	free(pool);
}

unsigned int fake_pool_count(const struct kvpool *pool, enum fake_block_state state)
{
	unsigned int n = 0;

	for (int i = 0; i < FAKE_POOL_BLOCKS; i++)
		n += pool->blocks[i].state == state;
	return n;
}

void fake_pool_turn(struct kvpool *pool, enum fake_block_state from, enum fake_block_state to)
{
	for (int i = 0; i < FAKE_POOL_BLOCKS; i++)
		if (pool->blocks[i].state == from)
			pool->blocks[i].state = to;
}

void fake_pool_drop_last(struct kvpool *pool, enum fake_block_state state)
{
	for (int i = FAKE_POOL_BLOCKS - 1; i >= 0; i--) {
		if (pool->blocks[i].state == state) {
			pool->blocks[i].state = FAKE_FREE;
			return;
		}
	}
}

static struct fake_block *find(struct kvpool *pool, const struct kvpool_key *key)
{
	for (int i = 0; i < FAKE_POOL_BLOCKS; i++)
		if (pool->blocks[i].state != FAKE_FREE &&
		    !memcmp(&pool->blocks[i].key, key, sizeof(*key)))
			return &pool->blocks[i];
	return NULL;
}

static struct fake_block *take(struct kvpool *pool, const struct kvpool_key *key)
{
	size_t room = pool->capacity ? pool->capacity : FAKE_POOL_BLOCKS;

	for (size_t i = 0; i < room; i++) {
		struct fake_block *b = &pool->blocks[i];

		if (b->state != FAKE_FREE)
			continue;
		free(b->data);
		b->data = calloc(1, pool->block_bytes);
		assert(b->data);
		b->key = *key;
		b->state = FAKE_RESERVED;
		return b;
	}
	return NULL;
}

/*
 * ------------------------------------------------------------------------------------------
 * kvpool.h
 */

size_t kvpool_error(const struct kvpool *pool, char *buf, size_t n)
{
	return (size_t)snprintf(buf, n, "%s", pool->refuse_namespace ? "model is missing" : "");
}

int kvpool_ns_open(struct kvpool *pool, const struct kvpool_ns_desc *desc, struct kvpool_ns **ret)
{
	struct kvpool_ns *ns;

	if (pool->refuse_namespace)
		return -EINVAL;
	ns = calloc(1, sizeof(*ns));
	assert(ns && desc->size == sizeof(*desc));
	memcpy(ns->seed, desc->weights, 32);
	ns->pool = pool;
	ns->block_tokens = desc->block_tokens;
	ns->block_bytes = desc->block_bytes;
	pool->block_bytes = desc->block_bytes;
	*ret = ns;
	return 0;
}

struct kvpool_ns *kvpool_ns_close(struct kvpool_ns *ns)
{
	free(ns);
	return NULL;
}

/* No SHA-256: a chain that differs when a token does is enough here. */
static void chain(struct kvpool_key *k, const int32_t *tokens, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (int w = 0; w < 4; w++)
			k->w[w] =
				(k->w[w] ^ (uint64_t)(uint32_t)tokens[i]) * 0x9e3779b97f4a7c15ull +
				(uint64_t)w;
}

size_t kvpool_hash(const struct kvpool_ns *ns, const struct kvpool_key *after,
		   const int32_t *tokens, size_t n_tokens, struct kvpool_key *keys, size_t max)
{
	size_t n = n_tokens / ns->block_tokens;
	struct kvpool_key k;

	memcpy(&k, ns->seed, sizeof(k));
	if (after)
		k = *after;
	if (n > max)
		n = max;
	for (size_t i = 0; i < n; i++) {
		chain(&k, tokens + i * ns->block_tokens, ns->block_tokens);
		keys[i] = k;
	}
	return n;
}

size_t kvpool_usable_tokens(size_t n_tokens, uint32_t block_tokens)
{
	return n_tokens ? (n_tokens - 1) / block_tokens * block_tokens : 0;
}

const char *kvpool_reason_name(enum kvpool_reason reason)
{
	static const char *const names[] = {"complete",	 "not_cached", "partial_block",
					    "below_min", "pins",       "no_daemon"};

	return names[reason];
}

int kvpool_lease_new(struct kvpool *pool, size_t max_blocks, struct kvpool_lease **ret)
{
	struct kvpool_lease *l = calloc(1, sizeof(*l));

	assert(l);
	l->pool = pool;
	l->max = max_blocks;
	l->blocks = calloc(max_blocks, sizeof(*l->blocks));
	assert(l->blocks);
	pool->leases++;
	*ret = l;
	return 0;
}

struct kvpool_lease *kvpool_lease_free(struct kvpool_lease *l)
{
	if (!l)
		return NULL;
	l->pool->leases--;
	free(l->blocks);
	free(l);
	return NULL;
}

size_t kvpool_acquire_keys(struct kvpool_ns *ns, struct kvpool_lease *l,
			   const struct kvpool_key *keys, size_t n_keys, unsigned flags)
{
	l->ns = ns;
	l->n = 0;
	return kvpool_extend_keys(l, keys, n_keys);
}

size_t kvpool_extend_keys(struct kvpool_lease *l, const struct kvpool_key *keys, size_t n_keys)
{
	l->reason = l->pool->no_daemon ? KVPOOL_NO_DAEMON : KVPOOL_COMPLETE;
	for (; l->n < n_keys && !l->pool->no_daemon; l->n++) {
		struct fake_block *b = find(l->pool, &keys[l->n]);

		if (l->n == l->max || !b || b->state != FAKE_COMMITTED) {
			l->reason = l->n == l->max ? KVPOOL_PINS : KVPOOL_NOT_CACHED;
			break;
		}
		l->blocks[l->n] = b;
	}
	return l->n * l->ns->block_tokens;
}

static size_t with_tokens(struct kvpool_lease *l, const int32_t *tokens, size_t n_tokens)
{
	size_t n = kvpool_usable_tokens(n_tokens, l->ns->block_tokens);
	struct kvpool_key *keys = calloc(n + 1, sizeof(*keys));
	size_t got;

	assert(keys);
	n = kvpool_hash(l->ns, NULL, tokens, n, keys, n);
	got = kvpool_extend_keys(l, keys, n);
	free(keys);
	return got;
}

size_t kvpool_acquire(struct kvpool_ns *ns, struct kvpool_lease *l, const int32_t *tokens,
		      size_t n_tokens, unsigned flags)
{
	l->ns = ns;
	l->n = 0;
	return with_tokens(l, tokens, n_tokens);
}

size_t kvpool_extend(struct kvpool_lease *l, const int32_t *tokens, size_t n_tokens)
{
	return with_tokens(l, tokens, n_tokens);
}

void kvpool_release(struct kvpool_lease *l)
{
	l->n = 0;
}

size_t kvpool_lease_tokens(const struct kvpool_lease *l)
{
	return l->ns ? l->n * l->ns->block_tokens : 0;
}

size_t kvpool_lease_blocks(const struct kvpool_lease *l)
{
	return l->n;
}

enum kvpool_reason kvpool_lease_reason(const struct kvpool_lease *l)
{
	return l->reason;
}

const void *kvpool_lease_block(const struct kvpool_lease *l, size_t i)
{
	return i < l->n ? l->blocks[i]->data : NULL;
}

/*
 * As the protocol says: after the first block that is busy or has no room, every deeper one gets
 * that answer too.
 */
static enum kvpool_verdict judge(struct kvpool_write *w, size_t i, const struct kvpool_key *key)
{
	struct fake_block *b = find(w->pool, key);

	if (i && (w->verdicts[i - 1] == KVPOOL_BUSY || w->verdicts[i - 1] == KVPOOL_FULL))
		return w->verdicts[i - 1];
	if (b)
		return b->state == FAKE_COMMITTED ? KVPOOL_PRESENT : KVPOOL_BUSY;
	w->blocks[i] = take(w->pool, key);
	return w->blocks[i] ? KVPOOL_GRANTED : KVPOOL_FULL;
}

int kvpool_reserve_keys(struct kvpool_ns *ns, const struct kvpool_key *parent,
			const struct kvpool_key *keys, size_t n_keys, struct kvpool_write **ret)
{
	struct kvpool *pool = ns->pool;
	struct kvpool_write *w;
	int granted = 0;

	if (pool->no_daemon)
		return -ENOTCONN;
	pool->reserves++;
	if (pool->on_reserve)
		pool->on_reserve(pool);
	assert(n_keys > 0 && (!parent || find(pool, parent)));
	w = calloc(1, sizeof(*w));
	assert(w);
	w->pool = pool;
	w->n = n_keys;
	w->verdicts = calloc(n_keys, sizeof(*w->verdicts));
	w->blocks = calloc(n_keys, sizeof(*w->blocks));
	assert(w->verdicts && w->blocks);
	for (size_t i = 0; i < n_keys; i++) {
		w->verdicts[i] = judge(w, i, &keys[i]);
		granted += w->verdicts[i] == KVPOOL_GRANTED;
	}
	pool->writes++;
	*ret = w;
	return granted;
}

size_t kvpool_write_blocks(const struct kvpool_write *w)
{
	return w->n;
}

enum kvpool_verdict kvpool_write_verdict(const struct kvpool_write *w, size_t i)
{
	return w->verdicts[i];
}

void *kvpool_write_block(const struct kvpool_write *w, size_t i)
{
	return w->verdicts[i] == KVPOOL_GRANTED ? w->blocks[i]->data : NULL;
}

int kvpool_commit(struct kvpool_write *w, size_t n)
{
	int stored = 0;

	if (w->pool->no_daemon || w->pool->commit_fails)
		return -ENOTCONN;
	for (size_t i = 0; i < n; i++) {
		if (w->verdicts[i] != KVPOOL_GRANTED)
			continue;
		w->blocks[i]->state = FAKE_COMMITTED;
		w->verdicts[i] = KVPOOL_COMMITTED;
		stored++;
	}
	return stored;
}

struct kvpool_write *kvpool_write_free(struct kvpool_write *w)
{
	if (!w)
		return NULL;
	for (size_t i = 0; i < w->n; i++)
		if (w->verdicts[i] == KVPOOL_GRANTED)
			w->blocks[i]->state = FAKE_FREE;
	w->pool->writes--;
	free(w->verdicts);
	free(w->blocks);
	free(w);
	return NULL;
}

long kvpool_wait(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, size_t first_block,
		 unsigned timeout_ms)
{
	struct kvpool *pool = ns->pool;

	assert(timeout_ms > 0);
	pool->waits++;
	if (!pool->on_wait)
		return -ETIMEDOUT;
	pool->on_wait(pool);
	return 0;
}
