/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvpool_dispatch when the connection comes and goes, beside threads that block, in a child, and at
 * the end of the handle, with a scripted daemon.
 */
#undef NDEBUG
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "client/handle.h"
#include "tests/client/fake.h"

#define BT      FAKE_BLOCK_TOKENS
#define BB      FAKE_BLOCK_BYTES
#define BLOCKS  8u
#define LATE    20000 /* ms: never */
#define THREADS 4u
#define ROUNDS  60u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static int32_t tokens[BLOCKS * BT];
static struct kvpool_key keys[BLOCKS];

static int setup(void **state)
{
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	fake_tokens(tokens, BLOCKS * BT, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	return 0;
}

static int teardown(void **state)
{
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static int turn(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	assert(p.fd >= 0);
	assert(poll(&p, 1, LATE) == 1);
	return kvpool_dispatch(pool);
}

static void check_quiet(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	for (int i = 0; i < 10 && poll(&p, 1, 0) == 1; i++)
		assert_int_equal(kvpool_dispatch(pool), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static int start_wait(unsigned int timeout_ms, struct kvpool_op **ret)
{
	return kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, timeout_ms, NULL, NULL, ret);
}

/* Returns what a wait that only asks says. */
static long ask(void)
{
	struct kvpool_op *op;
	int err = start_wait(0, &op);

	if (err < 0)
		return err;
	while (!kvpool_op_done(op))
		turn();
	return kvpool_wait_finish(op);
}

static enum fake_answer silent_on(struct fake_request *rq, void *arg)
{
	return rq->head.op == fake_number(arg) ? FAKE_SILENCE : FAKE_USUAL;
}

static enum fake_answer hang_up_on(struct fake_request *rq, void *arg)
{
	return rq->head.op == fake_number(arg) ? FAKE_HANG_UP : FAKE_USUAL;
}

static void until_connected(void)
{
	while (kvpool_state(pool) != KVPOOL_CONNECTED)
		turn();
}

/* The daemon dies: what is under way ends, the next is a miss, and the loop finds the next daemon.
 */
static void test_reconnect(void **state)
{
	struct kvpool_op *op, *later = NULL;
	int fd = kvpool_fd(pool);

	fake_script_number(&fake, silent_on, OP_WAIT);
	assert_int_equal(start_wait(LATE, &op), 0);
	check_quiet();
	fake_stop(&fake);
	while (!kvpool_op_done(op))
		turn();
	assert_int_equal(kvpool_wait_finish(op), -ENOTCONN);
	assert_int_equal(start_wait(LATE, &later), -ENOTCONN);
	assert_null(later);
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	/* Some tries in vain. */
	for (int i = 0; i < 3; i++)
		turn();
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	fake_set_script(&fake, NULL, NULL);
	fake_again(&fake);
	fake_publish(&fake, keys, 0, 3);
	until_connected();
	assert_int_equal(ask(), 3 * BT);
	/* The namespace was registered on the way. */
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), 2);
	assert_int_equal(kvpool_fd(pool), fd);
	check_quiet();
}

static void test_write_is_stale_after_reconnect(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op;

	assert_int_equal(kvpool_reserve(ns, tokens, BLOCKS * BT, 0, &w), BLOCKS);
	fake_stop(&fake);
	fake_again(&fake);
	until_connected();
	while (kvpool_write_verdict(w, 0) != KVPOOL_STALE)
		turn();
	until_connected();
	assert_int_equal(kvpool_commit_start(w, BLOCKS, 0, NULL, NULL, &op), -ENOTCONN);
	kvpool_write_free_start(w);
	check_quiet();
	assert_int_equal(fake_seen(&fake, OP_ABORT), 0);
	assert_int_equal(ask(), 0);
}

/* Each step of a connection fails once, without an answer or with a hang-up. */
static void fail_at(enum proto_op op, fake_script script)
{
	struct kvpool_op *none;

	fake_stop(&fake);
	fake_again(&fake);
	fake_script_number(&fake, script, op);
	while (pool->backoff_ns <= 50 * NSEC_PER_MSEC)
		turn();
	assert_int_equal(start_wait(0, &none), -ENOTCONN);
	fake_set_script(&fake, NULL, NULL);
	until_connected();
	assert_int_equal(ask(), 0);
	check_quiet();
}

static void test_failing_steps(void **state)
{
	pool->timeout_ns = 100 * NSEC_PER_MSEC;
	fail_at(OP_HELLO, hang_up_on);
	fail_at(OP_NS_OPEN, hang_up_on);
	fail_at(OP_HELLO, silent_on);
	fail_at(OP_NS_OPEN, silent_on);
}

static enum fake_answer refuse(struct fake_request *rq, void *arg)
{
	if (rq->head.op != fake_number(arg))
		return FAKE_USUAL;
	fake_error(rq, ERROR_LIMIT, "there are too many; close some");
	return FAKE_SILENCE;
}

/* A namespace that is refused does not hold the connection up; who needs it asks again. */
static void test_refused_namespace(void **state)
{
	struct kvpool_op *op;
	char text[200];

	fake_stop(&fake);
	fake_again(&fake);
	fake_script_number(&fake, refuse, OP_NS_OPEN);
	while (fake_seen(&fake, OP_NS_OPEN) < 2)
		turn();
	until_connected();
	assert_int_equal(ask(), -ENOENT);
	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text,
			    "kvpoold refused namespace \"m\": there are too many; close some");
	assert_int_equal(fake_seen(&fake, OP_WAIT), 0);
	/* Given up while it is asked about. */
	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	assert_int_equal(start_wait(LATE, &op), 0);
	kvpool_op_cancel(op);
	assert_int_equal(kvpool_wait_finish(op), -ECANCELED);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(ask(), 0);
}

/* The call that blocks does not wait for a loop that may never turn. */
static void test_blocking_call_takes_over(void **state)
{
	fake_stop(&fake);
	fake_again(&fake);
	fake_script_number(&fake, silent_on, OP_HELLO);
	while (fake_seen(&fake, OP_HELLO) < 2)
		turn();
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_null(pool->attempt);
	assert_int_equal(ask(), 0);
	check_quiet();
}

/* What a thread that blocks reads for others comes out of the loop. */
static void *block(void *arg)
{
	*(long *)arg = kvpool_wait(ns, tokens, BLOCKS * BT, 0, LATE);
	return NULL;
}

static uint64_t first_id; /* atomic */

/* The first wait is answered after the third. */
static enum fake_answer answer_late(struct fake_request *rq, void *arg)
{
	struct fake_request first = *rq;

	if (rq->head.op != OP_WAIT)
		return FAKE_USUAL;
	if (fake_seen(rq->fake, OP_WAIT) == 1) {
		store_release(&first_id, rq->head.id);
		return FAKE_SILENCE;
	}
	fake_usual(rq);
	if (fake_seen(rq->fake, OP_WAIT) == 3) {
		first.head.id = load_acquire(&first_id);
		fake_usual(&first);
	}
	return FAKE_SILENCE;
}

static void test_read_by_another_thread(void **state)
{
	struct kvpool_op *a, *b;
	pthread_t thread;
	long n = -1;

	store_release(&first_id, 0);
	fake_set_script(&fake, answer_late, NULL);
	fake_publish(&fake, keys, 0, 2);
	assert_int_equal(pthread_create(&thread, NULL, block, &n), 0);
	while (!load_acquire(&first_id))
		usleep(100);
	assert_int_equal(start_wait(LATE, &a), 0);
	while (!kvpool_op_done(a))
		turn();
	/* And the other way round: the loop reads what the thread waits for. */
	assert_int_equal(start_wait(LATE, &b), 0);
	while (!kvpool_op_done(b))
		turn();
	pthread_join(thread, NULL);
	assert_int_equal(n, 2 * BT);
	assert_int_equal(kvpool_wait_finish(a), 2 * BT);
	assert_int_equal(kvpool_wait_finish(b), 2 * BT);
	check_quiet();
	assert_int_equal(ask(), 2 * BT);
}

/* Everybody at once. */
static unsigned int running; /* atomic */

static void *work_blocking(void *arg)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		assert(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 0) == 3 * BT);
		assert(kvpool_ping(pool) == 0);
	}
	add_acq_rel(&running, (unsigned int)-1);
	return NULL;
}

static void *work_starting(void *arg)
{
	struct kvpool_op *op[8];

	for (unsigned int i = 0; i < ROUNDS; i++) {
		for (unsigned int k = 0; k < 8; k++)
			assert(start_wait(0, &op[k]) == 0);
		kvpool_op_cancel(op[1]);
		op[2] = kvpool_op_free(op[2]);
		for (unsigned int k = 0; k < 8; k++) {
			long n;

			while (op[k] && (n = kvpool_wait_finish(op[k])) == -EINPROGRESS)
				kvpool_dispatch(pool);
			assert(!op[k] || n == 3 * BT || (k == 1 && n == -ECANCELED));
		}
	}
	add_acq_rel(&running, (unsigned int)-1);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[2 * THREADS];

	fake_publish(&fake, keys, 0, 3);
	store_release(&running, 2 * THREADS);
	for (unsigned int i = 0; i < 2 * THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						i % 2 ? work_blocking : work_starting, NULL),
				 0);
	while (load_acquire(&running)) {
		struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

		(void)poll(&p, 1, 10);
		assert_true(kvpool_dispatch(pool) >= 0);
	}
	for (unsigned int i = 0; i < 2 * THREADS; i++)
		pthread_join(thread[i], NULL);
	/* Waits that were given up are ended by requests of their own. */
	while (pool->ops.n_jobs)
		turn();
	assert_int_equal(ask(), 3 * BT);
}

static void in_child(void (*part)(void))
{
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (!pid) {
		part();
		_exit(0);
	}
	assert(waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static struct kvpool_op *sent, *done;
static struct kvpool_write *granted;

static void use_in_child(void)
{
	struct kvpool_write *w;
	struct kvpool_op *op;

	assert(kvpool_fd(pool) == -ESTALE);
	assert(kvpool_dispatch(pool) == -ESTALE);
	assert(!kvpool_next_done(pool));
	assert(start_wait(0, &op) == -ESTALE);
	assert(kvpool_reserve_start(ns, tokens, BT, 0, 0, NULL, NULL, &op) == -ESTALE);
	assert(kvpool_reserve_keys_start(ns, NULL, keys, 1, 0, NULL, NULL, &op) == -ESTALE);
	assert(kvpool_commit_start(granted, 1, 0, NULL, NULL, &op) == -ESTALE);
	assert(kvpool_locate(ns, tokens, BT, 0) == -ESTALE);
	assert(kvpool_locate_start(ns, tokens, BT, 0, 0, NULL, NULL, &op) == -ESTALE);
	assert(kvpool_reserve_finish(done, &w) == -ESTALE);
	assert(kvpool_wait_finish(sent) == -ESTALE);
	kvpool_op_cancel(sent);
	assert(!kvpool_op_free(sent));
	assert(!kvpool_op_free(done));
	assert(!kvpool_write_free_start(granted));
	assert(!kvpool_ns_close(ns));
	assert(!kvpool_close(pool));
}

/* A commit under way, whose write goes first. */
static void free_write_before_op(void)
{
	assert(!kvpool_write_free(granted));
	assert(!kvpool_op_free(sent));
	assert(!kvpool_ns_close(ns));
	assert(!kvpool_close(pool));
}

static void free_write_without_waiting(void)
{
	assert(!kvpool_write_free_start(granted));
	assert(!kvpool_close(pool));
	assert(!kvpool_op_free(sent));
	assert(!kvpool_ns_close(ns));
}

static void test_fork_in_a_commit(void **state)
{
	assert_int_equal(kvpool_reserve(ns, tokens, BT, 0, &granted), 1);
	memset(kvpool_write_block(granted, 0), 1, BB);
	fake_script_number(&fake, silent_on, OP_COMMIT);
	assert_int_equal(kvpool_commit_start(granted, 1, LATE, NULL, NULL, &sent), 0);
	in_child(free_write_before_op);
	in_child(free_write_without_waiting);
	kvpool_op_free(sent);
	kvpool_write_free(granted);
}

static void test_fork(void **state)
{
	assert_int_equal(kvpool_reserve(ns, tokens, BT, 0, &granted), 1);
	assert_int_equal(kvpool_reserve_start(ns, tokens, BLOCKS * BT, 1, 0, NULL, NULL, &done), 0);
	while (!kvpool_op_done(done))
		turn();
	fake_script_number(&fake, silent_on, OP_WAIT);
	assert_int_equal(start_wait(LATE, &sent), 0);
	check_quiet();
	in_child(use_in_child);
	/* Nothing of the parent's ended. */
	assert_int_equal(fake_seen(&fake, OP_ABORT) + fake_seen(&fake, OP_BYE), 0);
	assert_int_equal(kvpool_op_done(sent), 0);
	check_quiet();
	kvpool_op_free(sent);
	kvpool_op_free(done);
	kvpool_write_free_start(granted);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(ask(), 0);
	assert_int_equal(fake_seen(&fake, OP_ABORT), 2);
}

static void never(void *arg, struct kvpool_op *op)
{
	abort();
}

static unsigned int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Operations outlive the handle until they are freed; no callback comes any more. */
static void test_close(void **state)
{
	struct kvpool_op *a, *b, *c;
	struct kvpool_write *w = NULL;
	unsigned int fds = count_fds();
	struct kvpool *p = fake_connect(&fake, 0);
	struct kvpool_ns *n = fake_ns(p, "n");

	assert_true(kvpool_fd(p) >= 0);
	assert_int_equal(kvpool_reserve_start(n, tokens, BT, 0, 0, NULL, NULL, &c), 0);
	while (!kvpool_op_done(c))
		kvpool_dispatch(p);
	fake_script_number(&fake, silent_on, OP_WAIT);
	assert_int_equal(kvpool_wait_start(n, tokens, BT, 0, LATE, never, NULL, &a), 0);
	assert_int_equal(kvpool_reserve_start(n, tokens, BT, 0, 0, never, NULL, &b), 0);
	kvpool_close(p);
	kvpool_ns_close(n);
	assert_int_equal(kvpool_op_done(a), 1);
	assert_int_equal(kvpool_wait_finish(a), -ENOTCONN);
	kvpool_op_free(b);
	assert_int_equal(kvpool_reserve_finish(c, &w), 1);
	assert_int_equal(kvpool_write_verdict(w, 0), KVPOOL_STALE);
	kvpool_write_free_start(w);
	/* The fake keeps its end of the connection until it reads the goodbye. */
	while (count_fds() > fds)
		usleep(1000);
}

/* Closes everything that there is. */
static void close_all(void *arg, struct kvpool_op *op)
{
	struct kvpool_ns **n = arg;

	assert_int_equal(kvpool_wait_finish(op), 0);
	*n = kvpool_ns_close(*n);
	kvpool_close(pool);
	pool = NULL;
}

static void test_close_in_callback(void **state)
{
	struct kvpool *mine = pool, *p;
	struct kvpool_ns *n = NULL;
	struct kvpool_op *op;

	p = pool = fake_connect(&fake, 0);
	n = fake_ns(p, "n");
	assert_int_equal(kvpool_wait_start(n, tokens, BT, 0, 0, close_all, &n, &op), 0);
	while (pool)
		assert_true(kvpool_dispatch(p) >= 0);
	assert_null(n);
	pool = mine;
}

static int allowed; /* atomic: the callback below may return */
static int entered;

static void linger(void *arg, struct kvpool_op *op)
{
	assert(kvpool_wait_finish(op) >= 0);
	store_release(&entered, 1);
	while (!load_acquire(&allowed))
		usleep(1000);
}

static void *dispatch_until_done(void *arg)
{
	while (!load_acquire(&allowed))
		assert(kvpool_dispatch(pool) >= 0);
	return NULL;
}

/* A callback takes its time. What another thread reads meanwhile is told to the loop all the same.
 */
static void test_slow_callback(void **state)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };
	struct kvpool_op *op;
	pthread_t thread;

	store_relaxed(&allowed, 0);
	store_relaxed(&entered, 0);
	assert_int_equal(
		kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, LATE, linger, NULL, &op), 0);
	assert_int_equal(pthread_create(&thread, NULL, dispatch_until_done, NULL), 0);
	while (!load_acquire(&entered))
		usleep(1000);
	check_quiet();
	assert_int_equal(start_wait(LATE, &op), 0);
	/* Answers come in order, so this reads that of the wait. */
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(poll(&p, 1, LATE), 1);
	while (!kvpool_op_done(op))
		assert_true(kvpool_dispatch(pool) >= 0);
	assert_int_equal(kvpool_wait_finish(op), 0);
	store_release(&allowed, 1);
	pthread_join(thread, NULL);
}

/* A version that nobody knows, with descriptors. */
static enum fake_answer odd_hello(struct fake_request *rq, void *arg)
{
	struct frame_header h = {
		.magic = FRAME_MAGIC,
		.op = OP_HELLO,
		.flags = FRAME_REPLY,
		.id = rq->head.id,
	};
	Kvpool__HelloReply r = KVPOOL__HELLO_REPLY__INIT;
	struct fake_memory *m = &rq->fake->m;

	if (rq->head.op != OP_HELLO)
		return FAKE_USUAL;
	r.daemon = r.domain = (char *)"odd";
	fake_send(rq, &h, &r.base, (int[]){ m->control_ro, m->pool_fd, m->pool_fd }, 3);
	return FAKE_SILENCE;
}

static void test_no_descriptor_is_lost(void **state)
{
	unsigned int fds;

	fake_set_script(&fake, odd_hello, NULL);
	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), -EPROTO);
	fds = count_fds();
	for (int i = 0; i < 5; i++)
		assert_int_equal(kvpool_reconnect(pool), -EPROTO);
	/* The fake closes its ends when it sees that they are of no use. */
	for (int i = 0; i < 1000 && count_fds() > fds; i++)
		usleep(1000);
	assert_true(count_fds() <= fds);
}

/* No descriptor left: the loop cannot watch, and says so; the rest works. */
static void test_no_descriptors(void **state)
{
	struct rlimit old, few;
	struct kvpool_op *op;
	char text[200];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)dup(0);
	assert_int_equal(close((int)few.rlim_cur), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(kvpool_fd(pool), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text, "cannot make a descriptor to watch: Too many open files");
	assert_int_equal(start_wait(0, &op), 0);
	while (!kvpool_op_done(op))
		kvpool_dispatch(pool);
	assert_int_equal(kvpool_wait_finish(op), 0);
	assert_true(kvpool_fd(pool) >= 0);
	check_quiet();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reconnect),
		TEST(test_write_is_stale_after_reconnect),
		TEST(test_failing_steps),
		TEST(test_refused_namespace),
		TEST(test_blocking_call_takes_over),
		TEST(test_read_by_another_thread),
		TEST(test_threads),
		TEST(test_fork),
		TEST(test_fork_in_a_commit),
		TEST(test_close),
		TEST(test_close_in_callback),
		TEST(test_slow_callback),
		TEST(test_no_descriptor_is_lost),
		TEST(test_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
