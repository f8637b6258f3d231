/* SPDX-License-Identifier: Apache-2.0 */
/* What a sequence does without waiting, with a scripted daemon. */
#undef NDEBUG
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "client/handle.h"
#include "client/kvpool-seq.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 60u
#define LATE   20000 /* ms: never */

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_seq *seq;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];
static unsigned int held_back; /* atomic: requests that were not answered */

static int setup(void **state)
{
	held_back = 0;
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_seq_new(ns, BLOCKS, &seq), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	return 0;
}

/* Hazard words that are set in the session. */
static uint32_t words(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < fake.session.hazard_count; i++)
		n += load_acquire(&fake.session.hazard[i]) != 0;
	return n;
}

static void settle(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	while (pool->ops.n_jobs) {
		assert_int_equal(poll(&p, 1, LATE), 1);
		assert_true(kvpool_dispatch(pool) >= 0);
	}
}

/* Whatever a test does: at the end nothing is held. */
static int teardown(void **state)
{
	seq = kvpool_seq_free_start(seq);
	settle();
	if (fake.listener >= 0 && kvpool_state(pool) == KVPOOL_CONNECTED) {
		assert_int_equal(words(), 0);
		assert_int_equal(fake.unnamed, 0);
	}
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static void grow(size_t first, size_t end)
{
	assert_int_equal(kvpool_seq_grow(seq, end), end);
	for (size_t i = first; i < end; i++)
		memset(kvpool_seq_own_block(seq, i), fake_byte(&keys[i]), BB);
}

static void check_bytes(size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(*(const uint8_t *)kvpool_seq_block(seq, i), fake_byte(&keys[i]));
}

static void check_verdicts(enum kvpool_verdict v, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		assert_int_equal(kvpool_seq_verdict(seq, i), v);
		assert_int_equal(kvpool_seq_own_block(seq, i) == NULL, v == KVPOOL_COMMITTED);
	}
}

static struct kvpool_op *commit_within(size_t n, unsigned int flags, unsigned int timeout_ms)
{
	struct kvpool_op *op;

	assert_int_equal(
		kvpool_seq_commit_start(seq, tokens, n * BT, flags, timeout_ms, NULL, NULL, &op),
		0);
	return op;
}

static struct kvpool_op *commit(size_t n, unsigned int flags)
{
	return commit_within(n, flags, 0);
}

static void await(const struct kvpool_op *op)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	while (!kvpool_op_done(op)) {
		assert_int_equal(poll(&p, 1, LATE), 1);
		assert_true(kvpool_dispatch(pool) >= 0);
	}
}

static int finish(struct kvpool_op *op)
{
	await(op);
	return kvpool_seq_commit_finish(op);
}

/* Answers commits, but the client does not hear of it. */
static enum fake_answer commit_unheard(struct fake_request *rq, void *arg)
{
	struct fake_request nowhere = *rq;
	int pair[2];

	if (rq->head.op != OP_COMMIT)
		return FAKE_USUAL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		abort();
	nowhere.sock = pair[0];
	fake_usual(&nowhere);
	close(pair[0]);
	close(pair[1]);
	add_acq_rel(&held_back, 1);
	return FAKE_SILENCE;
}

static void await_held_back(unsigned int n)
{
	while (load_acquire(&held_back) < n)
		usleep(100);
}

/* Fifteen leases are free for pins: 50 blocks are several messages, which go out by themselves. */
static void commits_in_parts(void **state)
{
	grow(0, 50);
	assert_int_equal(finish(commit(3, 0)), 3);
	check_verdicts(KVPOOL_COMMITTED, 0, 3);
	check_verdicts(KVPOOL_GRANTED, 3, 50);
	assert_int_equal(finish(commit(50, 0)), 47);
	assert_true(fake_seen(&fake, OP_COMMIT) > 3);
	check_verdicts(KVPOOL_COMMITTED, 0, 50);
	check_bytes(50);
	assert_int_equal(words(), 1);
	/* Nothing is left to ask. */
	assert_int_equal(kvpool_seq_commit_finish(commit(50, KVPOOL_SWAP)), 0);
	for (size_t i = 0; i < 50; i++)
		assert_true(fake_find(&fake, &keys[i]) != DESC_NONE);
}

static void commits_by_keys(void **state)
{
	struct kvpool_op *op;

	grow(0, 5);
	assert_int_equal(kvpool_seq_commit_keys_start(seq, keys, 4, 0, 0, NULL, NULL, &op), 0);
	assert_int_equal(finish(op), 4);
	check_verdicts(KVPOOL_COMMITTED, 0, 4);
	assert_int_equal(kvpool_seq_commit_start(seq, tokens, BT, 64, 0, NULL, NULL, &op), -EINVAL);
}

/* A sequence is the operation's own until it is finished; looking is fine. */
static void is_busy_meanwhile(void **state)
{
	struct kvpool_seq *copy;
	struct kvpool_op *op, *other;
	struct kvpool_write *w;

	grow(0, 4);
	op = commit(3, 0);
	check_bytes(4);
	assert_int_equal(kvpool_seq_commit_finish(op), -EINPROGRESS);
	assert_int_equal(kvpool_seq_grow(seq, 5), -EBUSY);
	assert_int_equal(kvpool_seq_grow_start(seq, 5, 0, NULL, NULL, &other), -EBUSY);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), -EBUSY);
	assert_int_equal(kvpool_seq_commit_start(seq, tokens, 4 * BT, 0, 0, NULL, NULL, &other),
			 -EBUSY);
	assert_int_equal(kvpool_seq_truncate(seq, 1), -EBUSY);
	assert_int_equal(kvpool_seq_truncate_start(seq, 1), -EBUSY);
	assert_int_equal(kvpool_seq_fork(seq, &copy), -EBUSY);
	await(op);
	assert_int_equal(kvpool_reserve_finish(op, &w), -EINVAL);
	assert_int_equal(kvpool_seq_grow(seq, 5), -EBUSY);
	assert_int_equal(kvpool_seq_commit_finish(op), 3);
	assert_int_equal(kvpool_seq_grow(seq, 5), 5);
}

/* Its message went out, and nothing is known: the pins stay, and the next commit finds out. */
static void given_up(unsigned int timeout_ms, int err)
{
	struct kvpool_op *op;

	grow(0, 6);
	fake_set_script(&fake, commit_unheard, NULL);
	op = commit_within(5, 0, timeout_ms);
	await_held_back(1);
	if (!timeout_ms)
		kvpool_op_cancel(op);
	assert_int_equal(finish(op), err);
	fake_set_script(&fake, NULL, NULL);
	check_bytes(6);
	assert_int_equal(words(), 5);
	assert_true(fake_find(&fake, &keys[4]) != DESC_NONE);
	assert_int_equal(finish(commit(6, 0)), 1);
	check_verdicts(KVPOOL_COMMITTED, 0, 6);
	check_bytes(6);
}

static void cancelled(void **state)
{
	given_up(0, -ECANCELED);
}

static void too_late(void **state)
{
	given_up(20, -ETIMEDOUT);
}

/* The sequence may go at any time; its operation says so, and nothing is left behind. */
static void freed_meanwhile(void **state)
{
	struct kvpool_op *op;

	grow(0, 6);
	fake_set_script(&fake, commit_unheard, NULL);
	op = commit(5, 0);
	await_held_back(1);
	seq = kvpool_seq_free_start(seq);
	assert_int_equal(kvpool_op_done(op), 1);
	assert_int_equal(kvpool_seq_commit_finish(op), -ECANCELED);
	settle();
	assert_int_equal(words(), 0);
}

static void freed_when_done(void **state)
{
	struct kvpool_op *op;

	grow(0, 6);
	op = commit(5, KVPOOL_SWAP);
	await(op);
	seq = kvpool_seq_free(seq);
	assert_int_equal(kvpool_seq_commit_finish(op), 5);
}

/* The other way round: the operation goes first. */
static void freed_operation(void **state)
{
	grow(0, 6);
	fake_publish(&fake, keys, 0, 2);
	kvpool_op_free(commit(5, KVPOOL_SWAP));
	settle();
	assert_int_equal(kvpool_seq_truncate(seq, 1), 0);
}

static void acquired_meanwhile(void **state)
{
	struct kvpool_op *op;

	fake_publish(&fake, keys, 0, 3);
	grow(0, 6);
	op = commit(5, 0);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, BLOCKS * BT), 5 * BT);
	assert_int_equal(kvpool_op_done(op), 1);
	assert_int_equal(kvpool_seq_commit_finish(op), -ECANCELED);
	check_bytes(5);
}

/* Blocks that somebody else stored meanwhile: the table changes when the program says so. */
static void swaps_when_finished(void **state)
{
	uint32_t before[6], after[6];
	struct kvpool_op *op;

	grow(0, 6);
	fake_publish(&fake, keys, 0, 3);
	kvpool_seq_table(seq, 0, before, 6);
	op = commit(5, KVPOOL_SWAP);
	await(op);
	kvpool_seq_table(seq, 0, after, 6);
	assert_memory_equal(before, after, sizeof(before));
	check_verdicts(KVPOOL_PRESENT, 0, 3);
	assert_int_equal(kvpool_seq_commit_finish(op), 2);
	kvpool_seq_table(seq, 0, after, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(after[i] == before[i], i >= 3);
	for (size_t i = 0; i < 3; i++)
		assert_null(kvpool_seq_own_block(seq, i));
	check_bytes(6);
	settle();
	assert_int_equal(fake.unnamed, 1);
	/* What was not finished does not swap later. */
	assert_int_equal(kvpool_seq_truncate_start(seq, 0), 0);
	grow(0, 3);
	op = commit(3, KVPOOL_SWAP);
	await(op);
	kvpool_op_free(op);
	assert_int_equal(finish(commit(3, 0)), 0);
	check_verdicts(KVPOOL_PRESENT, 0, 3);
	assert_int_equal(finish(commit(3, KVPOOL_SWAP)), 0);
	assert_null(kvpool_seq_own_block(seq, 0));
}

static void over_the_death_of_the_daemon(void **state)
{
	struct kvpool_op *op;

	grow(0, 6);
	assert_int_equal(finish(commit(2, 0)), 2);
	fake_set_script(&fake, commit_unheard, NULL);
	op = commit(5, 0);
	await_held_back(1);
	fake_stop(&fake);
	assert_int_equal(finish(op), -ENOTCONN);
	check_bytes(6);
	assert_int_equal(kvpool_seq_commit_start(seq, tokens, 6 * BT, 0, 0, NULL, NULL, &op),
			 -ENOTCONN);
	assert_int_equal(kvpool_seq_truncate_start(seq, 4), 0);
	check_bytes(4);
	fake_again(&fake);
}

/* Nothing of the parent's is ended by a child that frees what it got. */
static void in_a_child(void **state)
{
	struct kvpool_op *op, *other;
	int status;
	pid_t pid;

	grow(0, 6);
	fake_set_script(&fake, commit_unheard, NULL);
	op = commit(5, KVPOOL_SWAP);
	await_held_back(1);
	pid = fork();
	if (!pid) {
		int good = kvpool_seq_commit_finish(op) == -ESTALE &&
			   kvpool_seq_commit_start(seq, tokens, BT, 0, 0, NULL, NULL, &other) ==
				   -ESTALE &&
			   kvpool_seq_truncate_start(seq, 0) == -ESTALE;

		kvpool_seq_free_start(seq);
		kvpool_op_free(op);
		_exit(!good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(words(), 5);
	kvpool_op_free(op);
	check_bytes(6);
}

static void *dispatch_until_done(void *op)
{
	await(op);
	return NULL;
}

/* One thread decodes, another one dispatches. */
static void looked_at_from_another_thread(void **state)
{
	struct kvpool_op *op;
	pthread_t thread;

	grow(0, 50);
	op = commit(50, KVPOOL_SWAP);
	assert_int_equal(pthread_create(&thread, NULL, dispatch_until_done, op), 0);
	while (!kvpool_op_done(op))
		for (size_t i = 0; i < 50; i++)
			(void)(kvpool_seq_own_block(seq, i) && kvpool_seq_verdict(seq, i));
	check_bytes(50);
	pthread_join(thread, NULL);
	assert_int_equal(kvpool_seq_commit_finish(op), 50);
}

static void cut_without_waiting(void **state)
{
	grow(0, 10);
	assert_int_equal(finish(commit(4, 0)), 4);
	assert_int_equal(kvpool_seq_truncate_start(seq, 11), -EINVAL);
	assert_int_equal(kvpool_seq_truncate_start(seq, 6), 0);
	assert_int_equal(kvpool_seq_blocks(seq), 6);
	settle();
	assert_int_equal(fake.unnamed, 2);
	assert_int_equal(kvpool_seq_truncate_start(seq, 2), 0);
	settle();
	assert_int_equal(fake.unnamed, 0);
	check_bytes(2);
	assert_int_equal(fake_seen(&fake, OP_ABORT), 2);
	assert_int_equal(kvpool_seq_truncate_start(seq, 0), 0);
	assert_int_equal(fake_seen(&fake, OP_ABORT), 2);
	assert_null(kvpool_seq_free_start(NULL));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(commits_in_parts),
		TEST(commits_by_keys),
		TEST(is_busy_meanwhile),
		TEST(cancelled),
		TEST(too_late),
		TEST(freed_meanwhile),
		TEST(freed_when_done),
		TEST(freed_operation),
		TEST(acquired_meanwhile),
		TEST(swaps_when_finished),
		TEST(over_the_death_of_the_daemon),
		TEST(in_a_child),
		TEST(looked_at_from_another_thread),
		TEST(cut_without_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
