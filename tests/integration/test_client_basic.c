/* SPDX-License-Identifier: Apache-2.0 */
/* What libkvpool promises, with a real daemon and several processes. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "tests/integration/daemon.h"
#include "tests/integration/pattern.h"

#define BT    PATTERN_BLOCK_TOKENS
#define BYTES 4096u
#define DEPTH 200u /* of most chains here */

static struct daemon d;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static int32_t tokens[4096 * BT + 1];

static int setup(void **state)
{
	assert_int_equal(daemon_start(&d, NULL), 0);
	pool = pattern_connect(d.socket, "test");
	ns = pattern_ns(pool, "m", BYTES);
	assert_int_equal(kvpool_lease_new(pool, 4096, &lease), 0);
	return 0;
}

static int teardown(void **state)
{
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	assert_int_equal(daemon_end(&d), 0);
	return 0;
}

/* Another program: runs part in a process of its own, with a pool of its own. */
struct other {
	pid_t pid;
	int to, from; /* a byte each way says that a step is done */
};

typedef void (*other_part)(struct kvpool_ns *ns, struct kvpool_lease *lease, struct other *me);

static void step_done(struct other *o)
{
	assert(write(o->to, "x", 1) == 1);
}

static void wait_step(struct other *o)
{
	char c;

	assert(read(o->from, &c, 1) == 1);
}

static void run_other(other_part part, struct other *me)
{
	struct kvpool *p = pattern_connect(d.socket, "other");
	struct kvpool_ns *n = pattern_ns(p, "m", BYTES);
	struct kvpool_lease *l;

	assert(kvpool_lease_new(p, 4096, &l) == 0);
	part(n, l, me);
	kvpool_lease_free(l);
	kvpool_ns_close(n);
	kvpool_close(p);
	_exit(0);
}

static void other_start(struct other *o, other_part part)
{
	int a[2], b[2];

	assert(pipe(a) == 0 && pipe(b) == 0);
	o->pid = fork();
	assert(o->pid >= 0);
	o->to = o->pid ? a[1] : b[1];
	o->from = o->pid ? b[0] : a[0];
	close(o->pid ? a[0] : a[1]);
	close(o->pid ? b[1] : b[0]);
	if (!o->pid)
		run_other(part, o);
}

static int other_reap(struct other *o)
{
	int status;

	assert(waitpid(o->pid, &status, 0) == o->pid);
	close(o->to);
	close(o->from);
	return status;
}

static void other_end(struct other *o)
{
	assert_int_equal(other_reap(o), 0);
}

static void run_in_other(other_part part)
{
	struct other o;

	other_start(&o, part);
	other_end(&o);
}

static void publish_chain(struct kvpool_ns *n, struct kvpool_lease *l, struct other *me)
{
	assert(pattern_publish(n, 1, DEPTH) == DEPTH);
}

static void test_hit_in_another_process(void **state)
{
	static const size_t depths[] = {1, 2, 3, 127, 128, DEPTH};
	struct kvpool_stats s = {.size = sizeof(s)};

	run_in_other(publish_chain);
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++)
		assert_int_equal(pattern_acquire(ns, lease, 1, depths[i]), depths[i]);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_COMPLETE);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.shared_tokens, s.hit_tokens);
	/* Its own are not another program's. */
	assert_int_equal(pattern_publish(ns, 2, 3), 3);
	assert_int_equal(pattern_acquire(ns, lease, 2, 3), 3);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.shared_tokens, s.hit_tokens - 3 * BT);
	assert_int_equal(s.asked_tokens, s.hit_tokens + s.miss_tokens);
}

static void test_ends_of_prompts(void **state)
{
	run_in_other(publish_chain);
	pattern_tokens(1, DEPTH, tokens);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 0, 0), 0);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT - 1, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_BELOW_MIN);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT, 0), 0);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT + 1, 0), BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_COMPLETE);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT + 2, 0), BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_PARTIAL_BLOCK);
	/* Cached to its very last token: that one is left to compute. */
	assert_int_equal(kvpool_acquire(ns, lease, tokens, DEPTH * BT, 0), (DEPTH - 1) * BT);
}

static void test_other_tokens(void **state)
{
	static const size_t blocks[] = {0, DEPTH / 2, DEPTH - 1};

	run_in_other(publish_chain);
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		pattern_tokens(1, DEPTH, tokens);
		tokens[blocks[i] * BT + 1] ^= 1;
		assert_int_equal(kvpool_acquire(ns, lease, tokens, DEPTH * BT + 1, 0),
				 blocks[i] * BT);
		assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
	}
}

static void test_other_namespace(void **state)
{
	struct kvpool_ns *n = pattern_ns(pool, "m", 2 * BYTES);
	char text[200];

	run_in_other(publish_chain);
	pattern_tokens(1, DEPTH, tokens);
	assert_int_equal(kvpool_acquire(n, lease, tokens, DEPTH * BT + 1, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
	assert_true(kvpool_ns_difference(n, text, sizeof(text)) > 0);
	assert_string_equal(text, "namespace \"m\" differs in block_bytes: 8192 here, 4096 there");
	assert_int_equal(kvpool_ns_difference(ns, text, sizeof(text)), 0);
	kvpool_ns_close(n);
}

/* Keys that a caller brings along from another namespace find nothing, and take nothing. */
static void test_foreign_keys(void **state)
{
	struct kvpool_ns *n = pattern_ns(pool, "m", 2 * BYTES);
	struct kvpool_key keys[DEPTH];
	struct kvpool_write *write;

	run_in_other(publish_chain);
	pattern_tokens(1, DEPTH, tokens);
	assert_int_equal(kvpool_hash(ns, NULL, tokens, DEPTH * BT, keys, DEPTH), DEPTH);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, DEPTH, 0), DEPTH * BT);
	assert_int_equal(kvpool_acquire_keys(n, lease, keys, DEPTH, 0), 0);
	assert_int_equal(kvpool_acquire_keys(n, lease, keys, DEPTH, KVPOOL_DEPTH_ONLY), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
	assert_int_equal(kvpool_reserve_keys(n, NULL, keys, DEPTH, &write), 0);
	assert_int_equal(kvpool_write_verdict(write, 0), KVPOOL_FULL);
	kvpool_write_free(write);
	kvpool_ns_close(n);
}

static void test_too_large_for_the_pool(void **state)
{
	struct kvpool_ns *n = pattern_ns(pool, "m", 128 << 20);
	struct kvpool_write *w;
	char text[300];

	assert_int_equal(kvpool_acquire(n, lease, tokens, BT + 1, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NAMESPACE);
	assert_int_equal(kvpool_reserve(n, tokens, BT, 0, &w), -ENOENT);
	kvpool_error(pool, text, sizeof(text));
	assert_non_null(strstr(text, "kvpoold refused namespace \"m\""));
	kvpool_ns_close(n);
}

/* More namespaces than a session may have open, one after the other. */
static void test_many_namespaces_in_turn(void **state)
{
	for (unsigned int i = 0; i < 200; i++) {
		struct kvpool_ns *n;
		char model[16];

		snprintf(model, sizeof(model), "turn %u", i);
		n = pattern_ns(pool, model, 4096);
		assert_int_equal(kvpool_acquire(n, lease, tokens, BT + 1, 0), 0);
		assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
		kvpool_ns_close(n);
	}
	/* The one that was open all the while still is. */
	assert_int_equal(pattern_publish(ns, 1, 1), 1);
}

static void publish_in_steps(struct kvpool_ns *n, struct kvpool_lease *l, struct other *me)
{
	assert(pattern_publish(n, 1, 10) == 10);
	step_done(me);
	wait_step(me);
	assert(pattern_publish(n, 1, DEPTH) == DEPTH - 10);
	step_done(me);
	wait_step(me);
}

static void test_extend(void **state)
{
	const void *first;
	struct other o;

	other_start(&o, publish_in_steps);
	wait_step(&o);
	assert_int_equal(pattern_acquire(ns, lease, 1, DEPTH), 10);
	first = kvpool_lease_block(lease, 0);
	step_done(&o);
	wait_step(&o);
	pattern_tokens(1, DEPTH, tokens);
	assert_int_equal(kvpool_extend(lease, tokens, DEPTH * BT + 1), DEPTH * BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_COMPLETE);
	assert_ptr_equal(kvpool_lease_block(lease, 0), first);
	for (size_t i = 0; i < DEPTH; i++)
		assert_true(pattern_check(1, i, kvpool_lease_block(lease, i), BYTES));
	step_done(&o);
	other_end(&o);
}

static void test_read(void **state)
{
	static uint8_t buf[DEPTH * BYTES];
	struct iovec iov[2] = {{buf, 1000}, {buf + 1000, sizeof(buf) - 1000}};

	run_in_other(publish_chain);
	assert_int_equal(pattern_acquire(ns, lease, 1, DEPTH), DEPTH);
	for (unsigned int flags = 0; flags <= KVPOOL_VERIFY; flags++) {
		memset(buf, 0, sizeof(buf));
		assert_int_equal(kvpool_lease_read(lease, 0, iov, 2, flags), 0);
		for (size_t i = 0; i < DEPTH; i++)
			assert_true(pattern_check(1, i, buf + i * BYTES, BYTES));
	}
}

/* A program that writes where it may no longer: seen, told, and gone. */
static void test_changed_byte(void **state)
{
	static uint8_t buf[4 * BYTES];
	struct iovec iov = {buf, sizeof(buf)};
	struct kvpool_write *w;
	uint8_t *block;

	pattern_tokens(1, 4, tokens);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 4);
	for (size_t i = 0; i < 4; i++)
		pattern_fill(1, i, kvpool_write_block(w, i), BYTES);
	block = kvpool_write_block(w, 2);
	assert_int_equal(kvpool_commit(w, 4), 4);
	assert_int_equal(pattern_acquire(ns, lease, 1, 4), 4);
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, KVPOOL_VERIFY), 0);
	block[77] ^= 4;
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, KVPOOL_VERIFY), -EBADMSG);
	kvpool_write_free(w);
	/* The daemon looks for itself, and dooms the block and what is behind it. */
	do {
		usleep(1000);
	} while (kvpool_acquire(ns, lease, tokens, 4 * BT + 1, 0) == 4 * BT);
	assert_int_equal(kvpool_lease_blocks(lease), 2);
	kvpool_release(lease);
	assert_int_equal(pattern_publish(ns, 1, 4), 2);
	assert_int_equal(pattern_acquire(ns, lease, 1, 4), 4);
}

static void reserve_and_hold(struct kvpool_ns *n, struct kvpool_lease *l, struct other *me)
{
	struct kvpool_write *w;

	pattern_tokens(1, 8, tokens);
	assert(kvpool_reserve(n, tokens, 8 * BT, 0, &w) == 8);
	for (size_t i = 0; i < 8; i++)
		pattern_fill(1, i, kvpool_write_block(w, i), BYTES);
	assert(kvpool_commit(w, 3) == 3);
	step_done(me);
	wait_step(me);
	assert(kvpool_commit(w, 6) == 3);
	kvpool_write_free(w);
	step_done(me);
	wait_step(me);
}

static void test_busy(void **state)
{
	struct kvpool_write *w;
	struct other o;

	other_start(&o, reserve_and_hold);
	wait_step(&o);
	assert_int_equal(pattern_acquire(ns, lease, 1, 8), 3);
	pattern_tokens(1, 8, tokens);
	assert_int_equal(kvpool_reserve(ns, tokens, 8 * BT, 2, &w), 0);
	assert_int_equal(kvpool_write_verdict(w, 0), KVPOOL_PRESENT);
	for (size_t i = 1; i < 6; i++)
		assert_int_equal(kvpool_write_verdict(w, i), KVPOOL_BUSY);
	kvpool_write_free(w);
	assert_int_equal(pattern_publish(ns, 1, 8), 0);
	assert_int_equal(kvpool_wait(ns, tokens, 8 * BT, 3, 30), -ETIMEDOUT);
	step_done(&o);
	wait_step(&o);
	/* The other one gave the last two back. */
	assert_int_equal(kvpool_reserve(ns, tokens, 8 * BT, 3, &w), 2);
	assert_int_equal(kvpool_write_verdict(w, 3), KVPOOL_GRANTED);
	kvpool_write_free(w);
	step_done(&o);
	other_end(&o);
	assert_int_equal(pattern_acquire(ns, lease, 1, 8), 6);
}

static void write_slowly(struct kvpool_ns *n, struct kvpool_lease *l, struct other *me)
{
	struct kvpool_write *w;

	pattern_tokens(1, 8, tokens);
	assert(kvpool_reserve(n, tokens, 8 * BT, 0, &w) == 8);
	step_done(me);
	usleep(50000);
	for (size_t i = 0; i < 8; i++) {
		pattern_fill(1, i, kvpool_write_block(w, i), BYTES);
		assert(kvpool_commit(w, i + 1) == 1);
	}
	kvpool_write_free(w);
	wait_step(me);
}

/* Single flight: what another program computes is waited for. */
static void test_wait(void **state)
{
	struct other o;

	other_start(&o, write_slowly);
	wait_step(&o);
	pattern_tokens(1, 8, tokens);
	assert_int_equal(kvpool_wait(ns, tokens, 8 * BT, 0, 20000), 8 * BT);
	assert_int_equal(pattern_acquire(ns, lease, 1, 8), 8);
	step_done(&o);
	other_end(&o);
}

static void reserve_and_die(struct kvpool_ns *n, struct kvpool_lease *l, struct other *me)
{
	struct kvpool_write *w;

	pattern_tokens(1, 8, tokens);
	assert(kvpool_reserve(n, tokens, 8 * BT, 0, &w) == 8);
	for (size_t i = 0; i < 2; i++)
		pattern_fill(1, i, kvpool_write_block(w, i), BYTES);
	assert(kvpool_commit(w, 2) == 2);
	step_done(me);
	usleep(50000);
	raise(SIGKILL);
}

/* Its death wakes who waits for it. */
static void test_wait_for_one_that_dies(void **state)
{
	struct other o;

	other_start(&o, reserve_and_die);
	wait_step(&o);
	pattern_tokens(1, 8, tokens);
	assert_int_equal(kvpool_wait(ns, tokens, 8 * BT, 0, 20000), 2 * BT);
	assert_int_equal(WTERMSIG(other_reap(&o)), SIGKILL);
}

/* More blocks than fit a message. */
static void test_long_prompt(void **state)
{
	static const size_t depth = 3000;
	static struct kvpool_key keys[3000];

	assert_int_equal(pattern_publish(ns, 1, depth), depth);
	assert_int_equal(pattern_acquire(ns, lease, 1, depth), depth);
	pattern_tokens(1, depth, tokens);
	assert_int_equal(kvpool_hash(ns, NULL, tokens, depth * BT, keys, depth), depth);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, depth, KVPOOL_DEPTH_ONLY),
			 depth * BT);
	assert_int_equal(kvpool_wait(ns, tokens, depth * BT, 0, 1000), depth * BT);
	kvpool_release(lease);
}

static void test_reserve_a_long_run(void **state)
{
	static const size_t depth = 2500;
	struct kvpool_write *w;

	pattern_tokens(1, depth, tokens);
	assert_int_equal(kvpool_reserve(ns, tokens, depth * BT, 0, &w), depth);
	for (size_t i = 0; i < depth; i++)
		pattern_fill(1, i, kvpool_write_block(w, i), BYTES);
	assert_int_equal(kvpool_commit(w, depth), depth);
	kvpool_write_free(w);
	assert_int_equal(pattern_acquire(ns, lease, 1, depth), depth);
	/* All of it is given back, too. */
	pattern_tokens(2, 1000, tokens);
	assert_int_equal(kvpool_reserve(ns, tokens, 1000 * BT, 0, &w), 1000);
	kvpool_write_free(w);
	assert_int_equal(kvpool_reserve(ns, tokens, 1000 * BT, 0, &w), 1000);
	kvpool_write_free(w);
}

/* The pool is full many times over: what is leased stays, byte for byte. */
static void test_eviction(void **state)
{
	assert_int_equal(pattern_publish(ns, 1, DEPTH), DEPTH);
	assert_int_equal(pattern_acquire(ns, lease, 1, DEPTH), DEPTH);
	for (uint64_t c = 2; c < 60; c++)
		assert_int_equal(pattern_publish(ns, c, DEPTH), DEPTH);
	for (size_t i = 0; i < DEPTH; i++)
		assert_true(pattern_check(1, i, kvpool_lease_block(lease, i), BYTES));
	/* The oldest one that nobody holds is gone. */
	pattern_tokens(2, DEPTH, tokens);
	assert_true(kvpool_acquire(ns, lease, tokens, DEPTH * BT + 1, 0) < DEPTH * BT);
}

static void restart(int (*end)(struct daemon *))
{
	end(&d);
	assert_int_equal(daemon_again(&d, NULL), 0);
	assert_int_equal(kvpool_reconnect(pool), 0);
}

static void test_restart(void **state)
{
	struct kvpool_write *w;

	assert_int_equal(pattern_publish(ns, 1, DEPTH), DEPTH);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(pattern_acquire(ns, lease, 1, DEPTH), DEPTH);
		pattern_tokens(2, 4, tokens);
		assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 4);
		restart(i ? daemon_kill : daemon_stop);
		/* What is held stays readable, and what was granted is void. */
		for (size_t k = 0; k < DEPTH; k++)
			assert_true(pattern_check(1, k, kvpool_lease_block(lease, k), BYTES));
		assert_int_equal(kvpool_write_verdict(w, 0), KVPOOL_STALE);
		assert_int_equal(kvpool_commit(w, 4), -ENOTCONN);
		kvpool_write_free(w);
		kvpool_release(lease);
		assert_int_equal(pattern_acquire(ns, lease, 1, DEPTH), 0);
		assert_int_equal(pattern_publish(ns, 1, DEPTH), DEPTH);
	}
}

/* An orderly stop is seen by lookups at once; nobody asked the daemon. */
static void test_stop(void **state)
{
	assert_int_equal(pattern_publish(ns, 1, DEPTH), DEPTH);
	assert_int_equal(pattern_acquire(ns, lease, 1, DEPTH), DEPTH);
	assert_int_equal(daemon_stop(&d), 0);
	for (size_t k = 0; k < DEPTH; k++)
		assert_true(pattern_check(1, k, kvpool_lease_block(lease, k), BYTES));
	pattern_tokens(1, DEPTH, tokens);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, DEPTH * BT + 1, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NO_DAEMON);
	assert_true(kvpool_ping(pool) < 0);
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
}

struct worker {
	pthread_t thread;
	uint64_t seed;
	int *writers; /* that are not done */
	uint64_t hits;
};

/* The chain that a thread turns to next; readers follow the writer of their seed. */
static uint64_t next_chain(struct worker *w)
{
	return 100 + w->seed++ * 7 % 400;
}

static void *write_chains(void *arg)
{
	struct worker *w = arg;

	for (unsigned int i = 0; i < 300; i++)
		assert(pattern_publish(ns, next_chain(w), 64) >= 0);
	__atomic_fetch_sub(w->writers, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *read_chains(void *arg)
{
	struct worker *w = arg;
	struct kvpool_lease *l;

	assert(kvpool_lease_new(pool, 64, &l) == 0);
	while (load_acquire(w->writers)) {
		w->hits += pattern_acquire(ns, l, next_chain(w), 64);
		if (w->seed % 3 == 0)
			kvpool_release(l);
	}
	kvpool_lease_free(l);
	return NULL;
}

/* Readers and writers of the same chains on one handle, in a pool that is always full. */
static void test_threads(void **state)
{
	struct kvpool_stats s = {.size = sizeof(s)};
	int writers = 3;
	struct worker w[8];

	for (unsigned int i = 0; i < ARRAY_SIZE(w); i++) {
		w[i] = (struct worker){.seed = i % 3 * 50, .writers = &writers};
		assert(pthread_create(&w[i].thread, NULL, i < 3 ? write_chains : read_chains,
				      &w[i]) == 0);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(w); i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.asked_tokens, s.hit_tokens + s.miss_tokens);
	assert_true(s.miss_tokens > 0);
	for (unsigned int i = 3; i < ARRAY_SIZE(w); i++)
		s.hit_tokens -= w[i].hits * BT;
	assert_int_equal(s.hit_tokens, 0);
}

struct told {
	unsigned int errors, infos;
	char last[200];
};

static void tell(void *arg, enum kvpool_log_level level, const char *text)
{
	struct told *t = arg;

	*(level == KVPOOL_LOG_ERROR ? &t->errors : &t->infos) += 1;
	snprintf(t->last, sizeof(t->last), "%s", text);
}

static void test_log(void **state)
{
	struct told told = {0};
	struct kvpool_options o = {
		.size = sizeof(o), .socket = "/nonexistent/kvpool.sock", .log = tell, .log_arg = &told};
	struct kvpool *p;
	char text[200];

	assert(kvpool_connect(&o, &p) == 0);
	assert_int_equal(told.errors, 1);
	assert_int_equal(told.infos, 0);
	kvpool_error(p, text, sizeof(text));
	assert_string_equal(told.last, text);
	kvpool_close(p);

	o.socket = d.socket;
	assert(kvpool_connect(&o, &p) == 0);
	assert_int_equal(told.errors, 1);
	assert_int_equal(told.infos, 1);
	assert_non_null(strstr(told.last, "connected to kvpoold"));
	kvpool_close(p);

	/* A program of before there was one. */
	o.size = offsetof(struct kvpool_options, log);
	assert(kvpool_connect(&o, &p) == 0);
	assert_int_equal(told.infos, 1);
	assert_int_equal(kvpool_daemon_version(p, text, sizeof(text)), strlen(KVPOOL_VERSION));
	assert_string_equal(text, KVPOOL_VERSION);
	kvpool_close(p);
}

/* One line to stderr for each change of state and each error; nothing without it. */
static void test_debug(void **state)
{
	struct kvpool_options o = {.size = sizeof(o), .socket = "/nonexistent/kvpool.sock"};
	char text[2000] = "", expected[400];
	struct kvpool *p[2];
	int out[2], saved = dup(STDERR_FILENO);

	assert(saved >= 0 && pipe(out) == 0);
	dup2(out[1], STDERR_FILENO);
	assert(kvpool_connect(&o, &p[0]) == 0);
	setenv("KVPOOL_DEBUG", "1", 1);
	assert(kvpool_connect(&o, &p[1]) == 0);
	kvpool_close(p[1]);
	o.socket = d.socket;
	assert(kvpool_connect(&o, &p[1]) == 0);
	unsetenv("KVPOOL_DEBUG");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(out[1]);
	assert(read(out[0], text, sizeof(text) - 1) > 0);
	close(out[0]);
	snprintf(expected, sizeof(expected),
		 "kvpool: cannot reach kvpoold at /nonexistent/kvpool.sock: no such file or "
		 "directory (is kvpoold running?)\nkvpool: connected to kvpoold %s at %s, session ",
		 kvpool_version(), d.socket);
	assert_true(!strncmp(text, expected, strlen(expected)));
	kvpool_close(p[0]);
	kvpool_close(p[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hit_in_another_process),
		TEST(test_ends_of_prompts),
		TEST(test_other_tokens),
		TEST(test_other_namespace),
		TEST(test_foreign_keys),
		TEST(test_too_large_for_the_pool),
		TEST(test_many_namespaces_in_turn),
		TEST(test_extend),
		TEST(test_read),
		TEST(test_changed_byte),
		TEST(test_busy),
		TEST(test_wait),
		TEST(test_wait_for_one_that_dies),
		TEST(test_long_prompt),
		TEST(test_reserve_a_long_run),
		TEST(test_eviction),
		TEST(test_restart),
		TEST(test_stop),
		TEST(test_threads),
		TEST(test_debug),
		TEST(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
