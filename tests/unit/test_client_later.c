/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that do not wait for their daemon, not even to connect, with a scripted one. */
#undef NDEBUG
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "client/handle.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BLOCKS 8u
#define LATE   20000 /* ms: never */

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static struct kvpool *open_later(unsigned int timeout_ms)
{
	const struct kvpool_options o = {
		.size = sizeof(o),
		.socket = fake.socket,
		.timeout_ms = timeout_ms,
		.flags = KVPOOL_CONNECT_LATER,
	};
	struct kvpool *p;

	assert_int_equal(kvpool_connect(&o, &p), 0);
	return p;
}

static int setup(void **state)
{
	fake_start(&fake);
	pool = open_later(LATE);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	fake_publish(&fake, keys, 0, BLOCKS);
	return 0;
}

static int teardown(void **state)
{
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static size_t cached(struct kvpool_ns *n)
{
	size_t found = kvpool_acquire(n, lease, tokens, BLOCKS * BT + 1, 0) / BT;

	kvpool_release(lease);
	return found;
}

static void turn(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	assert_int_equal(poll(&p, 1, LATE), 1);
	assert_true(kvpool_dispatch(pool) >= 0);
}

static void until_connected(void)
{
	while (kvpool_state(pool) != KVPOOL_CONNECTED)
		turn();
}

static void check_quiet(void)
{
	struct pollfd p = { .fd = kvpool_fd(pool), .events = POLLIN };

	for (int i = 0; i < 10 && poll(&p, 1, 0) == 1; i++)
		assert_int_equal(kvpool_dispatch(pool), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static enum fake_answer silent_on(struct fake_request *rq, void *arg)
{
	return rq->head.op == fake_number(arg) ? FAKE_SILENCE : FAKE_USUAL;
}

static enum fake_answer refuse_ns(struct fake_request *rq, void *arg)
{
	if (rq->head.op != OP_NS_OPEN)
		return FAKE_USUAL;
	fake_error(rq, ERROR_LIMIT, "no more namespaces");
	return FAKE_SILENCE;
}

/* A daemon that answers nothing: nobody waits for it. */
static void nothing_waits(void **state)
{
	struct kvpool_op *op;

	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	assert_int_equal(kvpool_features(pool), 0);
	assert_int_equal(cached(ns), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NO_DAEMON);
	assert_int_equal(kvpool_wait_start(ns, tokens, BT, 0, 0, NULL, NULL, &op), -ENOTCONN);
	assert_int_equal(fake_seen(&fake, OP_HELLO), 0);
	fake_script_number(&fake, silent_on, OP_HELLO);
	turn();
	while (!fake_seen(&fake, OP_HELLO))
		usleep(100);
	assert_int_equal(kvpool_dispatch(pool), 0);
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
}

static void the_loop_connects(void **state)
{
	until_connected();
	assert_int_equal(cached(ns), BLOCKS);
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), 1);
	check_quiet();
}

static void a_call_that_waits_connects(void **state)
{
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(kvpool_state(pool), KVPOOL_CONNECTED);
	assert_int_equal(cached(ns), BLOCKS);
	until_connected();
	check_quiet();
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), 1);
}

/* Namespaces that are opened later are registered one after the other. */
static void namespaces_are_registered(void **state)
{
	struct kvpool_ns *more[3];
	unsigned int before;

	until_connected();
	check_quiet();
	before = fake_seen(&fake, OP_NS_OPEN);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		more[i] = fake_ns(pool, "m");
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), before);
	assert_int_equal(cached(more[0]), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NO_DAEMON);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		while (cached(more[i]) != BLOCKS)
			turn();
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), before + ARRAY_SIZE(more));
	check_quiet();
	assert_int_equal(pool->ops.n_jobs, 0);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		kvpool_ns_close(more[i]);
}

static void a_namespace_that_is_refused(void **state)
{
	struct kvpool_ns *refused;

	until_connected();
	check_quiet();
	fake_set_script(&fake, refuse_ns, NULL);
	refused = fake_ns(pool, "other");
	do {
		turn();
		assert_int_equal(cached(refused), 0);
	} while (kvpool_lease_reason(lease) == KVPOOL_NO_DAEMON);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NAMESPACE);
	check_quiet();
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), 2);
	kvpool_ns_close(refused);
}

/* It is asked again and again, until there is an answer. */
static void a_namespace_without_an_answer(void **state)
{
	struct kvpool_ns *late;

	teardown(state);
	fake_start(&fake);
	pool = open_later(20);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_publish(&fake, keys, 0, BLOCKS);
	until_connected();
	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	late = fake_ns(pool, "m");
	while (fake_seen(&fake, OP_NS_OPEN) < 4)
		turn();
	assert_int_equal(cached(late), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_TIMEOUT);
	assert_int_equal(kvpool_state(pool), KVPOOL_CONNECTED);
	fake_set_script(&fake, NULL, NULL);
	while (cached(late) != BLOCKS)
		turn();
	kvpool_ns_close(late);
}

/* While the question is under way it is closed, and the connection goes. */
static void ends_while_asked(void **state)
{
	struct kvpool_ns *gone;

	until_connected();
	check_quiet();
	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	gone = fake_ns(pool, "gone");
	turn();
	assert_int_equal(pool->ops.n_jobs, 1);
	kvpool_ns_close(gone);
	fake_stop(&fake);
	fake_set_script(&fake, NULL, NULL);
	fake_again(&fake);
	fake_publish(&fake, keys, 0, BLOCKS);
	while (kvpool_state(pool) != KVPOOL_DISCONNECTED)
		turn();
	until_connected();
	assert_int_equal(cached(ns), BLOCKS);
	assert_int_equal(pool->ops.n_jobs, 0);
	/* And with the handle. */
	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	kvpool_ns_close(fake_ns(pool, "gone"));
	check_quiet();
	ns = kvpool_ns_close(ns);
	ns = fake_ns(pool, "m");
	turn();
}

static void comes_when_there_is_a_daemon(void **state)
{
	fake_stop(&fake);
	for (int i = 0; i < 3; i++)
		turn();
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	fake_again(&fake);
	until_connected();
	fake_publish(&fake, keys, 0, BLOCKS);
	assert_int_equal(cached(ns), BLOCKS);
}

static void in_a_child(void **state)
{
	struct kvpool_ns *asked;
	int status;
	pid_t pid;

	until_connected();
	check_quiet();
	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	asked = fake_ns(pool, "asked");
	turn();
	pid = fork();
	if (!pid) {
		int stale = kvpool_dispatch(pool) == -ESTALE;

		kvpool_ns_close(asked);
		kvpool_ns_close(ns);
		kvpool_lease_free(lease);
		kvpool_close(pool);
		_exit(!stale);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_ping(pool), 0);
	kvpool_ns_close(asked);
}

static void options_of_every_size(void **state)
{
	struct kvpool_options o = {
		.size = offsetof(struct kvpool_options, log),
		.socket = fake.socket,
		.flags = UINT32_MAX, /* beyond the size of a program that knows none */
	};
	struct kvpool *p;

	assert_int_equal(kvpool_connect(&o, &p), 0);
	assert_int_equal(kvpool_state(p), KVPOOL_CONNECTED);
	kvpool_close(p);
	o.size = offsetof(struct kvpool_options, flags);
	assert_int_equal(kvpool_connect(&o, &p), 0);
	assert_int_equal(kvpool_state(p), KVPOOL_CONNECTED);
	kvpool_close(p);
	o.size = sizeof(o);
	assert_int_equal(kvpool_connect(&o, &p), -EINVAL);
	o.flags = 2 * KVPOOL_CONNECT_LATER;
	assert_int_equal(kvpool_connect(&o, &p), -EINVAL);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nothing_waits),
		TEST(the_loop_connects),
		TEST(a_call_that_waits_connects),
		TEST(namespaces_are_registered),
		TEST(a_namespace_that_is_refused),
		TEST(a_namespace_without_an_answer),
		TEST(ends_while_asked),
		TEST(comes_when_there_is_a_daemon),
		TEST(in_a_child),
		TEST(options_of_every_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
