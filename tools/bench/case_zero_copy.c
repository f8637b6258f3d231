/* SPDX-License-Identifier: Apache-2.0 */
/*
 * get/2M zero-copy: acquire and read one word of each of 128 blocks of 2 MiB, against the same with
 * blocks of 64 KiB: what is not copied does not cost by its size. The library's copy counters must
 * stay 0.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "tools/bench/bench.h"

#define BATCH  128u
#define CHAINS 4u
#define OPS    200u

struct side {
	struct kvpool_ns *ns;
	uint64_t block;
	struct kvpool_key keys[CHAINS][BATCH];
};

struct zero_copy_case {
	struct private_daemon daemon;
	struct bench_child writer;
	struct kvpool *pool;
	struct kvpool_lease *lease;
	struct side large, small;
	uint32_t next;
	volatile uint64_t sink;
};

static int write_side(const struct side *s, struct kvpool *pool)
{
	struct kvpool_ns *ns;
	int r = bench_namespace(pool, "bench-zero-copy", 16, s->block, &ns);

	for (uint32_t i = 0; r == 0 && i < CHAINS; i++) {
		struct kvpool_write *w;

		r = kvpool_reserve_keys(ns, NULL, s->keys[i], BATCH, &w);
		if (r < 0)
			break;
		for (uint32_t b = 0; r == (int)BATCH && b < BATCH; b++)
			memset(kvpool_write_block(w, b), 1, s->block);
		r = kvpool_commit(w, BATCH) == (int)BATCH ? 0 : -ENOSPC;
		kvpool_write_free(w);
	}
	return r;
}

static int write_all(void *arg)
{
	struct zero_copy_case *c = arg;
	struct kvpool *pool;
	int r = bench_connect(&c->daemon, "bench-writer", &pool);

	if (r == 0)
		r = write_side(&c->large, pool);
	return r < 0 ? r : write_side(&c->small, pool);
}

static double run_side(struct zero_copy_case *c, const struct side *s)
{
	double t = bench_now();

	for (uint32_t i = 0; i < OPS; i++) {
		if (kvpool_acquire_keys(s->ns, c->lease, s->keys[c->next++ % CHAINS], BATCH, 0) !=
		    BATCH * 16)
			return -EIO;
		for (uint32_t b = 0; b < BATCH; b++)
			c->sink += *(const uint64_t *)kvpool_lease_block(c->lease, b);
		kvpool_release(c->lease);
	}
	return (bench_now() - t) / OPS;
}

static double run_large(void *arg)
{
	struct zero_copy_case *c = arg;

	return run_side(c, &c->large);
}

static double run_small(void *arg)
{
	struct zero_copy_case *c = arg;

	return run_side(c, &c->small);
}

static int measure(struct zero_copy_case *c, const struct bench_options *opt)
{
	struct bench_result r = { .name = "get/2M zero-copy",
				  .unit = "us",
				  .bar = 1.2,
				  .limit = "the same with blocks of 64 KiB" };
	struct kvpool_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	int e;

	kvpool_get_stats(c->pool, &before);
	e = bench_measure(&r, opt, run_large, run_small, c);
	if (e < 0)
		return e;
	kvpool_get_stats(c->pool, &after);
	r.with.writer_pid = c->writer.pid;
	r.with.descriptors = 2 * CHAINS * BATCH;
	if (after.copied_out_bytes != before.copied_out_bytes ||
	    after.copied_in_bytes != before.copied_in_bytes)
		r.why_not = "bytes were copied";
	bench_emit(&r);
	return 0;
}

static int run(const struct bench_options *opt)
{
	static struct zero_copy_case c;
	int r;

	c.writer.hold = -1;
	c.large.block = MIB(2);
	c.small.block = KIB(64);
	for (uint32_t i = 0; i < CHAINS; i++) {
		bench_chain(31, i, c.large.keys[i], BATCH);
		bench_chain(32, i, c.small.keys[i], BATCH);
	}
	r = private_daemon_start(&c.daemon, opt->daemon, BENCH_NAME, GIB(2), 16384);
	if (r == 0)
		r = bench_child_start(&c.writer, write_all, &c);
	if (r == 0)
		r = bench_connect(&c.daemon, "bench-reader", &c.pool);
	if (r == 0)
		r = bench_namespace(c.pool, "bench-zero-copy", 16, MIB(2), &c.large.ns);
	if (r == 0)
		r = bench_namespace(c.pool, "bench-zero-copy", 16, KIB(64), &c.small.ns);
	if (r == 0)
		r = kvpool_lease_new(c.pool, BATCH, &c.lease);
	if (r == 0)
		r = measure(&c, opt);
	kvpool_lease_free(c.lease);
	kvpool_ns_close(c.large.ns);
	kvpool_ns_close(c.small.ns);
	kvpool_close(c.pool);
	bench_child_stop(&c.writer);
	private_daemon_stop(&c.daemon);
	return r;
}

const struct bench_group bench_zero_copy = { "zero-copy", { "get/2M zero-copy" }, run };
