/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, losing the connection, and connecting again, with a scripted daemon. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "client/handle.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BLOCKS 8u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static int setup(void **state)
{
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
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

static size_t acquire(void)
{
	return kvpool_acquire(ns, lease, tokens, BLOCKS * BT + 1, 0) / BT;
}

static void check_error(const char *format, ...)
{
	char text[512], expected[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(expected, sizeof(expected), format, ap);
	va_end(ap);
	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text, expected);
}

static unsigned int mapped(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ATTACH_MAX; i++)
		n += attach_is_mapped(&pool->attach[i]);
	return n;
}

static void test_connected(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };

	assert_int_equal(kvpool_state(pool), KVPOOL_CONNECTED);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.requests, 3); /* hello, ns_open, ping */
	assert_int_equal(s.reconnects, 0);
	check_error("%s", "");
}

/* A crash: what was found stays found until there is another daemon. */
static void test_reconnect(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };
	const uint8_t *block;

	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(acquire(), 4);
	block = kvpool_lease_block(lease, 3);
	fake_stop(&fake);
	assert_int_equal(kvpool_ping(pool), -ECONNREFUSED);
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	assert_int_equal(acquire(), 4);
	assert_int_equal(block[7], fake_byte(&keys[3]));
	fake_again(&fake);
	fake_publish(&fake, keys, 0, 2);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_state(pool), KVPOOL_CONNECTED);
	/* The lease keeps the old memory, in which it can grow, until it is released. */
	assert_int_equal(mapped(), 2);
	assert_int_equal(block[7], fake_byte(&keys[3]));
	assert_int_equal(kvpool_extend(lease, tokens, BLOCKS * BT + 1), 4 * BT);
	assert_int_equal(acquire(), 2);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(mapped(), 2);
	/* Unmapping is not for the hit path, but for the next call that may do it. */
	kvpool_ns_close(fake_ns(pool, "another"));
	assert_int_equal(mapped(), 1);
	assert_int_equal(fake_seen(&fake, OP_NS_OPEN), 3);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.reconnects, 1);
	assert_int_equal(s.lookups, 4);
	assert_int_equal(s.asked_tokens, s.hit_tokens + s.miss_tokens);
}

/* After the first failure of a good connection the next call tries at once. */
static void test_reconnect_by_itself(void **state)
{
	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(kvpool_ping(pool), 0);
	fake_publish(&fake, keys, 0, 3);
	assert_int_equal(acquire(), 3);
	fake_stop(&fake);
	assert_int_equal(kvpool_ping(pool), -ECONNREFUSED);
	fake_again(&fake);
	/* In the back-off. */
	assert_int_equal(kvpool_ping(pool), -ECONNREFUSED);
	while (kvpool_ping(pool) < 0)
		usleep(1000);
	assert_int_equal(acquire(), 0);
}

/* Nobody asked the daemon: the stop shows in shared memory. */
static void test_orderly_stop(void **state)
{
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(acquire(), 4);
	kvpool_release(lease);
	fake_retire(&fake);
	assert_int_equal(acquire(), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NO_DAEMON);
	assert_int_equal(mapped(), 1);
	fake_stop(&fake);
	assert_int_equal(kvpool_ping(pool), -ECONNREFUSED);
	/* The memory is given back, so that it can be freed. */
	assert_int_equal(mapped(), 0);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(acquire(), 4);
}

static enum fake_answer say_stopping(struct fake_request *rq, void *arg)
{
	struct frame_header h = { .magic = FRAME_MAGIC, .op = OP_STOPPING };
	Kvpool__Stopping m = KVPOOL__STOPPING__INIT;

	if (rq->head.op != OP_PING || fake_seen(rq->fake, OP_PING) > 1)
		return FAKE_USUAL;
	fake_send(rq, &h, &m.base, NULL, 0);
	return FAKE_SILENCE;
}

static void test_stopping(void **state)
{
	fake_set_script(&fake, say_stopping, NULL);
	assert_int_equal(kvpool_ping(pool), -ENOTCONN);
	check_error("cannot ping it: the connection to kvpoold is lost: the daemon stops");
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(fake.sessions, 2);
}

static enum fake_answer hang_up_on(struct fake_request *rq, void *arg)
{
	return rq->head.op == fake_number(arg) ? FAKE_HANG_UP : FAKE_USUAL;
}

static enum fake_answer silent_on(struct fake_request *rq, void *arg)
{
	return rq->head.op == fake_number(arg) ? FAKE_SILENCE : FAKE_USUAL;
}

static enum fake_answer refuse(struct fake_request *rq, void *arg)
{
	if (rq->head.op != fake_number(arg))
		return FAKE_USUAL;
	fake_error(rq, ERROR_LIMIT, "there are too many; close some");
	return FAKE_SILENCE;
}

/* At each step of the way to a session. */
static void test_hang_up_while_connecting(void **state)
{
	fake_stop(&fake);
	fake_again(&fake);
	fake_script_number(&fake, hang_up_on, OP_HELLO);
	assert_int_equal(kvpool_reconnect(pool), -ENOTCONN);
	check_error(
		"cannot start a session with kvpoold at %s: it closed the connection (its log says "
		"why)",
		fake.socket);
	fake_script_number(&fake, hang_up_on, OP_NS_OPEN);
	assert_int_equal(kvpool_reconnect(pool), -ENOTCONN);
	check_error(
		"cannot open a namespace: the connection to kvpoold is lost: the daemon closed it");
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	/* The memory of the first one is still there, that of the failed one is not. */
	kvpool_ns_close(fake_ns(pool, "another"));
	assert_int_equal(mapped(), 1);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_reconnect(pool), 0);
}

static void test_refused_session(void **state)
{
	fake_stop(&fake);
	fake_again(&fake);
	fake_script_number(&fake, refuse, OP_HELLO);
	assert_int_equal(kvpool_reconnect(pool), -ENOSPC);
	check_error("cannot start a session with kvpoold at %s: there are too many; close some",
		    fake.socket);
	fake_set_script(&fake, NULL, NULL);
}

static enum fake_answer refuse_connection(struct fake_request *rq, void *arg)
{
	struct frame_header h = { .magic = FRAME_MAGIC, .flags = FRAME_REPLY | FRAME_ERROR };
	Kvpool__Error e = KVPOOL__ERROR__INIT;

	e.code = fake_number(arg);
	e.text = (char *)"user 5 may not use this socket";
	fake_send(rq, &h, &e.base, NULL, 0);
	return FAKE_HANG_UP;
}

/* The daemon says why before it knows what is asked. */
static void test_refused_connection(void **state)
{
	static const int errors[] = { [ERROR_DENIED] = -EACCES, [ERROR_LIMIT] = -ENOSPC };

	fake_stop(&fake);
	fake_again(&fake);
	for (unsigned int code = ERROR_DENIED; code <= ERROR_LIMIT; code++) {
		fake_script_number(&fake, refuse_connection, code);
		assert_int_equal(kvpool_reconnect(pool), errors[code]);
		check_error("cannot start a session with kvpoold at %s: user 5 may not use this "
			    "socket",
			    fake.socket);
	}
	fake_set_script(&fake, NULL, NULL);
}

/* Takes the descriptors away that the answer would need, in the same process. */
static enum fake_answer leave_no_descriptors(struct fake_request *rq, void *arg)
{
	const struct rlimit *old = arg;
	struct rlimit few = { 4, old->rlim_max }; /* these four are open */
	struct frame_header h = {
		.magic = FRAME_MAGIC, .op = OP_HELLO, .flags = FRAME_REPLY, .id = rq->head.id,
	};
	Kvpool__HelloReply r = KVPOOL__HELLO_REPLY__INIT;
	const struct fake_memory *m = &rq->fake->m;

	assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
	fake_send(rq, &h, &r.base, (int[]){ m->control_ro, m->pool_fd, m->pool_fd }, 3);
	return FAKE_SILENCE;
}

static void test_no_descriptors_left(void **state)
{
	struct rlimit old;
	int err;

	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	fake_set_script(&fake, leave_no_descriptors, &old);
	err = kvpool_reconnect(pool);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(err, -EMFILE);
	check_error("cannot start a session with kvpoold at %s: this process has too many files "
		    "open for what the daemon sends; close some, or raise the limit with ulimit -n",
		    fake.socket);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_reconnect(pool), 0);
}

static void test_silence(void **state)
{
	struct kvpool *p = fake_connect(&fake, 500);

	fake_script_number(&fake, silent_on, OP_PING);
	assert_int_equal(kvpool_ping(p), -ETIMEDOUT);
	/* It may come back: the connection stays. */
	assert_int_equal(kvpool_state(p), KVPOOL_CONNECTED);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_ping(p), 0);
	kvpool_close(p);
}

static void test_refused_namespace(void **state)
{
	struct kvpool_ns *other;
	struct kvpool_write *w;

	fake_script_number(&fake, refuse, OP_NS_OPEN);
	other = fake_ns(pool, "other");
	check_error("kvpoold refused namespace \"other\": there are too many; close some");
	assert_int_equal(kvpool_acquire(other, lease, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NAMESPACE);
	assert_int_equal(kvpool_reserve(other, tokens, BLOCKS * BT, 0, &w), -ENOENT);
	assert_int_equal(kvpool_wait(other, tokens, BLOCKS * BT, 0, 10), -ENOENT);
	/* Refused ones do not keep the others from a new connection. */
	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NAMESPACE);
	/* Whoever writes asks again. */
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_reserve(other, tokens, BLOCKS * BT, 0, &w), BLOCKS);
	kvpool_write_free(w);
	assert_int_equal(kvpool_acquire(other, lease, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
	kvpool_ns_close(other);
}

/*
 * A daemon that was too slow for ns_open: who only reads has to get its namespace all the same, by
 * any call that talks to the daemon, on the connection that stands.
 */
static void check_registers_late(int (*call)(struct kvpool *))
{
	/* Longer than a loaded machine takes for an answer that does come. */
	struct kvpool *p = fake_connect(&fake, 500);
	struct kvpool_lease *l;
	struct kvpool_ns *late;

	assert_int_equal(kvpool_lease_new(p, BLOCKS, &l), 0);
	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	late = fake_ns(p, "m");
	assert_int_equal(kvpool_acquire(late, l, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(l), KVPOOL_TIMEOUT);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(call(p), 0);
	assert_int_equal(kvpool_acquire(late, l, tokens, BLOCKS * BT, 0), 4 * BT);
	kvpool_lease_free(l);
	kvpool_ns_close(late);
	kvpool_close(p);
}

static int open_another(struct kvpool *p)
{
	kvpool_ns_close(fake_ns(p, "another"));
	return 0;
}

static void test_late_namespace_is_registered(void **state)
{
	uint64_t sessions = fake.sessions;

	fake_publish(&fake, keys, 0, 4);
	check_registers_late(kvpool_ping);
	check_registers_late(kvpool_reconnect);
	check_registers_late(open_another);
	assert_int_equal(fake.sessions, sessions + 3);
}

/* The connection breaks where a namespace that is missing is asked for: the same call connects. */
static void test_late_namespace_finds_it_lost(void **state)
{
	struct kvpool *p = fake_connect(&fake, 500);
	struct kvpool_ns *late;

	fake_script_number(&fake, silent_on, OP_NS_OPEN);
	late = fake_ns(p, "m");
	fake_script_number(&fake, hang_up_on, OP_NS_OPEN);
	assert_int_equal(kvpool_reconnect(p), -ENOTCONN);
	assert_int_equal(kvpool_state(p), KVPOOL_DISCONNECTED);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_reconnect(p), 0);
	assert_int_equal(kvpool_state(p), KVPOOL_CONNECTED);
	kvpool_ns_close(late);
	kvpool_close(p);
}

/* Opened without a daemon, where lookups go on in the memory of the last one. */
static void test_namespace_without_daemon(void **state)
{
	struct kvpool_ns *other;

	fake_stop(&fake);
	assert_int_equal(kvpool_ping(pool), -ECONNREFUSED);
	other = fake_ns(pool, "other");
	assert_int_equal(kvpool_acquire(other, lease, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NO_DAEMON);
	kvpool_ns_close(other);
	fake_again(&fake);
}

/* What came before it was answered, so that nothing is still on its way to the daemon. */
static unsigned int closes_seen(void)
{
	assert_int_equal(kvpool_ping(pool), 0);
	return fake_seen(&fake, OP_NS_CLOSE);
}

static enum fake_answer check_close(struct fake_request *rq, void *arg)
{
	const Kvpool__NsClose *m = (const Kvpool__NsClose *)rq->message;

	assert(rq->head.op != OP_NS_CLOSE || m->ns == fake_number(arg));
	return FAKE_USUAL;
}

static void test_close_is_told(void **state)
{
	struct kvpool_ns *other = fake_ns(pool, "other"), *refused;

	fake_script_number(&fake, check_close, FAKE_NS);
	kvpool_ns_close(other);
	assert_int_equal(closes_seen(), 1);
	/* There is nothing to close of these. */
	fake_script_number(&fake, refuse, OP_NS_OPEN);
	refused = fake_ns(pool, "refused");
	kvpool_ns_close(refused);
	assert_int_equal(closes_seen(), 1);
	fake_set_script(&fake, NULL, NULL);
	other = fake_ns(pool, "other");
	fake_stop(&fake);
	assert_int_equal(kvpool_ping(pool), -ECONNREFUSED);
	kvpool_ns_close(other);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(closes_seen(), 1);
}

/* A lease keeps its namespace, and letting go of it inside a lookup sends nothing. */
static void test_close_is_told_after_leases(void **state)
{
	struct kvpool_ns *other = fake_ns(pool, "other");
	uint64_t requests;

	assert_int_equal(kvpool_acquire(other, lease, tokens, BLOCKS * BT, 0), 0);
	kvpool_ns_close(other);
	kvpool_release(lease);
	assert_int_equal(closes_seen(), 0);
	requests = rpc_requests(pool->rpc);
	assert_int_equal(acquire(), 0);
	assert_int_equal(rpc_requests(pool->rpc), requests);
	assert_int_equal(closes_seen(), 1);
}

/* The daemon counts a descriptor once for a session: the last one closes it. */
static void test_close_of_one_of_two(void **state)
{
	struct kvpool_ns *first = fake_ns(pool, "other"), *second = fake_ns(pool, "other"), *third;

	kvpool_ns_close(first);
	assert_int_equal(closes_seen(), 0);
	kvpool_ns_close(second);
	assert_int_equal(closes_seen(), 1);
	/* Also when the daemon answered about the first one only. */
	first = fake_ns(pool, "other");
	fake_script_number(&fake, refuse, OP_NS_OPEN);
	second = fake_ns(pool, "other");
	third = fake_ns(pool, "third");
	fake_set_script(&fake, NULL, NULL);
	kvpool_ns_close(first);
	kvpool_ns_close(third);
	assert_int_equal(closes_seen(), 1);
	assert_int_equal(kvpool_acquire(second, lease, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
	assert_int_equal(acquire(), 0);
	kvpool_ns_close(second);
	assert_int_equal(closes_seen(), 2);
}

static enum fake_answer name_difference(struct fake_request *rq, void *arg)
{
	Kvpool__NsOpenReply r = KVPOOL__NS_OPEN_REPLY__INIT;

	if (rq->head.op != OP_NS_OPEN)
		return FAKE_USUAL;
	r.ns = 5;
	r.near_field = (char *)"rope_freq_base";
	r.near_here = (char *)"10000";
	r.near_there = (char *)"500000";
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void test_difference(void **state)
{
	static const char expected[] =
		"namespace \"other\" differs in rope_freq_base: 10000 here, 500000 there";
	struct kvpool_ns *other;
	char text[200], cut[10];

	assert_int_equal(kvpool_ns_difference(ns, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	fake_set_script(&fake, name_difference, NULL);
	other = fake_ns(pool, "other");
	assert_int_equal(kvpool_ns_difference(other, text, sizeof(text)), sizeof(expected) - 1);
	assert_string_equal(text, expected);
	assert_int_equal(kvpool_ns_difference(other, cut, sizeof(cut)), sizeof(expected) - 1);
	assert_string_equal(cut, "namespace");
	kvpool_ns_close(other);
}

/* A daemon of tomorrow, and one that offers what cannot be. */
static enum fake_answer odd_hello(struct fake_request *rq, void *arg)
{
	struct frame_header h = {
		.magic = FRAME_MAGIC,
		.op = OP_HELLO,
		.flags = FRAME_REPLY,
		.id = rq->head.id,
	};
	Kvpool__HelloReply r = KVPOOL__HELLO_REPLY__INIT;
	const struct fake_memory *m = &rq->fake->m;
	int fds[3] = { m->control_ro, m->pool_fd, m->pool_fd };

	if (rq->head.op != OP_HELLO)
		return FAKE_USUAL;
	r.protocol = PROTOCOL_MAX;
	r.control_bytes = m->control_bytes;
	r.pool_bytes = FAKE_POOL_BYTES;
	r.region_bytes = FAKE_POOL_BYTES;
	r.max_keys = 5;
	switch (fake_number(arg)) {
	case 0:
		r.protocol = PROTOCOL_MAX + 1;
		break;
	case 1:
		r.max_keys = 0;
		break;
	case 2:
		r.pool_bytes += 4096;
		break;
	case 3:
		r.control_bytes = 0;
		break;
	case 4:
		fds[0] = STDIN_FILENO;
		break;
	default:
		break; /* the region is no region */
	}
	fake_send(rq, &h, &r.base, fds, 3);
	return FAKE_SILENCE;
}

static void test_odd_hellos(void **state)
{
	static const int errors[] = { -EPROTO, -EPROTO, -EINVAL, -EINVAL, 0, -EPROTO };

	fake_stop(&fake);
	fake_again(&fake);
	for (unsigned int row = 0; row < ARRAY_SIZE(errors); row++) {
		int err;

		fake_script_number(&fake, odd_hello, row);
		err = kvpool_reconnect(pool);

		/* What a descriptor that is no memory says depends on what it is. */
		assert_true(errors[row] ? err == errors[row] : err < 0);
		assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	}
	check_error("cannot use the memory that kvpoold offers: not a session region (magic)");
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_reconnect(pool), 0);
}

/* A lease for which the daemon has no hazard word. */
static void test_few_hazards(void **state)
{
	struct kvpool_lease *second;

	fake_stop(&fake);
	fake.hazards_max = 2;
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &second), 0);
	assert_int_equal(acquire(), 4);
	assert_int_equal(kvpool_acquire(ns, second, tokens, BLOCKS * BT, 0), 0);
	assert_int_equal(kvpool_lease_reason(second), KVPOOL_PINS);
	kvpool_lease_free(second);
}

/* Leases of eight lost connections: the ninth has no place. */
static void test_many_old_connections(void **state)
{
	struct kvpool_lease *l[ATTACH_MAX];

	for (unsigned int i = 0; i < ATTACH_MAX; i++) {
		fake_publish(&fake, keys, 0, 1);
		assert_int_equal(kvpool_lease_new(pool, BLOCKS, &l[i]), 0);
		assert_int_equal(kvpool_acquire(ns, l[i], tokens, 2 * BT, 0), BT);
		fake_stop(&fake);
		fake_again(&fake);
		assert_int_equal(kvpool_reconnect(pool), i + 1 < ATTACH_MAX ? 0 : -EBUSY);
	}
	check_error(
		"cannot connect to kvpoold: leases or writes of 8 lost connections are still held; "
		"release them");
	kvpool_release(l[2]);
	assert_int_equal(kvpool_reconnect(pool), 0);
	for (unsigned int i = 0; i < ATTACH_MAX; i++) {
		if (i != 2)
			assert_int_equal(*(const uint8_t *)kvpool_lease_block(l[i], 0),
					 fake_byte(&keys[0]));
		kvpool_lease_free(l[i]);
	}
	assert_int_equal(mapped(), 1);
}

static void test_close_in_any_order(void **state)
{
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(acquire(), 4);
	kvpool_close(pool);
	assert_int_equal(*(const uint8_t *)kvpool_lease_block(lease, 3), fake_byte(&keys[3]));
	assert_int_equal(acquire(), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NO_DAEMON);
	kvpool_ns_close(ns);
	kvpool_lease_free(lease);
	pool = NULL;
	ns = NULL;
	lease = NULL;
}

/* Goodbye is said, and not waited for. */
static void test_close_says_bye(void **state)
{
	struct kvpool *p = fake_connect(&fake, 0);

	kvpool_close(p);
	while (!fake_seen(&fake, OP_BYE))
		usleep(1000);
}

struct worker {
	pthread_t thread;
	struct kvpool_lease *lease;
	int *stop;
	uint64_t hits;
};

/* Reads, while the main thread loses daemon after daemon. */
static void *look_up(void *arg)
{
	struct worker *w = arg;

	while (!load_acquire(w->stop)) {
		size_t n = kvpool_acquire(ns, w->lease, tokens, BLOCKS * BT + 1, 0) / BT;

		for (size_t i = 0; i < n; i++) {
			const uint8_t *b = kvpool_lease_block(w->lease, i);

			assert(load_relaxed(b) == fake_byte(&keys[i]));
			assert(load_relaxed(b + FAKE_BLOCK_BYTES - 1) == fake_byte(&keys[i]));
		}
		w->hits += n;
		kvpool_release(w->lease);
	}
	return NULL;
}

static void *ask(void *arg)
{
	struct worker *w = arg;

	while (!load_acquire(w->stop)) {
		int err = kvpool_ping(pool);

		assert(!err || err == -ENOTCONN || err == -ECONNREFUSED || err == -ENOENT);
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct worker w[6];
	int stop = 0;

	fake_publish(&fake, keys, 0, BLOCKS);
	for (unsigned int i = 0; i < ARRAY_SIZE(w); i++) {
		w[i] = (struct worker){ .stop = &stop };
		assert(kvpool_lease_new(pool, BLOCKS, &w[i].lease) == 0);
		assert(pthread_create(&w[i].thread, NULL, i < 4 ? look_up : ask, &w[i]) == 0);
	}
	for (unsigned int i = 0; i < 20; i++) {
		fake_stop(&fake);
		fake_again(&fake);
		fake_publish(&fake, keys, 0, BLOCKS);
		assert_int_equal(kvpool_reconnect(pool), 0);
		usleep(2000);
	}
	store_release(&stop, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(w); i++) {
		pthread_join(w[i].thread, NULL);
		assert_true(i >= 4 || w[i].hits);
		kvpool_lease_free(w[i].lease);
	}
	assert_int_equal(mapped(), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connected),
		TEST(test_reconnect),
		TEST(test_reconnect_by_itself),
		TEST(test_orderly_stop),
		TEST(test_stopping),
		TEST(test_hang_up_while_connecting),
		TEST(test_refused_session),
		TEST(test_refused_connection),
		TEST(test_no_descriptors_left),
		TEST(test_silence),
		TEST(test_refused_namespace),
		TEST(test_late_namespace_is_registered),
		TEST(test_late_namespace_finds_it_lost),
		TEST(test_namespace_without_daemon),
		TEST(test_close_is_told),
		TEST(test_close_is_told_after_leases),
		TEST(test_close_of_one_of_two),
		TEST(test_difference),
		TEST(test_odd_hellos),
		TEST(test_few_hazards),
		TEST(test_many_old_connections),
		TEST(test_close_in_any_order),
		TEST(test_close_says_bye),
		TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
