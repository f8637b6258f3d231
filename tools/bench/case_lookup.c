/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup/128, lookup/1024, lookup/miss, lookup/pin: acquires against plain probes of a table of the
 * same size as the descriptors, in memory of the same kind. Another process wrote the blocks.
 *
 * Chains are as long as the lookups, and each lookup takes one at random, so that over time all
 * descriptors are asked for, as all lines of the table are: neither side finds its own in the near
 * caches. Keys are hashed already, so they are there: those of a few lookups are put side by side
 * before the clock starts.
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

#define BLOCK       4096u
#define TOKENS      16u /* of a block */
#define SEED        11u
#define KEYS        256000u /* looked up in one measurement */
#define SIDE        8u      /* lookups whose keys lie side by side */
#define IN_FLIGHT   16u     /* plain probes */
#define DESCRIPTORS 1000000u

struct lookup_case {
	const struct bench_options *opt;
	struct private_daemon daemon;
	struct bench_child writer;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	uint32_t n;              /* blocks of a chain, and keys of a lookup */
	struct kvpool_key *keys; /* of every chain, one after the other */
	uint32_t chains;
	struct kvpool_key *side;
	uint64_t random;
	uint64_t *table; /* lines of 8 words */
	uint64_t mask;   /* of line numbers */
	volatile uint64_t sink;
};

/* In the writer's process. */
static int write_all(void *arg)
{
	struct lookup_case *c = arg;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	int r = bench_connect(&c->daemon, "bench-writer", &pool);

	if (r == 0)
		r = bench_namespace(pool, "bench-lookup", TOKENS, BLOCK, &ns);
	for (uint32_t i = 0; r == 0 && i < c->chains; i++)
		r = bench_write_chain(ns, &c->keys[(size_t)i * c->n], c->n);
	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot fill the pool: %s\n", strerror(-r));
	return r;
}

static void lay_out_chains(struct lookup_case *c)
{
	for (uint32_t i = 0; i < SIDE; i++) {
		size_t chain = (size_t)(bench_random(&c->random) % c->chains);

		memcpy(&c->side[i * c->n], &c->keys[chain * c->n], c->n * sizeof(*c->keys));
	}
}

static void lay_out_misses(struct lookup_case *c)
{
	bench_chain(SEED + 1, bench_random(&c->random), c->side, (size_t)SIDE * c->n);
}

/* One lookup; returns 0 or -errno. */
typedef int (*lookup_fn)(struct lookup_case *c, const struct kvpool_key *keys);

/* Seconds of a lookup, the mean of many; -errno when one failed. */
static double run(struct lookup_case *c, void (*lay_out)(struct lookup_case *), lookup_fn look_up)
{
	uint32_t times = KEYS / (c->n * SIDE);
	double spent = 0;

	for (uint32_t i = 0; i < times; i++) {
		double t;
		int r = 0;

		lay_out(c);
		t = bench_now();
		for (uint32_t k = 0; k < SIDE && r == 0; k++)
			r = look_up(c, &c->side[k * c->n]);
		spent += bench_now() - t;
		if (r < 0)
			return r;
	}
	return spent / (times * SIDE);
}

static int acquire(struct lookup_case *c, const struct kvpool_key *keys)
{
	uintptr_t sum = 0;

	if (kvpool_acquire_keys(c->ns, c->lease, keys, c->n, 0) != (size_t)c->n * TOKENS)
		return -EIO;
	for (uint32_t b = 0; b < c->n; b++)
		sum += (uintptr_t)kvpool_lease_block(c->lease, b);
	c->sink += sum;
	kvpool_release(c->lease);
	return 0;
}

static int pin(struct lookup_case *c, const struct kvpool_key *keys)
{
	size_t tokens = kvpool_acquire_keys(c->ns, c->lease, keys, c->n, KVPOOL_DEPTH_ONLY);

	kvpool_release(c->lease);
	return tokens == (size_t)c->n * TOKENS ? 0 : -EIO;
}

static int miss(struct lookup_case *c, const struct kvpool_key *keys)
{
	size_t tokens = kvpool_acquire_keys(c->ns, c->lease, keys, c->n, 0);

	kvpool_release(c->lease);
	return tokens ? -EIO : 0;
}

/* As many probes of one line each as keys. */
static int probe(struct lookup_case *c, const struct kvpool_key *keys)
{
	uint64_t sum = 0;

	for (uint32_t b = 0; b < c->n; b += IN_FLIGHT) {
		uint32_t end = MIN(c->n, b + IN_FLIGHT);

		for (uint32_t j = b; j < end; j++)
			__builtin_prefetch(&c->table[(keys[j].w[0] & c->mask) * 8]);
		for (uint32_t j = b; j < end; j++)
			sum += c->table[(keys[j].w[0] & c->mask) * 8] == keys[j].w[1];
	}
	c->sink += sum;
	return 0;
}

static double run_acquire(void *arg)
{
	return run(arg, lay_out_chains, acquire);
}

static double run_pin(void *arg)
{
	return run(arg, lay_out_chains, pin);
}

static double run_miss(void *arg)
{
	return run(arg, lay_out_misses, miss);
}

static double run_probes(void *arg)
{
	return run(arg, lay_out_chains, probe);
}

/* One probe that needs the one before. */
static double run_dependent(void *arg)
{
	struct lookup_case *c = arg;
	uint64_t at = bench_random(&c->random);
	unsigned int n = KEYS / 16;
	double t = bench_now();

	for (unsigned int i = 0; i < n; i++)
		at = at * 0x9e3779b97f4a7c15ull + c->table[(at >> 24 & c->mask) * 8];
	c->sink += at;
	return (bench_now() - t) / n;
}

/*
 * In a process of its own: from the prctl on it may call read, write and exit only, and dies at
 * anything else. Ends with exit code 0 when a thousand lookups made no system call.
 */
static void lookups_under_seccomp(struct lookup_case *c)
{
	struct kvpool *pool;
	int r = 0;

	if (bench_connect(&c->daemon, "bench-seccomp", &pool) < 0 ||
	    bench_namespace(pool, "bench-lookup", TOKENS, BLOCK, &c->ns) < 0 ||
	    kvpool_lease_new(pool, c->n, &c->lease) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0)
		_exit(2);
	for (unsigned int i = 0; i < 1000 / SIDE && r == 0; i++) {
		lay_out_chains(c);
		for (uint32_t k = 0; k < SIDE && r == 0; k++)
			r = acquire(c, &c->side[k * c->n]);
	}
	syscall(SYS_exit, r ? 2 : 0);
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
	/* Beside the chain that is looked up. */
	r->with.descriptors = (uint64_t)(c->chains - 1) * c->n;
	r->with.writer_pid = c->writer.pid;
	if (!r->why_not && r->with.descriptors < DESCRIPTORS)
		r->why_not = "fewer than 1 M other descriptors";
	bench_emit(r);
	return 0;
}

static int emit_lookup(struct lookup_case *c, const char *name, const char *limit)
{
	struct bench_result r = { .name = name, .unit = "ns", .bar = 3, .limit = limit };
	int e = makes_syscalls(c);

	if (e < 0)
		return e;
	r.with.syscalls_counted = 1;
	r.with.syscalls = (uint64_t)e;
	if (e)
		r.why_not = "made system calls";
	return emit(c, &r, run_acquire, run_probes);
}

static int run_128(struct lookup_case *c)
{
	struct bench_result misses = {
		.name = "lookup/miss", .unit = "ns", .bar = 6, .limit = "one dependent probe"
	};
	struct bench_result pins = {
		.name = "lookup/pin", .unit = "ns", .bar = 12, .limit = "one dependent probe"
	};
	int e = emit_lookup(c, "lookup/128", "128 plain prefetched probes of one line");

	if (e == 0)
		e = emit(c, &misses, run_miss, run_dependent);
	return e ? e : emit(c, &pins, run_pin, run_dependent);
}

static int run_1024(struct lookup_case *c)
{
	return emit_lookup(c, "lookup/1024", "1024 plain prefetched probes of one line");
}

static int prepare(struct lookup_case *c)
{
	uint64_t blocks = (uint64_t)c->chains * c->n;
	int r;

	c->keys = malloc((size_t)blocks * sizeof(*c->keys));
	c->side = malloc((size_t)SIDE * c->n * sizeof(*c->side));
	c->mask = pow2_ceil(blocks) - 1;
	c->table = bench_shared_memory((c->mask + 1) * 64);
	if (!c->keys || !c->side || !c->table)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->chains; i++)
		bench_chain(SEED, i, &c->keys[(size_t)i * c->n], c->n);
	r = private_daemon_start(&c->daemon, c->opt->daemon, BENCH_NAME, blocks * BLOCK + MIB(64),
				 blocks + 4096);
	if (r == 0)
		r = bench_child_start(&c->writer, write_all, c);
	if (r == 0)
		r = bench_connect(&c->daemon, "bench-reader", &c->pool);
	if (r == 0)
		r = bench_namespace(c->pool, "bench-lookup", TOKENS, BLOCK, &c->ns);
	return r < 0 ? r : kvpool_lease_new(c->pool, c->n, &c->lease);
}

/* With a pool of chains of n blocks. */
static int run_length(const struct bench_options *opt, uint32_t n,
		      int (*cases)(struct lookup_case *c))
{
	struct lookup_case c = { .opt = opt,
				 .n = n,
				 .chains = (uint32_t)((opt->descriptors + n - 1) / n) + 1,
				 .random = 1,
				 .writer = { .hold = -1 } };
	int r = prepare(&c);

	if (r == 0)
		r = cases(&c);
	kvpool_lease_free(c.lease);
	kvpool_ns_close(c.ns);
	kvpool_close(c.pool);
	bench_child_stop(&c.writer);
	private_daemon_stop(&c.daemon);
	if (c.table)
		munmap(c.table, (c.mask + 1) * 64);
	free(c.side);
	free(c.keys);
	return r;
}

static int run_group(const struct bench_options *opt)
{
	int r = run_length(opt, 128, run_128);

	return r < 0 ? r : run_length(opt, 1024, run_1024);
}

const struct bench_group bench_lookup = {
	"lookup", { "lookup/128", "lookup/1024", "lookup/miss", "lookup/pin" }, run_group
};
