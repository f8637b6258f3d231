/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the model costs, without a socket and without the bytes: times in nanoseconds a block, with
 * the pool full, so that every put evicts.
 *
 * 	pool-bench [BLOCKS [CHAIN [HAZARDS]]]
 *
 * BLOCKS of 4 KiB, written in chains of CHAIN, with HAZARDS words to scan.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/clock.h"
#include "daemon/pool.h"
#include "shm/granule.h"

#define RUN    128u
#define ROUNDS 20000u

struct shell {
	uint64_t *hazard;
	uint32_t n_hazards;
};

static void on_scan_pins(void *ctx, struct pinset *pins)
{
	const struct shell *s = ctx;

	pinset_scan(pins, s->hazard, s->n_hazards);
}

static void on_range(void *ctx, uint64_t offset, uint64_t bytes)
{
}

static void on_wake(void *ctx, struct pool_waiter *w, uint32_t present)
{
}

static void on_pin_ended(void *ctx, const struct pool_pin *pin, enum pool_pin_end why)
{
}

static const struct pool_ops ops = {
	.scan_pins = on_scan_pins,
	.populate = on_range,
	.punch = on_range,
	.drop = on_range,
	.wake = on_wake,
	.pin_ended = on_pin_ended,
};

static void die(const char *what, int r)
{
	fprintf(stderr, "pool-bench: %s: %s\n", what, strerror(-r));
	exit(1);
}

static uint64_t resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t open_namespace(struct pool *p)
{
	static uint8_t desc[16] = "pool-bench";
	struct nsdesc_values v = { .model = "pool-bench", .block_tokens = 16, .block_bytes = 4096 };
	uint32_t ns, near;
	int created, r = pool_ns_open(p, desc, sizeof(desc), &v, clock_ns(), &ns, &created, &near);

	if (r < 0)
		die("opening a namespace", r);
	pool_ns_hold(p, ns);
	return ns;
}

/* Of each run, in ns. */
struct put {
	uint32_t reserve[ROUNDS], commit[ROUNDS], tick[ROUNDS];
	uint32_t n;
};

static struct block_key keys[RUN], tip;
static uint64_t chain_at, h = 1;

static void put_run(struct pool *p, struct pool_owner *o, uint32_t ns, uint32_t chain,
		    struct put *t)
{
	static struct pool_grant grants[RUN];
	static uint8_t verdicts[RUN];
	uint64_t t0, t1, t2;
	uint32_t full;
	int n;

	for (uint32_t i = 0; i < RUN; i++)
		for (uint32_t w = 0; w < KEY_WORDS; w++)
			keys[i].w[w] = h = mix64(h + 0x9e3779b97f4a7c15ull);
	t0 = clock_ns();
	n = pool_reserve(p, o, ns, chain_at ? &tip : NULL, keys, RUN, t0, verdicts, grants, &full);
	t1 = clock_ns();
	if (n < 0)
		die("reserving", n);
	for (int i = 0; i < n; i++)
		if (pool_commit(p, o, grants[i].desc, grants[i].gen, 0, t1) != VERDICT_COMMITTED)
			die("committing", -EINVAL);
	t2 = clock_ns();
	if (n != (int)RUN)
		die("reserving all of a run", -ENOSPC);
	pool_tick(p, t2);
	t->reserve[t->n % ROUNDS] = (uint32_t)(t1 - t0);
	t->commit[t->n % ROUNDS] = (uint32_t)(t2 - t1);
	t->tick[t->n % ROUNDS] = (uint32_t)(clock_ns() - t2);
	t->n++;
	tip = keys[RUN - 1];
	chain_at = (chain_at + RUN) % chain;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The best one and the median, for each block of a run. */
static void show_one(const char *what, uint32_t *ns, uint32_t n)
{
	qsort(ns, n, sizeof(*ns), compare);
	printf("  %s %.1f / %.1f", what, (double)ns[0] / RUN, (double)ns[n / 2] / RUN);
}

static void show(const char *what, struct put *t)
{
	uint32_t n = MIN(t->n, ROUNDS);

	printf("%-18s ns a block, best / median:", what);
	show_one("reserve", t->reserve, n);
	show_one("commit", t->commit, n);
	show_one("tick", t->tick, n);
	putchar('\n');
}

static void flush_all(struct pool *p, uint32_t ns)
{
	struct pool_flushed f = { .freed_blocks = 0 };
	uint64_t t0 = clock_ns(), longest = 0, total;
	int more;

	do {
		uint64_t t1 = clock_ns();

		more = pool_flush(p, ns, 0, t1, &f);
		longest = MAX(longest, clock_ns() - t1);
	} while (more > 0);
	total = clock_ns() - t0;
	printf("%-18s %.1f ns a block; longest call %.1f ms\n", "flush",
	       (double)total / (double)f.freed_blocks, (double)longest / 1e6);
}

int main(int argc, char **argv)
{
	uint32_t blocks = argc > 1 ? (uint32_t)atoi(argv[1]) : 1u << 20;
	uint32_t chain = argc > 2 ? (uint32_t)atoi(argv[2]) : 1024;
	struct shell shell = { .n_hazards = argc > 3 ? (uint32_t)atoi(argv[3]) : 16384 };
	struct pool_config cfg = {
		.max_blocks = blocks + blocks / 4,
		.max_namespaces = 64,
		.reservation_ns = 30 * NSEC_PER_SEC,
		.quarantine_ns = NSEC_PER_SEC,
	};
	static struct put fill, full;
	struct pool_owner o;
	struct pool *p;
	uint64_t before, after;
	uint32_t ns;
	int r;

	cfg.granule_shift = granule_shift_of((uint64_t)blocks * 4096);
	cfg.pool_bytes = (uint64_t)blocks * 4096 >> cfg.granule_shift << cfg.granule_shift;
	shell.hazard = calloc(shell.n_hazards, sizeof(*shell.hazard));
	if (!shell.hazard)
		die("memory", -ENOMEM);
	r = pool_new(&cfg, &ops, &shell, &p);
	if (r < 0)
		die("making a pool", r);
	pool_owner_init(&o, 1);
	ns = open_namespace(p);
	before = resident();
	for (uint32_t i = 0; i < blocks / RUN; i++)
		put_run(p, &o, ns, chain, &fill);
	after = resident();
	for (uint32_t i = 0; i < ROUNDS; i++)
		put_run(p, &o, ns, chain, &full);
	printf("%u blocks in chains of %u, %u hazard words, runs of %u\n", blocks, chain,
	       shell.n_hazards, RUN);
	show("put, pool filling", &fill);
	show("put, pool full", &full);
	printf("%-18s %.1f bytes a block\n", "memory", (double)(after - before) / blocks);
	flush_all(p, ns);
	pool_owner_gone(p, &o, clock_ns());
	pool_free(p);
	free(shell.hazard);
	return 0;
}
