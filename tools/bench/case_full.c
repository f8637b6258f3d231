/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What needs a daemon with a pool full of small blocks: lookup/socket, reserve/64, clients/64,
 * stress/evict, overhead/block, overhead/daemon. Another process filled it.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "tools/bench/full.h"

#define SEED      17u
#define TRIPS     100u /* in one measurement */
#define PUT_KEYS  64u
#define PUTS      50u
#define BATCH     1024u /* blocks put at once under stress */
#define BATCHES   8u
#define DEPENDENT 16000u /* probes */
#define SLACK     16384u /* blocks */

const struct kvpool_key *full_chain(const struct full *c, uint32_t chain)
{
	return &c->keys[(size_t)chain * FULL_CHAIN];
}

/* In the writer's process. */
static int write_all(void *arg)
{
	struct full *c = arg;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	int r = bench_connect(&c->daemon, "bench-writer", &pool);

	if (r == 0)
		r = bench_namespace(pool, FULL_MODEL, FULL_TOKENS, FULL_BLOCK, &ns);
	for (uint32_t i = 0; r == 0 && i < c->chains; i++)
		r = bench_write_chain(ns, full_chain(c, i), FULL_CHAIN);
	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot fill the pool: %s\n", strerror(-r));
	return r;
}

int full_measure(struct full *c, struct bench_result *r, bench_run value, bench_run limit,
		 void *ctx)
{
	int e = bench_measure(r, c->opt, value, limit, ctx);

	if (e < 0)
		return e;
	r->with.descriptors = (uint64_t)c->chains * FULL_CHAIN;
	r->with.writer_pid = c->writer.pid;
	if (r->with.descriptors < FULL_DESCRIPTORS)
		r->why_not = "fewer than 1 M descriptors";
	return 0;
}

static int emit(struct full *c, struct bench_result *r, bench_run value, bench_run limit)
{
	int e = full_measure(c, r, value, limit, c);

	if (e == 0)
		bench_emit(r);
	return e;
}

/* One round trip whose answer says how many keys are there. */
static double ask(struct full *c, const struct kvpool_key *keys)
{
	Kvpool__Touch m = KVPOOL__TOUCH__INIT;
	const Kvpool__TouchReply *reply;
	double t;
	int r;

	m.ns = c->ns;
	m.keys = (ProtobufCBinaryData){ FULL_CHAIN * sizeof(*keys), (uint8_t *)keys };
	r = wire_pack(c->wire, OP_TOUCH, &m.base);
	if (r < 0)
		return r;
	t = wire_trip(c->wire);
	reply = t < 0 ? NULL : wire_reply(c->wire, OP_TOUCH);
	if (t >= 0 && (!reply || reply->present != FULL_CHAIN))
		return -EIO;
	return t;
}

static double ask_echo(struct full *c, const struct kvpool_key *keys)
{
	return echo_trip(&c->echo, c->wire->n_out, c->wire->n_in, keys, FULL_CHAIN);
}

static double run_trips(struct full *c, double (*trip)(struct full *, const struct kvpool_key *))
{
	double spent = 0;

	for (uint32_t i = 0; i < TRIPS; i++) {
		uint32_t chain = (uint32_t)(bench_random(&c->random) % c->chains);
		double t = trip(c, full_chain(c, chain));

		if (t < 0)
			return t;
		spent += t;
	}
	return spent / TRIPS;
}

static double run_asked(void *arg)
{
	return run_trips(arg, ask);
}

static double run_asked_echo(void *arg)
{
	return run_trips(arg, ask_echo);
}

static double put(struct full *c, uint32_t n)
{
	static struct kvpool_key keys[BATCH];

	bench_chain(bench_random(&c->random), 0, keys, n);
	return wire_put(c->wire, c->ns, keys, n, c->sizes);
}

static double run_puts(struct full *c, uint32_t times, uint32_t n)
{
	double spent = 0;

	for (uint32_t i = 0; i < times; i++) {
		double t = put(c, n);

		if (t < 0)
			return t;
		spent += t;
	}
	return spent / times;
}

static double run_reserve(void *arg)
{
	return run_puts(arg, PUTS, PUT_KEYS);
}

/* Two round trips of the sizes of the last put. */
static double run_reserve_echo(void *arg)
{
	struct full *c = arg;
	double spent = 0;

	for (uint32_t i = 0; i < 2 * PUTS; i++) {
		const size_t *size = &c->sizes[i % 2 * 2];
		double t = echo_trip(&c->echo, size[0], size[1], NULL, 0);

		if (t < 0)
			return t;
		spent += t;
	}
	return spent / PUTS;
}

/* Of one block. */
static double run_evict(void *arg)
{
	double t = run_puts(arg, BATCHES, BATCH);

	return t < 0 ? t : t / BATCH;
}

/* One probe that needs the one before. */
static double run_dependent(void *arg)
{
	struct full *c = arg;
	uint64_t at = bench_random(&c->random);
	double t = bench_now();

	for (unsigned int i = 0; i < DEPENDENT; i++)
		at = at * 0x9e3779b97f4a7c15ull + c->table[(at >> 24 & c->mask) * 8];
	c->sink += at;
	return (bench_now() - t) / DEPENDENT;
}

static int run_socket(struct full *c)
{
	struct bench_result asked = { .name = "lookup/socket",
				      .unit = "us",
				      .bar = 1.3,
				      .limit = "a round trip with an epoll loop that probes 128" };

	return emit(c, &asked, run_asked, run_asked_echo);
}

static int run_reserve_64(struct full *c)
{
	struct bench_result r = { .name = "reserve/64",
				  .unit = "us",
				  .bar = 1.5,
				  .limit = "two round trips of these sizes with an epoll loop",
				  .with.pool_full = 1 };

	return emit(c, &r, run_reserve, run_reserve_echo);
}

/* It runs where the client waits, and as long as it waits: so while the daemon works. */
static int run_stress(struct full *c)
{
	struct bench_result r = { .name = "stress/evict",
				  .unit = "ns",
				  .bar = 3,
				  .limit = "one dependent probe",
				  .with.pool_full = 1 };
	const struct sched_param idle = { .sched_priority = 0 };
	uint64_t *count =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct looker l = { .pid = 0 };
	int e = count == MAP_FAILED ? -ENOMEM : looker_start(&l, c, &count[0], &count[1]);

	if (e == 0 && sched_setscheduler(l.pid, SCHED_IDLE, &idle) < 0)
		e = -errno;
	if (e == 0) {
		wire_pin(l.pid, WIRE_CLIENT_CPU);
		e = full_measure(c, &r, run_evict, run_dependent, c);
	}
	if (e == 0) {
		if (!r.why_not && !*(volatile uint64_t *)count)
			r.why_not = "nothing was looked up meanwhile";
		bench_emit(&r);
	}
	looker_stop(&l);
	if (count != MAP_FAILED)
		munmap(count, 4096);
	return e;
}

/* Puts until each takes the place of what was there. */
static int fill_up(struct full *c)
{
	for (uint64_t i = 0; i < SLACK + c->blocks / 8; i += BATCH) {
		double t = put(c, BATCH);

		if (t < 0)
			return (int)t;
	}
	return 0;
}

/* Other chains instead of the last ones, which may be gone by now. */
static int renew(struct full *c)
{
	for (uint32_t i = 0; i < MIN(c->chains, FULL_HOT); i++) {
		struct kvpool_key *keys = &c->keys[(size_t)(c->chains - 1 - i) * FULL_CHAIN];
		double t;

		bench_chain(bench_random(&c->random), 0, keys, FULL_CHAIN);
		t = wire_put(c->wire, c->ns, keys, FULL_CHAIN, c->sizes);
		if (t < 0)
			return (int)t;
	}
	return 0;
}

static int cases(struct full *c)
{
	int r;

	wire_pin(0, WIRE_CLIENT_CPU);
	wire_pin(c->daemon.pid, WIRE_SERVER_CPU);
	r = run_socket(c);
	if (r == 0)
		r = fill_up(c);
	if (r == 0)
		r = run_reserve_64(c);
	if (r == 0)
		r = renew(c);
	if (r == 0)
		r = run_stress(c);
	wire_unpin(0);
	wire_unpin(c->daemon.pid);
	if (r == 0)
		r = renew(c);
	if (r == 0)
		r = full_clients(c);
	return r < 0 ? r : full_overhead(c);
}

static int prepare(struct full *c)
{
	uint64_t control;
	int r;

	c->keys = malloc((size_t)c->chains * FULL_CHAIN * sizeof(*c->keys));
	c->mask = pow2_ceil(c->blocks) - 1;
	c->table = bench_shared_memory((c->mask + 1) * 64);
	if (!c->keys || !c->table)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->chains; i++)
		bench_chain(SEED, i, &c->keys[(size_t)i * FULL_CHAIN], FULL_CHAIN);
	r = private_daemon_start(&c->daemon, c->opt->daemon, BENCH_NAME, c->blocks * FULL_BLOCK,
				 c->blocks);
	if (r == 0)
		r = full_memory(&c->daemon, &c->own_before, &control);
	if (r == 0)
		r = bench_child_start(&c->writer, write_all, c);
	if (r == 0)
		r = wire_open(&c->daemon, "bench-wire", &c->wire);
	if (r == 0)
		r = wire_namespace(c->wire, FULL_MODEL, FULL_TOKENS, FULL_BLOCK, &c->ns);
	return r < 0 ? r : echo_start(&c->echo, c->table, c->mask);
}

static int run_group(const struct bench_options *opt)
{
	struct full c = { .opt = opt,
			  .chains = (uint32_t)((opt->descriptors + FULL_CHAIN - 1) / FULL_CHAIN),
			  .random = 1,
			  .writer = { .hold = -1 } };
	int r;

	/* Room beside the chains, so that none of them goes before all are there. */
	c.blocks = (uint64_t)c.chains * FULL_CHAIN + SLACK;
	r = prepare(&c);
	if (r == 0)
		r = cases(&c);
	echo_stop(&c.echo);
	wire_close(c.wire);
	bench_child_stop(&c.writer);
	private_daemon_stop(&c.daemon);
	if (c.table)
		munmap(c.table, (c.mask + 1) * 64);
	free(c.keys);
	return r;
}

const struct bench_group bench_full = { "full",
					{ "lookup/socket", "reserve/64", "stress/evict",
					  "clients/64", "overhead/block", "overhead/daemon" },
					run_group };
