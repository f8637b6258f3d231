/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tools/bench/bench.h"

int bench_connect(const struct private_daemon *d, const char *name, struct kvpool **ret)
{
	struct kvpool_options o = {
		.size = sizeof(o), .socket = d->socket, .name = name, .timeout_ms = 60000
	};
	int r = kvpool_connect(&o, ret);

	if (r == 0 && kvpool_state(*ret) != KVPOOL_CONNECTED) {
		char why[256];

		kvpool_error(*ret, why, sizeof(why));
		fprintf(stderr, "kvpool-bench: %s\n", why);
		*ret = kvpool_close(*ret);
		return -ENOTCONN;
	}
	return r;
}

int bench_offline(struct kvpool **ret)
{
	struct kvpool_options o = { .size = sizeof(o), .socket = "/nonexistent", .timeout_ms = 1 };

	return kvpool_connect(&o, ret);
}

int bench_namespace(struct kvpool *pool, const char *model, uint32_t block_tokens,
		    uint64_t block_bytes, struct kvpool_ns **ret)
{
	static const uint8_t weights[32] = { 'b', 'e', 'n', 'c', 'h' };
	struct kvpool_ns_desc desc = {
		.size = sizeof(desc),
		.model = model,
		.weights = weights,
		.type_k = "f16",
		.type_v = "f16",
		.n_layers = 1,
		.n_kv_heads = 1,
		.head_dim_k = 64,
		.head_dim_v = 64,
		.block_tokens = block_tokens,
		.block_bytes = block_bytes,
		.layout = "opaque",
		.engine = "kvpool-bench/1",
	};
	int r = kvpool_ns_open(pool, &desc, ret);

	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot open a namespace: %s\n", strerror(-r));
	return r;
}

void bench_tokens(uint64_t *seed, int32_t *tokens, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tokens[i] = (int32_t)(bench_random(seed) % 50000);
}

void bench_chain(uint64_t seed, uint64_t c, struct kvpool_key *keys, size_t n)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + (c << 24);

	for (size_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < 4; k++)
			keys[i].w[k] = bench_random(&state);
}

int bench_write_chain(struct kvpool_ns *ns, const struct kvpool_key *keys, uint32_t n)
{
	struct kvpool_write *w;
	int r = kvpool_reserve_keys(ns, NULL, keys, n, &w);

	if (r < 0)
		return r;
	for (uint32_t i = 0; r == (int)n && i < n; i++)
		memcpy(kvpool_write_block(w, i), &keys[i], sizeof(keys[i]));
	r = kvpool_commit(w, n);
	kvpool_write_free(w);
	return r == (int)n ? 0 : r < 0 ? r : -ENOSPC;
}

int bench_child_start(struct bench_child *child, int (*fn)(void *ctx), void *ctx)
{
	int done[2], hold[2], result = -ECHILD;

	if (pipe(done) < 0 || pipe(hold) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(done[0]);
		close(hold[1]);
		result = fn(ctx);
		if (write(done[1], &result, sizeof(result)) == (ssize_t)sizeof(result))
			(void)!read(hold[0], &byte, 1); /* until the parent closes it */
		_exit(0);
	}
	close(done[1]);
	close(hold[0]);
	child->hold = hold[1];
	if (child->pid < 0 || read(done[0], &result, sizeof(result)) != (ssize_t)sizeof(result))
		result = -ECHILD;
	close(done[0]);
	if (result < 0)
		bench_child_stop(child);
	return result;
}

void bench_child_stop(struct bench_child *child)
{
	child->hold = close_fd(child->hold);
	if (child->pid > 0)
		waitpid(child->pid, NULL, 0);
	child->pid = 0;
}
