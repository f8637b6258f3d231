/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup/128, lookup/1024, lookup/miss, lookup/pin: acquires against plain probes of a table of the
 * same size as the descriptors, in memory of the same kind. Another process wrote the blocks; each
 * acquire takes a chain at random out of all of them, so that neither side finds its lines in the
 * near caches.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tools/bench/bench.h"

#define CHAIN	    1024u /* blocks of one chain; shorter prompts take its first ones */
#define BLOCK	    4096u
#define SEED	    11u
#define OPS	    2000u
#define MISS_SEED   12u
#define MISS_CHAINS 64u

struct lookup_case {
	const struct bench_options *opt;
	struct private_daemon daemon;
	struct bench_writer writer;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_key *keys; /* of every chain, one after the other */
	struct kvpool_key *miss;
	uint32_t chains;
	uint64_t random;
	uint64_t *table; /* lines of 8 words */
	uint64_t mask;	 /* of line numbers */
	uint32_t n;	 /* keys of one lookup */
	volatile uint64_t sink;
};

static int write_chain(struct kvpool_ns *ns, const struct kvpool_key *keys)
{
	struct kvpool_write *w;
	int r = kvpool_reserve_keys(ns, NULL, keys, CHAIN, &w);

	if (r < 0)
		return r;
	for (uint32_t i = 0; r == (int)CHAIN && i < CHAIN; i++)
		memcpy(kvpool_write_block(w, i), &keys[i], sizeof(keys[i]));
	r = kvpool_commit(w, CHAIN);
	kvpool_write_free(w);
	return r == (int)CHAIN ? 0 : r < 0 ? r : -ENOSPC;
}

/* In the writer's process. */
static int write_all(void *arg)
{
	struct lookup_case *c = arg;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	int r = bench_connect(&c->daemon, "bench-writer", &pool);

	if (r == 0)
		r = bench_namespace(pool, "bench-lookup", 16, BLOCK, &ns);
	for (uint32_t i = 0; r == 0 && i < c->chains; i++)
		r = write_chain(ns, &c->keys[(size_t)i * CHAIN]);
	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot fill the pool: %s\n", strerror(-r));
	return r;
}

static const struct kvpool_key *random_chain(struct lookup_case *c)
{
	return &c->keys[(size_t)(bench_random(&c->random) % c->chains) * CHAIN];
}

static double run_acquire(struct lookup_case *c, unsigned int flags, int pointers)
{
	double t = bench_now();

	for (unsigned int i = 0; i < OPS; i++) {
		const struct kvpool_key *k = random_chain(c);
		uintptr_t sum = 0;

		if (kvpool_acquire_keys(c->ns, c->lease, k, c->n, flags) != (size_t)c->n * 16)
			return -EIO;
		for (uint32_t b = 0; pointers && b < c->n; b++)
			sum += (uintptr_t)kvpool_lease_block(c->lease, b);
		c->sink += sum;
		kvpool_release(c->lease);
	}
	return (bench_now() - t) / OPS;
}

static double run_lookup(void *arg)
{
	return run_acquire(arg, 0, 1);
}

static double run_pin(void *arg)
{
	return run_acquire(arg, KVPOOL_DEPTH_ONLY, 0);
}

static double run_miss(void *arg)
{
	struct lookup_case *c = arg;
	double t = bench_now();

	for (unsigned int i = 0; i < OPS; i++) {
		size_t at = (size_t)(bench_random(&c->random) % MISS_CHAINS) * CHAIN;

		if (kvpool_acquire_keys(c->ns, c->lease, &c->miss[at + i % CHAIN / 2], c->n, 0) !=
		    0)
			return -EIO;
		kvpool_release(c->lease);
	}
	return (bench_now() - t) / OPS;
}

/* As many probes of one line each as keys, sixteen in flight. */
static double run_probes(void *arg)
{
	struct lookup_case *c = arg;
	double t = bench_now();
	uint64_t sum = 0;

	for (unsigned int i = 0; i < OPS; i++) {
		const struct kvpool_key *k = random_chain(c);

		for (uint32_t b = 0; b < c->n; b += 16) {
			uint32_t end = MIN(c->n, b + 16);

			for (uint32_t j = b; j < end; j++)
				__builtin_prefetch(&c->table[(k[j].w[0] & c->mask) * 8]);
			for (uint32_t j = b; j < end; j++)
				sum += c->table[(k[j].w[0] & c->mask) * 8] == k[j].w[1];
		}
	}
	c->sink += sum;
	return (bench_now() - t) / OPS;
}

/* One probe that needs the one before. */
static double run_dependent(void *arg)
{
	struct lookup_case *c = arg;
	uint64_t at = bench_random(&c->random);
	unsigned int n = OPS * 8;
	double t = bench_now();

	for (unsigned int i = 0; i < n; i++)
		at = at * 0x9e3779b97f4a7c15ull + c->table[(at >> 24 & c->mask) * 8];
	c->sink += at;
	return (bench_now() - t) / n;
}

/*
 * In a process of its own: after this it may call read, write and exit only, and dies at anything
 * else. Ends with exit code 0 when 1000 lookups made no system call.
 */
static void lookups_under_seccomp(struct lookup_case *c)
{
	struct kvpool *pool;

	if (bench_connect(&c->daemon, "bench-seccomp", &pool) < 0 ||
	    bench_namespace(pool, "bench-lookup", 16, BLOCK, &c->ns) < 0 ||
	    kvpool_lease_new(pool, CHAIN, &c->lease) < 0)
		_exit(2);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	for (unsigned int i = 0; i < 1000; i++) {
		const struct kvpool_key *k = random_chain(c);

		if (!kvpool_acquire_keys(c->ns, c->lease, k, c->n, 0) ||
		    !kvpool_lease_block(c->lease, c->n - 1))
			syscall(SYS_exit, 2);
		kvpool_release(c->lease);
	}
	syscall(SYS_exit, 0);
}

/* Whether a lookup makes system calls: 0 no, 1 yes, -errno when it could not be found out. */
static int makes_syscalls(struct lookup_case *c)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		lookups_under_seccomp(c);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return 1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int emit(struct lookup_case *c, struct bench_result *r, bench_run value, bench_run limit)
{
	int e = bench_measure(r, c->opt, value, limit, c);

	if (e < 0)
		return e;
	r->with.descriptors = (uint64_t)c->chains * CHAIN;
	r->with.writer_pid = c->writer.pid;
	if (r->with.descriptors < 1000000)
		r->why_not = "fewer than 1 M other descriptors";
	bench_emit(r);
	return 0;
}

static int run_cases(struct lookup_case *c)
{
	struct bench_result l128 = {.name = "lookup/128",
				    .unit = "ns",
				    .bar = 3,
				    .limit = "128 plain prefetched probes of one line"};
	struct bench_result l1024 = {.name = "lookup/1024",
				     .unit = "ns",
				     .bar = 3,
				     .limit = "1024 plain prefetched probes of one line"};
	struct bench_result miss = {
		.name = "lookup/miss", .unit = "ns", .bar = 6, .limit = "one dependent probe"};
	struct bench_result pin = {
		.name = "lookup/pin", .unit = "ns", .bar = 12, .limit = "one dependent probe"};
	int e;

	c->n = 128;
	e = makes_syscalls(c);
	if (e < 0)
		return e;
	l128.with.syscalls_counted = 1;
	l128.with.syscalls = (uint64_t)e;
	if (e)
		l128.why_not = "made system calls";
	e = emit(c, &l128, run_lookup, run_probes);
	c->n = 1024;
	if (e == 0)
		e = emit(c, &l1024, run_lookup, run_probes);
	c->n = 128;
	if (e == 0)
		e = emit(c, &miss, run_miss, run_dependent);
	if (e == 0)
		e = emit(c, &pin, run_pin, run_dependent);
	return e;
}

static int prepare(struct lookup_case *c)
{
	uint64_t lines = (uint64_t)c->chains * CHAIN;
	size_t bytes = (size_t)lines * sizeof(struct kvpool_key);
	int r;

	c->keys = malloc(bytes);
	c->miss = malloc(MISS_CHAINS * CHAIN * sizeof(struct kvpool_key));
	c->mask = pow2_ceil(lines) - 1;
	c->table = bench_shared_memory((c->mask + 1) * 64);
	if (!c->keys || !c->miss || !c->table)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->chains; i++)
		bench_chain(SEED, i, &c->keys[(size_t)i * CHAIN], CHAIN);
	for (uint32_t i = 0; i < MISS_CHAINS; i++)
		bench_chain(MISS_SEED, i, &c->miss[(size_t)i * CHAIN], CHAIN);
	r = private_daemon_start(&c->daemon, c->opt->daemon, BENCH_NAME,
				 lines * BLOCK + (64u << 20), lines + 4096);
	if (r == 0)
		r = bench_writer_start(&c->writer, write_all, c);
	if (r == 0)
		r = bench_connect(&c->daemon, "bench-reader", &c->pool);
	if (r == 0)
		r = bench_namespace(c->pool, "bench-lookup", 16, BLOCK, &c->ns);
	return r < 0 ? r : kvpool_lease_new(c->pool, CHAIN, &c->lease);
}

static int run(const struct bench_options *opt)
{
	struct lookup_case c = {.opt = opt,
				.chains = (uint32_t)(opt->descriptors / CHAIN) + 1,
				.random = 1,
				.writer = {.hold = -1}};
	int r = prepare(&c);

	if (r == 0)
		r = run_cases(&c);
	kvpool_lease_free(c.lease);
	kvpool_ns_close(c.ns);
	kvpool_close(c.pool);
	bench_writer_stop(&c.writer);
	private_daemon_stop(&c.daemon);
	if (c.table)
		munmap(c.table, (c.mask + 1) * 64);
	free(c.miss);
	free(c.keys);
	return r;
}

const struct bench_group bench_lookup = {"lookup", run};
