/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clients/64: lookups a second of many processes against two, while another one puts. They share
 * nothing but memory that they read, so many must get as much done as a few.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tools/bench/full.h"

#define CLIENTS  64u
#define FEW      2u
#define ROUND_US 100000u
#define WAIT_S   10
#define PUT_KEYS 64u
#define PUT_US   2000u /* from one put to the next */

/* Lines of their own, so that clients do not wait for one another's counters. */
struct count {
	uint64_t found, missed;
	uint64_t pad[6];
};

struct clients {
	struct full *full;
	struct looker looker[CLIENTS];
	struct count *count; /* shared */
	pid_t putter;
	int too_many_missed;
};

static int look_up(struct full *c, struct kvpool_ns *ns, struct kvpool_lease *lease,
		   uint64_t *random)
{
	uint32_t hot = MIN(c->chains, FULL_HOT);
	uint32_t chain = c->chains - 1 - (uint32_t)(bench_random(random) % hot);
	size_t tokens = kvpool_acquire_keys(ns, lease, full_chain(c, chain), FULL_CHAIN, 0);

	kvpool_release(lease);
	return tokens == (size_t)FULL_CHAIN * FULL_TOKENS;
}

/* In a process of its own. ready: a byte goes there when it begins. */
static void look_for_ever(struct full *c, volatile uint64_t *found, volatile uint64_t *missed,
			  int ready)
{
	uint64_t random = (uint64_t)getpid();
	struct kvpool_lease *lease;
	struct kvpool *pool;
	struct kvpool_ns *ns;

	if (bench_connect(&c->daemon, "bench-looker", &pool) < 0 ||
	    bench_namespace(pool, FULL_MODEL, FULL_TOKENS, FULL_BLOCK, &ns) < 0 ||
	    kvpool_lease_new(pool, FULL_CHAIN, &lease) < 0 || write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		if (look_up(c, ns, lease, &random))
			++*found;
		else
			++*missed;
	}
}

int looker_start(struct looker *l, struct full *c, volatile uint64_t *found,
		 volatile uint64_t *missed)
{
	int ready[2], r;
	char byte;

	if (pipe(ready) < 0)
		return -errno;
	l->pid = fork();
	if (l->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		look_for_ever(c, found, missed, ready[1]);
	}
	close(ready[1]);
	r = l->pid > 0 && read(ready[0], &byte, 1) == 1 ? 0 : -ECHILD;
	close(ready[0]);
	return r;
}

void looker_stop(struct looker *l)
{
	if (l->pid <= 0)
		return;
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	l->pid = 0;
}

/* In a process of its own, too. */
static void put_for_ever(struct full *c)
{
	uint64_t random = (uint64_t)getpid();
	struct kvpool_key keys[PUT_KEYS];
	struct wire *w;
	size_t sizes[4];
	uint32_t ns;

	if (wire_open(&c->daemon, "bench-putter", &w) < 0 ||
	    wire_namespace(w, FULL_MODEL, FULL_TOKENS, FULL_BLOCK, &ns) < 0)
		_exit(1);
	for (;;) {
		bench_chain(bench_random(&random), 0, keys, PUT_KEYS);
		if (wire_put(w, ns, keys, PUT_KEYS, sizes) < 0)
			_exit(1);
		usleep(PUT_US);
	}
}

static pid_t putter_start(struct full *c)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		put_for_ever(c);
	}
	return pid;
}

static uint64_t sum_of(const struct clients *x, uint32_t n, uint64_t *ret_missed)
{
	uint64_t found = 0, missed = 0;

	for (uint32_t i = 0; i < n; i++) {
		found += *(volatile uint64_t *)&x->count[i].found;
		missed += *(volatile uint64_t *)&x->count[i].missed;
	}
	*ret_missed = missed;
	return found;
}

static void signal_clients(const struct clients *x, uint32_t n, int sig)
{
	for (uint32_t i = 0; i < n; i++)
		kill(x->looker[i].pid, sig);
}

/* Seconds of a lookup, of all that n clients made in a moment; longer where they get no time. */
static double run(struct clients *x, uint32_t n)
{
	uint64_t found, before, missed, missed_before;
	double t;

	signal_clients(x, n, SIGCONT);
	usleep(ROUND_US / 10);
	before = sum_of(x, n, &missed_before);
	t = bench_now();
	do {
		usleep(ROUND_US);
		found = sum_of(x, n, &missed) - before;
	} while (!found && bench_now() - t < WAIT_S);
	t = bench_now() - t;
	signal_clients(x, n, SIGSTOP);
	if (waitpid(x->putter, NULL, WNOHANG) != 0)
		return -ECHILD;
	x->too_many_missed |= (missed - missed_before) * 100 > found;
	return found ? t / (double)found : -ETIMEDOUT;
}

static double run_many(void *arg)
{
	return run(arg, CLIENTS);
}

static double run_few(void *arg)
{
	return run(arg, FEW);
}

static int start(struct clients *x)
{
	for (uint32_t i = 0; i < CLIENTS; i++) {
		int r = looker_start(&x->looker[i], x->full, &x->count[i].found,
				     &x->count[i].missed);

		if (r < 0)
			return r;
		kill(x->looker[i].pid, SIGSTOP);
	}
	x->putter = putter_start(x->full);
	return x->putter > 0 ? 0 : -EAGAIN;
}

static void stop(struct clients *x)
{
	struct looker putter = { .pid = x->putter };

	for (uint32_t i = 0; i < CLIENTS; i++)
		looker_stop(&x->looker[i]);
	looker_stop(&putter);
}

int full_clients(struct full *c)
{
	struct bench_result r = { .name = "clients/64",
				  .unit = "ns",
				  .bar = 0.9,
				  .sense = BENCH_AT_LEAST,
				  .limit = "a lookup of all of 2 clients, not of 64" };
	struct clients x = { .full = c };
	size_t bytes = CLIENTS * sizeof(*x.count);
	int e;

	x.count = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (x.count == MAP_FAILED)
		return -ENOMEM;
	e = start(&x);
	if (e == 0)
		e = full_measure(c, &r, run_many, run_few, &x);
	if (e == 0) {
		if (!r.why_not && x.too_many_missed)
			r.why_not = "lookups missed";
		bench_emit(&r);
	}
	stop(&x);
	munmap(x.count, bytes);
	return e;
}
