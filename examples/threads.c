/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pool for many threads: each has a lease of its own, all share the handle and the namespace.
 * They want the same prompt: one of them computes it, the others wait for that one.
 *
 * 	cc -pthread threads.c $(pkg-config --cflags --libs kvpool) -o threads
 */
#include <kvpool.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_TOKENS 16
#define BLOCK_BYTES  4096
#define BLOCKS       16
#define N_TOKENS     (BLOCKS * BLOCK_TOKENS + 1) /* the last one is always computed */
#define THREADS      8

struct worker {
	pthread_t thread;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	const int32_t *prompt;
	int computed;  /* blocks */
	size_t tokens; /* that it could use in the end */
};

static struct kvpool_ns_desc describe(void)
{
	static const unsigned char digest[32] = { 1, 2, 3 };
	struct kvpool_ns_desc d;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	d.model = "example-threads";
	d.weights = digest;
	d.type_k = d.type_v = "f16";
	d.n_layers = 2;
	d.n_kv_heads = 1;
	d.head_dim_k = d.head_dim_v = 32;
	d.block_tokens = BLOCK_TOKENS;
	d.block_bytes = BLOCK_BYTES;
	d.layout = "plain";
	d.engine = "example-1";
	return d;
}

static int compute(void *arg, size_t i, void *block)
{
	struct worker *w = arg;

	memset(block, (int)i, BLOCK_BYTES);
	w->computed++;
	return 0;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	struct kvpool_lease *lease;

	if (kvpool_lease_new(w->pool, BLOCKS, &lease) < 0)
		return NULL;
	while (kvpool_acquire(w->ns, lease, w->prompt, N_TOKENS, 0) < N_TOKENS - 1) {
		/* Stores what nobody has and nobody writes; then waits for what others write. */
		if (kvpool_publish(w->ns, w->prompt, N_TOKENS, compute, w) < 0 ||
		    kvpool_wait(w->ns, w->prompt, N_TOKENS, kvpool_lease_blocks(lease), 5000) < 0)
			break;
	}
	for (size_t i = 0; i < kvpool_lease_blocks(lease); i++)
		if (*(const unsigned char *)kvpool_lease_block(lease, i) == i)
			w->tokens += BLOCK_TOKENS;
	kvpool_lease_free(lease);
	return NULL;
}

int main(void)
{
	struct kvpool_ns_desc desc = describe();
	struct worker workers[THREADS];
	int32_t prompt[N_TOKENS];
	struct kvpool *pool;
	struct kvpool_ns *ns;
	size_t tokens = 0;
	int computed = 0;

	for (int i = 0; i < N_TOKENS; i++)
		prompt[i] = i;
	if (kvpool_connect(NULL, &pool) < 0 || kvpool_ns_open(pool, &desc, &ns) < 0)
		return 1;
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .pool = pool, .ns = ns, .prompt = prompt };
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		computed += workers[i].computed;
		tokens += workers[i].tokens;
	}
	printf("%d threads used %zu tokens, and computed %d blocks\n", THREADS, tokens, computed);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	return 0;
}
