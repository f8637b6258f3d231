/* SPDX-License-Identifier: Apache-2.0 */
/*
 * get/2M, put/2M, get/16K, put/16K: 128 blocks out of the pool and into it, in one call, against
 * the faster of memcpy and a non-temporal copy of the same bytes over the same amount of memory.
 *
 * The pool is full, so each put evicts. Pages are warm: the writer wrote all of the pool, and
 * before the clock starts this process reads what it will get, and puts until it has written
 * everywhere. What was put is found by another process at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tools/bench/bench.h"

#define BATCH 128u
#define SEED  21u
#define OWN   1000000u /* number of the first chain that this process puts */

struct copy_case {
	const struct bench_options *opt;
	struct private_daemon daemon;
	struct bench_child writer, reader;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	uint64_t block;
	uint32_t chains; /* that fill the pool */
	uint32_t next;   /* chain to write or read next */
	uint32_t ops;    /* batches in one measurement */
	uint64_t put;    /* chains ever written by this process */
	char *buffer;    /* of BATCH blocks: the application's */
	char *memory;    /* as large as the pool, for the limit */
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

static int put_next(struct copy_case *c)
{
	int r = put_chain(c, c->ns, OWN + c->put);

	c->put += r == 0;
	return r;
}

static double run_put(void *arg)
{
	struct copy_case *c = arg;
	double t = bench_now();

	for (uint32_t i = 0; i < c->ops; i++) {
		int r = put_next(c);

		if (r < 0)
			return r;
	}
	return (bench_now() - t) / c->ops;
}

/* Reads chains that were put by the writer and are still there. */
static double run_get(void *arg)
{
	struct copy_case *c = arg;
	struct iovec iov = { c->buffer, BATCH * c->block };
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

/* Blocks of a chain that are cached. */
static size_t depth_of(struct copy_case *c, uint64_t number)
{
	int32_t tokens[BATCH + 1];
	size_t n = kvpool_acquire(c->ns, c->lease, chain_tokens(number, tokens), BATCH + 1, 0);

	kvpool_release(c->lease);
	return n;
}

/* Measures; says that the pool is full when the chain that was put first is gone. */
static int measure(struct copy_case *c, struct bench_result *r, uint64_t first, bench_run value,
		   bench_run limit)
{
	int e;

	r->unit = "us";
	r->limit = "128 copies of the same size, memcpy or non-temporal";
	r->with.pool_full = depth_of(c, first) == 0;
	if (!r->with.pool_full)
		r->why_not = "the pool is not full";
	r->with.descriptors = (uint64_t)c->chains * BATCH;
	e = bench_measure(r, c->opt, value, limit, c);
	r->with.writer_pid = c->writer.pid;
	return e;
}

static int emit_get(struct copy_case *c, const char *name, double bar)
{
	struct bench_result r = { .name = name, .bar = bar };
	int e = 0;

	for (uint32_t i = 0; i < c->chains / 2 && e >= 0; i += c->ops)
		e = (int)MIN(run_get(c), 0);
	if (e == 0)
		e = measure(c, &r, 0, run_get, run_copy_out);
	if (e == 0)
		bench_emit(&r);
	return e;
}

/* In another process: looks for what was put last. */
static int find_last_put(void *arg)
{
	struct copy_case *c = arg;
	struct kvpool *pool;
	int r = bench_connect(&c->daemon, "bench-finder", &pool);

	if (r == 0)
		r = bench_namespace(pool, "bench-copy", 1, c->block, &c->ns);
	if (r == 0)
		r = kvpool_lease_new(pool, BATCH, &c->lease);
	return r < 0 ? r : depth_of(c, OWN + c->put - 1) == BATCH ? 0 : -ENODATA;
}

static int emit_put(struct copy_case *c, const char *name, double bar)
{
	struct bench_result r = { .name = name, .bar = bar };
	int e = 0;

	while (e == 0 && c->put < c->chains + c->chains / 2)
		e = put_next(c);
	if (e == 0)
		e = measure(c, &r, OWN, run_put, run_copy_in);
	if (e == 0)
		e = bench_child_start(&c->reader, find_last_put, c);
	if (e < 0)
		return e;
	r.with.writer_pid = getpid();
	r.with.reader_pid = c->reader.pid;
	bench_child_stop(&c->reader);
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
		r = bench_child_start(&c->writer, write_all, c);
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
	bench_child_stop(&c->writer);
	private_daemon_stop(&c->daemon);
	if (c->memory)
		munmap(c->memory, batch * c->chains);
	if (c->buffer != MAP_FAILED)
		munmap(c->buffer, batch);
}

/* Pools of chains chains of blocks of this size; ops batches in one measurement. */
static const struct copy_case sizes[] = {
	{ .block = MIB(2), .chains = 6, .ops = 1 },
	{ .block = KIB(16), .chains = 512, .ops = 64 },
};

static const struct {
	const char *get, *put;
	double get_bar, put_bar;
} bars[] = {
	{ "get/2M", "put/2M", 1.05, 1.15 },
	{ "get/16K", "put/16K", 1.5, 2 },
};

static int run_size(const struct bench_options *opt, unsigned int i)
{
	struct copy_case c = sizes[i];
	int r;

	c.opt = opt;
	c.writer.hold = c.reader.hold = -1;
	c.buffer = MAP_FAILED;
	r = prepare(&c);
	if (r == 0)
		r = emit_get(&c, bars[i].get, bars[i].get_bar);
	if (r == 0)
		r = emit_put(&c, bars[i].put, bars[i].put_bar);
	finish(&c);
	return r;
}

static int run(const struct bench_options *opt)
{
	int r = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes) && r == 0; i++)
		r = run_size(opt, i);
	return r;
}

const struct bench_group bench_copy = { "copy", { "get/2M", "put/2M", "get/16K", "put/16K" }, run };
