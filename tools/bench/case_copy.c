/* SPDX-License-Identifier: Apache-2.0 */
/*
 * get/2M, put/2M, get/16K, put/16K: 128 blocks out of the pool and into it, in one call, against
 * the faster of memcpy and a non-temporal copy of the same bytes over the same amount of memory.
 * The pool is full, so each put evicts; its pages are warm, since all of it was written before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tools/bench/bench.h"

#define BATCH 128u
#define SEED  21u

struct copy_case {
	const struct bench_options *opt;
	struct private_daemon daemon;
	struct bench_writer writer;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	uint64_t block;
	uint32_t chains; /* that fill the pool */
	uint32_t next;	 /* chain to write or read next */
	uint32_t ops;	 /* batches in one measurement */
	uint64_t put;	 /* chains ever written by this process */
	char *buffer;	 /* of BATCH blocks: the application's */
	char *memory;	 /* as large as the pool, for the limit */
	int nt;
};

static int32_t *chain_tokens(uint64_t c, int32_t tokens[BATCH + 1])
{
	uint64_t state = SEED + (c << 20);

	for (unsigned int i = 0; i <= BATCH; i++)
		tokens[i] = (int32_t)(bench_random(&state) & 0x7fffffff);
	return tokens;
}

static void buffers(const struct copy_case *c, struct iovec iov[BATCH])
{
	for (unsigned int i = 0; i < BATCH; i++) {
		iov[i].iov_base = c->buffer + i * c->block;
		iov[i].iov_len = c->block;
	}
}

static int put_chain(struct copy_case *c, struct kvpool_ns *ns, uint64_t number)
{
	int32_t tokens[BATCH + 1];
	struct iovec iov[BATCH];
	int r;

	buffers(c, iov);
	r = kvpool_publish_iov(ns, chain_tokens(number, tokens), BATCH, 0, iov, BATCH);
	return r == (int)BATCH ? 0 : r < 0 ? r : -ENOSPC;
}

/*
 * The writer: fills the pool one and a half times over, so that every slot was written and nothing
 * is free.
 */
static int write_all(void *arg)
{
	struct copy_case *c = arg;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	int r = bench_connect(&c->daemon, "bench-writer", &pool);

	if (r == 0)
		r = bench_namespace(pool, "bench-copy", 1, c->block, &ns);
	for (uint32_t i = 0; r == 0 && i < c->chains + c->chains / 2; i++)
		r = put_chain(c, ns, i);
	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot fill the pool: %s\n", strerror(-r));
	return r;
}

static double run_put(void *arg)
{
	struct copy_case *c = arg;
	double t = bench_now();

	for (uint32_t i = 0; i < c->ops; i++) {
		int r = put_chain(c, c->ns, 1000000 + c->put++);

		if (r < 0)
			return r;
	}
	return (bench_now() - t) / c->ops;
}

/* Reads chains that were put by the writer and are still there. */
static double run_get(void *arg)
{
	struct copy_case *c = arg;
	struct iovec iov = {c->buffer, BATCH * c->block};
	int32_t tokens[BATCH + 1];
	double spent = 0;

	for (uint32_t i = 0; i < c->ops; i++) {
		double t;
		int r;

		/* The newest half of what the writer wrote, in turns. */
		chain_tokens(c->chains + c->next++ % (c->chains / 2), tokens);
		t = bench_now();
		if (kvpool_acquire(c->ns, c->lease, tokens, BATCH + 1, 0) != BATCH)
			return -EIO;
		r = kvpool_lease_read(c->lease, 0, &iov, 1, 0);
		kvpool_release(c->lease);
		spent += bench_now() - t;
		if (r < 0)
			return r;
	}
	return spent / c->ops;
}

static void copy(const struct copy_case *c, char *dst, const char *src)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		if (c->nt)
			bench_copy_nt(dst + i * c->block, src + i * c->block, c->block);
		else
			memcpy(dst + i * c->block, src + i * c->block, c->block);
	}
}

static char *next_memory(struct copy_case *c)
{
	return c->memory + (uint64_t)(c->next++ % c->chains) * BATCH * c->block;
}

/* Both ways to copy; the faster counts. */
static double copy_limit(struct copy_case *c, int in)
{
	double best = 0;

	for (c->nt = 0; c->nt < 2; c->nt++) {
		double t = bench_now();

		for (uint32_t i = 0; i < c->ops; i++) {
			char *m = next_memory(c);

			copy(c, in ? m : c->buffer, in ? c->buffer : m);
		}
		t = (bench_now() - t) / c->ops;
		best = c->nt ? MIN(best, t) : t;
	}
	return best;
}

static double run_copy_in(void *arg)
{
	return copy_limit(arg, 1);
}

static double run_copy_out(void *arg)
{
	return copy_limit(arg, 0);
}

/* The pool is full when a new chain cannot be had without an older one going. */
static int pool_is_full(struct copy_case *c)
{
	int32_t tokens[BATCH + 1];

	return kvpool_acquire(c->ns, c->lease, chain_tokens(0, tokens), BATCH + 1, 0) == 0;
}

static int emit(struct copy_case *c, const char *name, double bar, bench_run value, bench_run limit)
{
	struct bench_result r = {.name = name,
				 .unit = "us",
				 .bar = bar,
				 .limit = "128 copies of the same size, memcpy or non-temporal"};
	int full = pool_is_full(c), e;

	kvpool_release(c->lease);
	e = bench_measure(&r, c->opt, value, limit, c);
	if (e < 0)
		return e;
	r.with.writer_pid = c->writer.pid;
	r.with.pool_full = full;
	r.with.descriptors = (uint64_t)c->chains * BATCH;
	if (!full)
		r.why_not = "the pool is not full";
	bench_emit(&r);
	return 0;
}

static int prepare(struct copy_case *c)
{
	uint64_t batch = BATCH * c->block, bytes = batch * c->chains;
	int r;

	c->buffer = mmap(NULL, batch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	c->memory = bench_shared_memory(bytes);
	if (c->buffer == MAP_FAILED || !c->memory)
		return -ENOMEM;
	memset(c->buffer, 1, batch);
	r = private_daemon_start(&c->daemon, c->opt->daemon, BENCH_NAME, bytes,
				 c->chains * BATCH * 2);
	if (r == 0)
		r = bench_writer_start(&c->writer, write_all, c);
	if (r == 0)
		r = bench_connect(&c->daemon, "bench-reader", &c->pool);
	if (r == 0)
		r = bench_namespace(c->pool, "bench-copy", 1, c->block, &c->ns);
	return r < 0 ? r : kvpool_lease_new(c->pool, BATCH, &c->lease);
}

static void finish(struct copy_case *c)
{
	uint64_t batch = BATCH * c->block;

	kvpool_lease_free(c->lease);
	kvpool_ns_close(c->ns);
	kvpool_close(c->pool);
	bench_writer_stop(&c->writer);
	private_daemon_stop(&c->daemon);
	if (c->memory)
		munmap(c->memory, batch * c->chains);
	if (c->buffer != MAP_FAILED)
		munmap(c->buffer, batch);
}

static int run_size(const struct bench_options *opt, uint64_t block, uint32_t chains, uint32_t ops,
		    const char *get, double get_bar, const char *put, double put_bar)
{
	struct copy_case c = {.opt = opt,
			      .block = block,
			      .chains = chains,
			      .ops = ops,
			      .writer = {.hold = -1},
			      .buffer = MAP_FAILED};
	int r = prepare(&c);

	if (r == 0)
		r = emit(&c, get, get_bar, run_get, run_copy_out);
	if (r == 0)
		r = emit(&c, put, put_bar, run_put, run_copy_in);
	finish(&c);
	return r;
}

static int run(const struct bench_options *opt)
{
	int r = run_size(opt, MIB(2), 6, 1, "get/2M", 1.05, "put/2M", 1.15);

	return r < 0 ? r : run_size(opt, KIB(16), 512, 64, "get/16K", 1.5, "put/16K", 2);
}

const struct bench_group bench_copy = {"copy", run};
