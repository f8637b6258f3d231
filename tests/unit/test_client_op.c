/* SPDX-License-Identifier: Apache-2.0 */
/* Start and finish forms, with a scripted daemon and a poll loop of the test's own. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "client/handle.h"
#include "shm/word.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 40u
#define MANY   OPS_MAX
#define LATE   20000 /* ms: never */

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];
static unsigned int held_back; /* atomic: requests that hold_back did not answer */

static int setup_with(uint32_t max_keys)
{
	held_back = 0;
	fake_start(&fake);
	fake.max_keys = max_keys;
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	return 0;
}

static int setup(void **state)
{
	return setup_with(FRAME_KEYS_MAX);
}

static int setup_short(void **state)
{
	return setup_with(7);
}

static int teardown(void **state)
{
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

/* Sleeps until the descriptor says that there is something to do, and does it. */
static int turn(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	assert_true(p.fd >= 0);
	assert_int_equal(poll(&p, 1, LATE), 1);
	return kvpool_dispatch(pool);
}

static void run_until_done(const struct kvpool_op *op)
{
	while (!kvpool_op_done(op))
		turn();
}

/* Nothing to do is left over. */
static void check_quiet(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	for (int i = 0; i < 10 && poll(&p, 1, 0) == 1; i++)
		assert_int_equal(kvpool_dispatch(pool), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static struct kvpool_op *reserve(size_t first, unsigned int timeout_ms)
{
	struct kvpool_op *op;

	assert_int_equal(
		kvpool_reserve_start(ns, tokens, BLOCKS * BT, first, timeout_ms, NULL, NULL, &op),
		0);
	return op;
}

static struct kvpool_op *commit(struct kvpool_write *w, size_t n, unsigned int timeout_ms)
{
	struct kvpool_op *op;

	assert_int_equal(kvpool_commit_start(w, n, timeout_ms, NULL, NULL, &op), 0);
	return op;
}

static struct kvpool_op *wait_for(unsigned int timeout_ms)
{
	struct kvpool_op *op;

	assert_int_equal(kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, timeout_ms, NULL, NULL, &op),
			 0);
	return op;
}

static void fill(struct kvpool_write *w, size_t first)
{
	for (size_t i = 0; i < kvpool_write_blocks(w); i++)
		if (kvpool_write_block(w, i))
			memset(kvpool_write_block(w, i), fake_byte(&keys[first + i]), BB);
}

/* What is cached, with its bytes. */
static size_t cached(void)
{
	size_t n = kvpool_acquire(ns, lease, tokens, BLOCKS * BT + 1, 0) / BT;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(*(const uint8_t *)kvpool_lease_block(lease, i),
				 fake_byte(&keys[i]));
	kvpool_release(lease);
	return n;
}

static unsigned int reserved(void)
{
	unsigned int n = 0;

	for (uint32_t d = 0; d < fake.m.next; d++)
		n += word_state(load_acquire(&fake.m.control.desc[d].word)) == DESC_RESERVED;
	return n;
}

/* Says nothing to the requests of one kind. */
static enum fake_answer silent_on(struct fake_request *rq, void *arg)
{
	if (rq->head.op != fake_number(arg))
		return FAKE_USUAL;
	add_acq_rel(&held_back, 1);
	return FAKE_SILENCE;
}

static void await_held_back(unsigned int n)
{
	while (load_acquire(&held_back) < n)
		usleep(100);
}

static void check_error(const char *expected)
{
	char text[512];

	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void test_write(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op = reserve(0, 0);

	assert_int_equal(kvpool_reserve_finish(op, &w), -EINPROGRESS);
	run_until_done(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), BLOCKS);
	fill(w, 0);
	op = commit(w, 3, 0);
	run_until_done(op);
	assert_int_equal(kvpool_commit_finish(op), 3);
	assert_int_equal(cached(), 3);
	op = commit(w, BLOCKS, 0);
	run_until_done(op);
	assert_int_equal(kvpool_commit_finish(op), BLOCKS - 3);
	assert_int_equal(cached(), BLOCKS);
	/* Nothing is left to ask. */
	op = commit(w, BLOCKS, 0);
	assert_int_equal(kvpool_op_done(op), 1);
	assert_int_equal(kvpool_commit_finish(op), 0);
	assert_int_equal(fake_seen(&fake, OP_COMMIT), 2);
	kvpool_write_free_start(w);
	check_quiet();
	assert_int_equal(fake_seen(&fake, OP_ABORT), 0);
}

/* Seven keys fit a message: the rest goes out by itself. */
static void test_long_runs(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op = reserve(1, 0);

	run_until_done(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), 0);
	for (size_t i = 0; i < kvpool_write_blocks(w); i++)
		assert_int_equal(kvpool_write_verdict(w, i), KVPOOL_NO_PARENT);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 1);
	kvpool_write_free(w);
	op = reserve(0, 0);
	run_until_done(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), BLOCKS);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 1 + (BLOCKS + 6) / 7);
	fill(w, 0);
	op = commit(w, BLOCKS - 1, 0);
	run_until_done(op);
	assert_int_equal(kvpool_commit_finish(op), BLOCKS - 1);
	assert_int_equal(fake_seen(&fake, OP_COMMIT), (BLOCKS - 1 + 6) / 7);
	assert_int_equal(cached(), BLOCKS - 1);
	kvpool_write_free_start(w);
	op = wait_for(0);
	run_until_done(op);
	assert_int_equal(kvpool_wait_finish(op), (BLOCKS - 1) * BT);
	assert_int_equal(fake_seen(&fake, OP_WAIT), (BLOCKS + 6) / 7);
	assert_int_equal(reserved(), 0);
}

static void test_wait(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op;

	fake_publish(&fake, keys, 0, 5);
	op = wait_for(0);
	run_until_done(op);
	assert_int_equal(kvpool_wait_finish(op), 5 * BT);
	assert_int_equal(kvpool_reserve(ns, tokens, BLOCKS * BT, 5, &w), BLOCKS - 5);
	op = wait_for(LATE);
	run_until_done(op);
	assert_int_equal(kvpool_wait_finish(op), -ETIMEDOUT);
	check_error("blocks are still being written by another program: the time to wait for them "
		    "is over");
	kvpool_write_free(w);
}

static enum fake_answer found_some(struct fake_request *rq, void *arg)
{
	const Kvpool__Locate *m = (const Kvpool__Locate *)rq->message;
	Kvpool__LocateReply r = KVPOOL__LOCATE_REPLY__INIT;

	if (rq->head.op != OP_LOCATE)
		return FAKE_USUAL;
	r.found = fake_seen(rq->fake, OP_LOCATE) % 2 ? (uint32_t)m->keys.len / 32 : 2;
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void test_locate(void **state)
{
	struct kvpool_op *op;

	fake_set_script(&fake, found_some, NULL);
	assert_int_equal(kvpool_locate(ns, tokens, BLOCKS * BT, 3), 9 * BT);
	assert_int_equal(kvpool_locate_start(ns, tokens, BLOCKS * BT, 0, 0, NULL, NULL, &op), 0);
	run_until_done(op);
	assert_int_equal(kvpool_locate_finish(op), 9 * BT);
	assert_int_equal(fake_seen(&fake, OP_LOCATE), 4);
}

static void test_wrong_use(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op = NULL;

	assert_int_equal(
		kvpool_reserve_start(ns, tokens, BLOCKS * BT, BLOCKS + 1, 0, NULL, NULL, &op),
		-EINVAL);
	assert_int_equal(kvpool_wait_start(ns, tokens, BLOCKS * BT, BLOCKS + 1, 0, NULL, NULL, &op),
			 -EINVAL);
	assert_int_equal(kvpool_reserve_keys_start(ns, NULL, keys, SIZE_MAX, 0, NULL, NULL, &op),
			 -EINVAL);
	assert_null(op);
	op = reserve(0, 0);
	assert_int_equal(kvpool_wait_finish(op), -EINVAL);
	check_error("this operation was started to reserve blocks, not to wait for blocks");
	run_until_done(op);
	assert_int_equal(kvpool_commit_finish(op), -EINVAL);
	assert_int_equal(kvpool_reserve_finish(op, &w), BLOCKS);
	assert_int_equal(kvpool_commit_start(w, BLOCKS + 1, 0, NULL, NULL, &op), -EINVAL);
	op = commit(w, 1, 0);
	assert_int_equal(kvpool_commit(w, 2), -EBUSY);
	assert_int_equal(kvpool_commit_start(w, 2, 0, NULL, NULL, &op), -EBUSY);
	run_until_done(op);
	assert_int_equal(kvpool_commit_finish(op), 1);
	kvpool_write_free(w);
	assert_null(kvpool_op_free(NULL));
	assert_null(kvpool_write_free_start(NULL));
}

/* An empty request needs no daemon. */
static void test_nothing_to_ask(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op;

	fake_stop(&fake);
	assert_int_equal(kvpool_reserve_start(ns, tokens, BT - 1, 0, 0, NULL, NULL, &op), 0);
	assert_int_equal(kvpool_op_done(op), 1);
	assert_int_equal(turn(), 1);
	assert_ptr_equal(kvpool_next_done(pool), op);
	assert_int_equal(kvpool_reserve_finish(op, &w), 0);
	assert_int_equal(kvpool_write_blocks(w), 0);
	kvpool_write_free_start(w);
}

/* Without callbacks: done operations come in order, each once. */
static void test_polling(void **state)
{
	struct kvpool_op *a = wait_for(0), *b = wait_for(0), *c = wait_for(0);

	assert_null(kvpool_next_done(pool));
	run_until_done(c);
	while (kvpool_dispatch(pool))
		;
	assert_ptr_equal(kvpool_next_done(pool), a);
	assert_int_equal(kvpool_wait_finish(a), 0);
	/* Freed before it was asked for: not there any more. */
	kvpool_op_free(b);
	assert_ptr_equal(kvpool_next_done(pool), c);
	assert_null(kvpool_next_done(pool));
	assert_int_equal(kvpool_wait_finish(c), 0);
	check_quiet();
}

/* Callbacks that do all that they may. */
struct called {
	unsigned int n;
	struct kvpool_op *other;
	struct kvpool_write *w;
	int result;
};

static void on_freed(void *arg, struct kvpool_op *op)
{
	abort();
}

static void on_commit(void *arg, struct kvpool_op *op)
{
	struct called *c = arg;

	assert(kvpool_op_arg(op) == arg);
	c->n++;
	c->result = kvpool_commit_finish(op);
}

static void on_reserve(void *arg, struct kvpool_op *op)
{
	struct called *c = arg;

	c->n++;
	c->result = kvpool_reserve_finish(op, &c->w);
	c->other = kvpool_op_free(c->other);
	fill(c->w, 0);
	assert(kvpool_commit_start(c->w, BLOCKS, 0, on_commit, c, &op) == 0);
}

static void test_callbacks(void **state)
{
	struct called c = { 0 };
	struct kvpool_op *op;

	assert_int_equal(kvpool_reserve_start(ns, tokens, BLOCKS * BT, 0, 0, on_reserve, &c, &op),
			 0);
	assert_int_equal(kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, 0, on_freed, &c, &c.other),
			 0);
	while (c.n < 2)
		turn();
	assert_int_equal(c.result, BLOCKS);
	assert_int_equal(cached(), BLOCKS);
	assert_null(kvpool_next_done(pool));
	kvpool_write_free_start(c.w);
	check_quiet();
}

static void on_canceled(void *arg, struct kvpool_op *op)
{
	struct called *c = arg;

	c->n++;
	c->result = (int)kvpool_wait_finish(op);
	if (c->other)
		kvpool_op_cancel(c->other);
	c->other = NULL;
}

/* One ends the other, which is handed out by the next round. */
static void test_cancel_in_callback(void **state)
{
	struct called c = { 0 };
	struct kvpool_op *op;

	fake_script_number(&fake, silent_on, OP_WAIT);
	assert_int_equal(kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, LATE, on_canceled, &c, &op),
			 0);
	assert_int_equal(
		kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, LATE, on_canceled, &c, &c.other), 0);
	kvpool_op_cancel(op);
	kvpool_op_cancel(op);
	assert_int_equal(kvpool_op_done(op), 1);
	assert_int_equal(turn(), 1);
	assert_int_equal(c.n, 1);
	assert_int_equal(turn(), 1);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.result, -ECANCELED);
	while (pool->ops.n_jobs)
		turn();
	check_quiet();
	assert_int_equal(fake_seen(&fake, OP_UNWAIT), 2);
}

static uint64_t waits_seen[2], unwait_id;

static enum fake_answer note_waits(struct fake_request *rq, void *arg)
{
	if (rq->head.op == OP_UNWAIT)
		unwait_id = ((const Kvpool__Unwait *)rq->message)->id;
	if (rq->head.op != OP_WAIT)
		return FAKE_USUAL;
	waits_seen[load_acquire(&held_back)] = rq->head.id;
	add_acq_rel(&held_back, 1);
	return FAKE_SILENCE;
}

/* The daemon hears of a wait that was given up, and of no other. */
static void test_end_of_a_wait(void **state)
{
	struct kvpool_op *freed, *goes_on, *done;

	done = wait_for(0);
	run_until_done(done);
	kvpool_op_cancel(done);
	kvpool_op_free(done);
	fake_set_script(&fake, note_waits, NULL);
	goes_on = wait_for(LATE);
	freed = wait_for(LATE);
	await_held_back(2);
	kvpool_op_free(freed);
	while (pool->ops.n_jobs > 1)
		turn();
	assert_int_equal(fake_seen(&fake, OP_UNWAIT), 1);
	assert_int_equal(unwait_id, waits_seen[1]);
	assert_int_equal(kvpool_op_done(goes_on), 0);
	fake_stop(&fake);
	kvpool_op_cancel(goes_on);
	assert_int_equal(kvpool_wait_finish(goes_on), -ECANCELED);
	fake_again(&fake);
}

/* One that does not know the operation is not asked. */
static void test_end_of_a_wait_before_an_old_daemon(void **state)
{
	struct kvpool_op *op;

	teardown(state);
	held_back = 0;
	fake_start(&fake);
	fake.no_features = 1;
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_script_number(&fake, silent_on, OP_WAIT);
	op = wait_for(LATE);
	await_held_back(1);
	kvpool_op_free(op);
	assert_int_equal(pool->ops.n_jobs, 0);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(fake_seen(&fake, OP_UNWAIT), 0);
}

/* The reply comes after the end of the operation: what it grants goes back. */
static enum fake_answer answer_later(struct fake_request *rq, void *arg)
{
	if (rq->head.op != OP_RESERVE)
		return FAKE_USUAL;
	add_acq_rel(&held_back, 1);
	while (load_acquire(&held_back) == 1)
		usleep(100);
	return FAKE_USUAL;
}

static void end_before_reply(int free_it)
{
	struct kvpool_op *op, *after;

	fake_set_script(&fake, answer_later, NULL);
	op = reserve(0, 0);
	await_held_back(1);
	if (free_it)
		kvpool_op_free(op);
	else
		kvpool_op_cancel(op);
	store_release(&held_back, 2);
	while (!fake_seen(&fake, OP_ABORT))
		turn();
	after = wait_for(0);
	run_until_done(after);
	assert_int_equal(kvpool_wait_finish(after), 0);
	assert_int_equal(reserved(), 0);
	if (!free_it) {
		struct kvpool_write *w = NULL;

		assert_int_equal(kvpool_reserve_finish(op, &w), -ECANCELED);
		assert_null(w);
	}
}

static void test_cancel_of_a_sent_reserve(void **state)
{
	end_before_reply(0);
}

static void test_free_of_a_sent_reserve(void **state)
{
	end_before_reply(1);
}

static void test_late_grant(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op, *after;

	fake_set_script(&fake, answer_later, NULL);
	op = reserve(0, 20);
	run_until_done(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), -ETIMEDOUT);
	check_error("cannot reserve blocks: the time for it is over");
	store_release(&held_back, 2);
	while (!fake_seen(&fake, OP_ABORT))
		turn();
	after = wait_for(0);
	run_until_done(after);
	assert_int_equal(kvpool_wait_finish(after), 0);
	assert_int_equal(reserved(), 0);
	assert_int_equal(kvpool_state(pool), KVPOOL_CONNECTED);
}

/* Done, and nobody takes the write. */
static void test_free_of_a_done_reserve(void **state)
{
	struct kvpool_op *op = reserve(0, 0);

	run_until_done(op);
	assert_int_equal(reserved(), BLOCKS);
	kvpool_op_free(op);
	while (!fake_seen(&fake, OP_ABORT))
		usleep(100);
	while (reserved())
		usleep(100);
	while (fake_seen(&fake, OP_ABORT) && pool->ops.n_jobs)
		turn();
}

/* Some messages of a long run had grants already. */
static enum fake_answer silent_after(struct fake_request *rq, void *arg)
{
	if (rq->head.op != OP_RESERVE || fake_seen(rq->fake, OP_RESERVE) <= fake_number(arg))
		return FAKE_USUAL;
	add_acq_rel(&held_back, 1);
	return FAKE_SILENCE;
}

static void test_deadline_in_a_long_run(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op;

	fake_script_number(&fake, silent_after, 3);
	op = reserve(0, 200);
	run_until_done(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), -ETIMEDOUT);
	/* The fourth message is never answered: what it might grant is waited for, until the end
	 * of the connection. */
	assert_int_equal(pool->ops.n_jobs, 1);
	assert_int_equal(reserved(), 3 * 7);
}

static void test_cancel_of_a_commit(void **state)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op = reserve(0, 0);

	run_until_done(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), BLOCKS);
	fill(w, 0);
	fake_script_number(&fake, silent_on, OP_COMMIT);
	op = commit(w, 5, 0);
	await_held_back(1);
	kvpool_op_cancel(op);
	assert_int_equal(kvpool_write_verdict(w, 4), KVPOOL_STALE);
	assert_int_equal(kvpool_write_verdict(w, 5), KVPOOL_GRANTED);
	assert_int_equal(kvpool_commit_finish(op), -ECANCELED);
	/* The write is freed while its commit is under way. */
	op = commit(w, BLOCKS, 0);
	kvpool_write_free(w);
	assert_int_equal(kvpool_commit_finish(op), -ECANCELED);
	assert_int_equal(reserved(), 0);
}

/* A commit whose sum was computed by itself sees what was written after it was given up. */
static void test_commit_again(void **state)
{
	struct iovec iov;
	static uint8_t buf[BB];
	struct kvpool_write *w = NULL;
	struct kvpool_op *op;

	assert_int_equal(kvpool_reserve(ns, tokens, BT, 0, &w), 1);
	memset(kvpool_write_block(w, 0), 0x55, BB);
	pool->ops.n_jobs += OPS_MAX;
	assert_int_equal(kvpool_commit_start(w, 1, 0, NULL, NULL, &op), -EAGAIN);
	pool->ops.n_jobs -= OPS_MAX;
	fill(w, 0);
	op = commit(w, 1, 0);
	run_until_done(op);
	assert_int_equal(kvpool_commit_finish(op), 1);
	kvpool_write_free(w);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT + 1, 0), BT);
	iov = (struct iovec){ buf, BB };
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, KVPOOL_VERIFY), 0);
	kvpool_release(lease);
}

/* The daemon sleeps, the socket gets full, and all go out in order when it wakes up. */
static enum fake_answer sleep_once(struct fake_request *rq, void *arg)
{
	if (rq->head.op == OP_WAIT && !load_acquire(&held_back)) {
		add_acq_rel(&held_back, 1);
		while (load_acquire(&held_back) == 1)
			usleep(100);
	}
	return FAKE_USUAL;
}

static unsigned int order[MANY], n_order;

static void on_ordered(void *arg, struct kvpool_op *op)
{
	order[n_order++] = (unsigned int)(uintptr_t)arg;
	assert(kvpool_wait_finish(op) == 0);
}

static void test_thousands(void **state)
{
	struct kvpool_op *op;

	n_order = 0;
	fake_set_script(&fake, sleep_once, NULL);
	for (uintptr_t i = 0; i < MANY; i++)
		assert_int_equal(kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, LATE, on_ordered,
						   (void *)i, &op),
				 0);
	assert_int_equal(kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, LATE, on_ordered, NULL, &op),
			 -EAGAIN);
	check_error("cannot wait for blocks: 4096 operations are under way; finish some, or wait "
		    "until kvpoold answers");
	assert_false(list_empty(&pool->ops.queue));
	/* A full socket is no reason to wake up. */
	check_quiet();
	store_release(&held_back, 2);
	while (n_order < MANY)
		assert_in_range(turn(), 0, OPS_ROUND);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(order[i], i);
	assert_int_equal(pool->ops.n_jobs, 0);
	check_quiet();
}

/* Those that never went out end as well: cancelled, freed, or too late. */
static void test_ends_while_queued(void **state)
{
	static struct kvpool_op *op[MANY];
	struct kvpool_write *w = NULL;
	size_t n = 0;

	fake_set_script(&fake, sleep_once, NULL);
	while (list_empty(&pool->ops.queue))
		op[n++] = wait_for(LATE);
	for (unsigned int i = 0; i < 3; i++)
		op[n++] = reserve(0, i == 2 ? 20 : 0);
	kvpool_op_cancel(op[n - 3]);
	kvpool_op_free(op[n - 2]);
	run_until_done(op[n - 1]);
	assert_int_equal(kvpool_reserve_finish(op[n - 3], &w), -ECANCELED);
	assert_int_equal(kvpool_reserve_finish(op[n - 1], &w), -ETIMEDOUT);
	store_release(&held_back, 2);
	for (size_t i = 0; i < n - 3; i++) {
		run_until_done(op[i]);
		assert_int_equal(kvpool_wait_finish(op[i]), 0);
	}
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 0);
}

static enum fake_answer refuse_waits(struct fake_request *rq, void *arg)
{
	if (rq->head.op != OP_WAIT)
		return FAKE_USUAL;
	fake_error(rq, ERROR_LIMIT, "this client waits for too much already");
	return FAKE_SILENCE;
}

static void test_refused(void **state)
{
	struct kvpool_op *op;

	fake_set_script(&fake, refuse_waits, NULL);
	op = wait_for(LATE);
	run_until_done(op);
	assert_int_equal(kvpool_wait_finish(op), -ENOSPC);
	check_error("cannot wait for blocks: kvpoold refuses: this client waits for too much "
		    "already");
	assert_int_equal(kvpool_state(pool), KVPOOL_CONNECTED);
}

#define TEST(f)       cmocka_unit_test_setup_teardown(f, setup, teardown)
#define SHORT_TEST(f) cmocka_unit_test_setup_teardown(f, setup_short, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write),
		SHORT_TEST(test_long_runs),
		TEST(test_wait),
		SHORT_TEST(test_locate),
		TEST(test_wrong_use),
		TEST(test_nothing_to_ask),
		TEST(test_polling),
		TEST(test_callbacks),
		TEST(test_cancel_in_callback),
		TEST(test_end_of_a_wait),
		TEST(test_end_of_a_wait_before_an_old_daemon),
		TEST(test_cancel_of_a_sent_reserve),
		TEST(test_free_of_a_sent_reserve),
		TEST(test_late_grant),
		TEST(test_free_of_a_done_reserve),
		SHORT_TEST(test_deadline_in_a_long_run),
		TEST(test_cancel_of_a_commit),
		TEST(test_commit_again),
		TEST(test_thousands),
		TEST(test_ends_while_queued),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
