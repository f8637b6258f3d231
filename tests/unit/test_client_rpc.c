/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies over one socket, whose other end is in the test's hands. Ids count from 1
 * on, so an answer can be there before the question.
 */
#undef NDEBUG
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/rpc.h"
#include "proto/kvpool.pb-c.h"

#define SOON    (clock_ns() + 30 * NSEC_PER_MSEC)
#define LATE    (clock_ns() + 20 * NSEC_PER_SEC)
#define THREADS 8
#define ROUNDS  200

static struct rpc *rpc;
static int peer; /* the daemon's end */
static unsigned int strays;
static enum proto_op last_stray;

static void stray(void *arg, struct rpc *r, enum proto_op op, const ProtobufCMessage *m)
{
	assert(arg == &strays);
	strays++;
	last_stray = op;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int setup(void **state)
{
	int s[2];

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0);
	strays = 0;
	peer = s[1];
	assert_int_equal(rpc_new(s[0], stray, &strays, &rpc), 0);
	return 0;
}

static int teardown(void **state)
{
	rpc_unref(rpc);
	close_fd(peer);
	return 0;
}

static void send_fds(struct frame_header h, const ProtobufCMessage *m, const int *fds,
		     unsigned int n)
{
	uint8_t packet[FRAME_MAX];
	long len;

	h.magic = FRAME_MAGIC;
	len = codec_pack(packet, &h, m);
	assert(len > 0 && frame_send(peer, packet, (size_t)len, fds, n) == 0);
}

static void send_pong(uint64_t id)
{
	Kvpool__PingReply r = KVPOOL__PING_REPLY__INIT;

	r.uptime_ns = id;
	send_fds((struct frame_header){ .op = OP_PING, .flags = FRAME_REPLY, .id = id }, &r.base,
		 NULL, 0);
}

static int take_pong(void *arg, const ProtobufCMessage *m)
{
	*(uint64_t *)arg = ((const Kvpool__PingReply *)m)->uptime_ns;
	return 0;
}

/* Returns what the call did; *ret_value is what came back. */
static int ping(uint64_t deadline, uint64_t *ret_value)
{
	Kvpool__Ping m = KVPOOL__PING__INIT;
	struct rpc_call call = { .op = OP_PING, .take = take_pong, .arg = ret_value };

	return rpc_call(rpc, &call, &m.base, deadline);
}

static int status(void)
{
	const char *why = "";
	int err = rpc_status(rpc, &why);

	assert_non_null(err ? why : "");
	return err;
}

static void test_reply(void **state)
{
	uint64_t v = 0;

	send_pong(1);
	assert_int_equal(ping(LATE, &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(status(), 0);
	assert_int_equal(rpc_requests(rpc), 1);
}

static void test_no_take(void **state)
{
	Kvpool__Ping m = KVPOOL__PING__INIT;
	struct rpc_call call = { .op = OP_PING };

	send_pong(1);
	assert_int_equal(rpc_call(rpc, &call, &m.base, LATE), 0);
}

/* A reply after the deadline disturbs nobody. */
static void test_late_reply(void **state)
{
	uint64_t v = 0;

	assert_int_equal(ping(SOON, &v), -ETIMEDOUT);
	assert_int_equal(v, 0);
	send_pong(1);
	send_pong(2);
	assert_int_equal(ping(LATE, &v), 0);
	assert_int_equal(v, 2);
	assert_int_equal(strays, 1);
	assert_int_equal(last_stray, OP_PING);
}

static void test_unknown_ids(void **state)
{
	uint64_t v = 0;

	send_pong(77);
	send_pong(0);
	send_pong(UINT64_MAX);
	send_pong(1);
	assert_int_equal(ping(LATE, &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(strays, 3);
}

static void test_said_unasked(void **state)
{
	Kvpool__Stopping m = KVPOOL__STOPPING__INIT;
	uint64_t v;

	/* What a newer daemon says, and this library does not know. */
	send_fds((struct frame_header){ .op = 999 }, &m.base, NULL, 0);
	send_fds((struct frame_header){ .op = OP_STOPPING }, &m.base, NULL, 0);
	send_pong(1);
	assert_int_equal(ping(LATE, &v), 0);
	assert_int_equal(strays, 1);
	assert_int_equal(last_stray, OP_STOPPING);
}

/* Without the flag of a reply it is none, and must not be taken for one. */
static void test_request_from_the_daemon(void **state)
{
	Kvpool__Reserve m = KVPOOL__RESERVE__INIT;
	uint8_t key[32] = { 0 };
	uint64_t v;

	m.parent = m.keys = (ProtobufCBinaryData){ sizeof(key), key };
	send_fds((struct frame_header){ .op = OP_RESERVE }, &m.base, NULL, 0);
	send_fds((struct frame_header){ .op = OP_RESERVE, .id = 1 }, &m.base, NULL, 0);
	send_fds((struct frame_header){ .op = OP_PING, .id = 1 }, &m.base, NULL, 0);
	send_pong(1);
	assert_int_equal(ping(LATE, &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(strays, 0);
}

static void check_dead(int err)
{
	uint64_t v;

	assert_int_equal(status(), err);
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	rpc_close(rpc, -EIO, "again");
	assert_int_equal(status(), err);
}

static void test_wrong_operation(void **state)
{
	Kvpool__WaitReply r = KVPOOL__WAIT_REPLY__INIT;
	uint64_t v;

	send_fds((struct frame_header){ .op = OP_WAIT, .flags = FRAME_REPLY, .id = 1 }, &r.base,
		 NULL, 0);
	assert_int_equal(ping(LATE, &v), -EPROTO);
	check_dead(-EPROTO);
}

static int take_nothing(void *arg, const ProtobufCMessage *m)
{
	return -EPROTO;
}

static void test_reply_without_sense(void **state)
{
	Kvpool__Ping m = KVPOOL__PING__INIT;
	struct rpc_call call = { .op = OP_PING, .take = take_nothing };

	send_pong(1);
	assert_int_equal(rpc_call(rpc, &call, &m.base, LATE), -EPROTO);
	check_dead(-EPROTO);
}

/* Packets that are no messages: each ends the connection. */
static void test_garbage(void **state)
{
	static const struct frame_header bad_magic = { .magic = 1 };
	static const struct frame_header bad_flags = { .magic = FRAME_MAGIC, .flags = 8 };
	static const struct frame_header bad_op = {
		.magic = FRAME_MAGIC, .op = 999, .flags = FRAME_REPLY, .id = 1,
	};
	static const struct frame_header no_reply = {
		.magic = FRAME_MAGIC, .op = OP_STOPPING, .flags = FRAME_REPLY, .id = 1,
	};
	static const struct {
		const void *bytes;
		size_t n;
	} rows[] = {
		{ "x", 1 },
		{ &bad_magic, sizeof(bad_magic) },
		{ &bad_flags, sizeof(bad_flags) },
		{ &bad_op, sizeof(bad_op) },
		{ &no_reply, sizeof(no_reply) },
	};
	uint64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(send(peer, rows[i].bytes, rows[i].n, 0), rows[i].n);
		assert_int_equal(ping(LATE, &v), -ENOTCONN);
		check_dead(-EPROTO);
		teardown(NULL);
		setup(NULL);
	}
}

static void test_message_that_does_not_unpack(void **state)
{
	struct {
		struct frame_header h;
		uint8_t bytes[8];
	} p = {
		{ .magic = FRAME_MAGIC, .op = OP_PING, .flags = FRAME_REPLY, .id = 1 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	uint64_t v;

	assert_int_equal(send(peer, &p, sizeof(p), 0), sizeof(p));
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	check_dead(-EPROTO);
}

static void test_packet_that_is_too_long(void **state)
{
	static uint8_t packet[FRAME_MAX + 1];
	uint64_t v;

	assert_int_equal(send(peer, packet, sizeof(packet), 0), sizeof(packet));
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	check_dead(-EMSGSIZE);
}

static void test_hang_up(void **state)
{
	uint64_t v;

	close(peer);
	peer = -1;
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	check_dead(-ECONNRESET);
}

static void *hang_up_soon(void *arg)
{
	uint8_t packet[FRAME_MAX];
	struct pollfd p = { .fd = peer, .events = POLLIN };
	unsigned int n_fds;

	assert(poll(&p, 1, -1) == 1);
	assert(frame_recv(peer, packet, NULL, 0, &n_fds) > 0);
	shutdown(peer, SHUT_RDWR);
	return NULL;
}

static void test_hang_up_while_waiting(void **state)
{
	pthread_t t;
	uint64_t v;

	assert(pthread_create(&t, NULL, hang_up_soon, NULL) == 0);
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	pthread_join(t, NULL);
	check_dead(-ECONNRESET);
}

static void *close_soon(void *arg)
{
	struct pollfd p = { .fd = peer, .events = POLLIN };

	assert(poll(&p, 1, -1) == 1);
	rpc_close(rpc, -ECANCELED, "the test closes it");
	return NULL;
}

static void test_close_while_waiting(void **state)
{
	pthread_t t;
	uint64_t v;

	assert(pthread_create(&t, NULL, close_soon, NULL) == 0);
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	pthread_join(t, NULL);
	check_dead(-ECANCELED);
}

static void test_refusals(void **state)
{
	static const int table[ERROR_MAX + 2] = {
		EPROTO, EPROTO, EPROTO, EINVAL, EOPNOTSUPP, EPROTO, EPROTONOSUPPORT, EACCES, ENOSPC,
		ENOENT, EPROTO, EIO, ENOENT, EINVAL, EINVAL, EIO,
	};
	Kvpool__Ping m = KVPOOL__PING__INIT;
	struct rpc_call call = { .op = OP_PING };

	for (unsigned int code = 0; code < ARRAY_SIZE(table); code++) {
		Kvpool__Error e = KVPOOL__ERROR__INIT;

		e.code = code;
		e.text = (char *)"because";
		send_fds((struct frame_header){
			.op = OP_PING, .flags = FRAME_REPLY | FRAME_ERROR, .id = 1,
		}, &e.base, NULL, 0);
		assert_int_equal(rpc_call(rpc, &call, &m.base, LATE), -table[code]);
		assert_string_equal(call.text, "because");
		assert_int_equal(status(), table[code] == EPROTO ? -EPROTO : 0);
		teardown(NULL);
		setup(NULL);
	}
}

static void test_text(void **state)
{
	char out[8];

	rpc_text(out, sizeof(out), "abc");
	assert_string_equal(out, "abc");
	rpc_text(out, sizeof(out), "abcdefghij");
	assert_string_equal(out, "abcdefg");
	/* Not cut inside a character, and nothing that plays with a terminal. */
	rpc_text(out, sizeof(out), "abcdef\xc3\xa4");
	assert_string_equal(out, "abcdef");
	rpc_text(out, sizeof(out), "a\x1b[2J");
	assert_string_equal(out, "");
}

static void test_descriptors_that_nobody_wants(void **state)
{
	Kvpool__PingReply r = KVPOOL__PING_REPLY__INIT;
	int before = count_fds();
	uint64_t v;

	send_fds((struct frame_header){ .op = OP_PING, .flags = FRAME_REPLY, .id = 1 }, &r.base,
		 (int[]){ 0 }, 1);
	assert_int_equal(ping(LATE, &v), -EPROTO);
	check_dead(-EPROTO);
	assert_int_equal(count_fds(), before);
	teardown(NULL);
	setup(NULL);
	/* With what nobody waits for. */
	send_fds((struct frame_header){ .op = OP_PING, .flags = FRAME_REPLY, .id = 9 }, &r.base,
		 (int[]){ 0, 1, 2 }, 3);
	send_pong(1);
	assert_int_equal(ping(LATE, &v), 0);
	assert_int_equal(count_fds(), before);
}

static int hello(struct rpc_call *call)
{
	Kvpool__Hello m = KVPOOL__HELLO__INIT;

	*call = (struct rpc_call){ .op = OP_HELLO };
	return rpc_call(rpc, call, &m.base, LATE);
}

static void send_hello(unsigned int n)
{
	Kvpool__HelloReply r = KVPOOL__HELLO_REPLY__INIT;

	send_fds((struct frame_header){ .op = OP_HELLO, .flags = FRAME_REPLY, .id = 1 }, &r.base,
		 (int[]){ 0, 1, 2, 0 }, n);
}

static void test_descriptors_of_a_hello(void **state)
{
	int before = count_fds();
	struct rpc_call call;

	send_hello(3);
	assert_int_equal(hello(&call), 0);
	assert_int_equal(call.n_fds, 3);
	assert_int_equal(count_fds(), before + 3);
	for (unsigned int i = 0; i < 3; i++)
		close(call.fds[i]);
	for (unsigned int n = 0; n <= 4; n++) {
		if (n == 3)
			continue;
		teardown(NULL);
		setup(NULL);
		send_hello(n);
		assert_int_equal(hello(&call), n == 4 ? -ENOTCONN : -EPROTO);
		check_dead(-EPROTO);
		assert_int_equal(count_fds(), before);
	}
}

/* This process may open no more descriptors: they are cut. */
static void test_descriptors_that_do_not_fit(void **state)
{
	struct rlimit old, few;
	int before = count_fds(), top = dup(0);
	struct rpc_call call;

	close(top);
	assert(getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = old;
	few.rlim_cur = (rlim_t)top + 1;
	send_hello(3);
	assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
	assert_int_equal(hello(&call), -ENOTCONN);
	assert(setrlimit(RLIMIT_NOFILE, &old) == 0);
	check_dead(-EMFILE);
	assert_int_equal(count_fds(), before);
}

static void test_full_socket(void **state)
{
	Kvpool__Ping m = KVPOOL__PING__INIT;
	uint64_t v, sent;

	for (;;) {
		sent = rpc_requests(rpc);
		rpc_post(rpc, OP_PING, &m.base);
		if (rpc_requests(rpc) == sent)
			break;
	}
	assert_int_equal(ping(SOON, &v), -ETIMEDOUT);
	assert_int_equal(status(), 0);
	assert_int_equal(rpc_requests(rpc), sent);
}

static void test_read_without_waiting(void **state)
{
	Kvpool__Stopping m = KVPOOL__STOPPING__INIT;

	rpc_read(rpc);
	assert_int_equal(strays, 0);
	send_fds((struct frame_header){ .op = OP_STOPPING }, &m.base, NULL, 0);
	send_fds((struct frame_header){ .op = OP_STOPPING }, &m.base, NULL, 0);
	rpc_read(rpc);
	assert_int_equal(strays, 2);
	close(peer);
	peer = -1;
	rpc_read(rpc);
	check_dead(-ECONNRESET);
}

static void send_farewell(void)
{
	Kvpool__Error e = KVPOOL__ERROR__INIT;

	e.code = ERROR_LIMIT;
	e.text = (char *)"there are too many; end some";
	send_fds((struct frame_header){ .flags = FRAME_REPLY | FRAME_ERROR }, &e.base, NULL, 0);
}

static void check_farewell(void)
{
	const char *why;

	assert_int_equal(rpc_status(rpc, &why), -ENOSPC);
	assert_string_equal(why, "there are too many; end some");
	check_dead(-ENOSPC);
}

static void *read_and_refuse(void *arg)
{
	uint8_t packet[FRAME_MAX];
	struct pollfd p = { .fd = peer, .events = POLLIN };
	unsigned int n_fds;

	assert(poll(&p, 1, -1) == 1);
	if (arg)
		assert(frame_recv(peer, packet, NULL, 0, &n_fds) > 0);
	send_farewell();
	/* With a request unread the kernel tells the other side of a reset first. */
	close(peer);
	return NULL;
}

/* An error that answers no request is why the connection ends, whenever it does. */
static void test_farewell(void **state)
{
	pthread_t t;
	uint64_t v;

	send_farewell();
	close(peer);
	assert_int_equal(ping(LATE, &v), -ENOTCONN);
	check_farewell();
	for (uintptr_t reads = 0; reads < 2; reads++) {
		rpc_unref(rpc);
		setup(NULL);
		assert(pthread_create(&t, NULL, read_and_refuse, (void *)reads) == 0);
		assert_int_equal(ping(LATE, &v), -ENOTCONN);
		pthread_join(t, NULL);
		check_farewell();
	}
	peer = -1;
}

/* A daemon that says more than anybody reads keeps no caller for longer than its share. */
static void test_read_of_a_flood(void **state)
{
	for (unsigned int i = 0; i < RPC_READ_MAX + 5; i++)
		send_pong(1000 + i);
	rpc_read(rpc);
	assert_int_equal(strays, RPC_READ_MAX);
	rpc_read(rpc);
	assert_int_equal(strays, RPC_READ_MAX + 5);
	assert_int_equal(status(), 0);
}

/* Answers what comes, two at a time and the second first; a WAIT only when told to. */
struct answerer {
	int stop;
	uint64_t held[2], wait;
	unsigned int n;
};

static void answer_two(struct answerer *a)
{
	while (a->n)
		send_pong(a->held[--a->n]);
}

static void *answer(void *arg)
{
	struct answerer *a = arg;
	uint8_t packet[FRAME_MAX];
	struct frame_header h;
	unsigned int n_fds;

	for (;;) {
		struct pollfd p = { .fd = peer, .events = POLLIN };
		long n;

		/* Whoever is alone would wait for ever for a second one. */
		if (poll(&p, 1, 1) == 0)
			answer_two(a);
		n = frame_recv(peer, packet, NULL, 0, &n_fds);
		if (n == 0 || n == -ECONNRESET)
			return NULL;
		if (n < 0)
			continue;
		assert(!frame_parse(packet, (size_t)n, &h));
		if (h.op == OP_WAIT)
			store_release(&a->wait, h.id);
		else
			a->held[a->n++] = h.id;
		if (a->n == 2)
			answer_two(a);
	}
}

static void *ping_often(void *arg)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		Kvpool__Ping m = KVPOOL__PING__INIT;
		uint64_t v = 0;
		struct rpc_call call = { .op = OP_PING, .take = take_pong, .arg = &v };

		assert(rpc_call(rpc, &call, &m.base, LATE) == 0);
		assert(v == call.id);
	}
	return NULL;
}

static void *wait_long(void *arg)
{
	Kvpool__Wait m = KVPOOL__WAIT__INIT;
	struct rpc_call call = { .op = OP_WAIT };

	assert(rpc_call(rpc, &call, &m.base, LATE) == 0);
	store_release((int *)arg, 1);
	return NULL;
}

/* A thread that waits for long reads for the others, or lets another one read. */
static void test_threads(void **state)
{
	Kvpool__WaitReply r = KVPOOL__WAIT_REPLY__INIT;
	struct answerer a = { 0 };
	pthread_t daemon, waiter, t[THREADS];
	int waited = 0;

	assert(pthread_create(&daemon, NULL, answer, &a) == 0);
	assert(pthread_create(&waiter, NULL, wait_long, &waited) == 0);
	while (!load_acquire(&a.wait))
		usleep(1000);
	for (unsigned int i = 0; i < THREADS; i++)
		assert(pthread_create(&t[i], NULL, ping_often, NULL) == 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(load_acquire(&waited), 0);
	send_fds((struct frame_header){ .op = OP_WAIT, .flags = FRAME_REPLY, .id = a.wait },
		 &r.base, NULL, 0);
	pthread_join(waiter, NULL);
	assert_int_equal(load_acquire(&waited), 1);
	rpc_close(rpc, -ECANCELED, "the test is over");
	pthread_join(daemon, NULL);
}

static void *ping_soon(void *arg)
{
	uint64_t v;

	assert(ping(SOON, &v) == -ETIMEDOUT);
	return NULL;
}

/* The one that reads goes first: another one must read then. */
static void test_reader_times_out(void **state)
{
	pthread_t first, second;
	struct answerer a = { 0 };
	int waited = 0;
	Kvpool__WaitReply r = KVPOOL__WAIT_REPLY__INIT;

	assert(pthread_create(&first, NULL, ping_soon, NULL) == 0);
	assert(pthread_create(&second, NULL, wait_long, &waited) == 0);
	pthread_join(first, NULL);
	/* Ids 1 and 2 in some order; the late answer to the other one is a stray. */
	send_fds((struct frame_header){ .op = OP_WAIT, .flags = FRAME_REPLY, .id = 3 }, &r.base,
		 NULL, 0);
	for (uint64_t id = 1; id <= 2; id++) {
		uint8_t packet[FRAME_MAX];
		struct frame_header h;
		struct pollfd p = { .fd = peer, .events = POLLIN };
		unsigned int n_fds;

		assert(poll(&p, 1, -1) == 1 && frame_recv(peer, packet, NULL, 0, &n_fds) > 0);
		assert(!frame_parse(packet, FRAME_HEADER_BYTES, &h));
		if (h.op == OP_WAIT)
			a.wait = h.id;
	}
	send_fds((struct frame_header){ .op = OP_WAIT, .flags = FRAME_REPLY, .id = a.wait },
		 &r.base, NULL, 0);
	pthread_join(second, NULL);
	assert_int_equal(waited, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reply),
		TEST(test_no_take),
		TEST(test_late_reply),
		TEST(test_unknown_ids),
		TEST(test_said_unasked),
		TEST(test_request_from_the_daemon),
		TEST(test_wrong_operation),
		TEST(test_reply_without_sense),
		TEST(test_garbage),
		TEST(test_message_that_does_not_unpack),
		TEST(test_packet_that_is_too_long),
		TEST(test_hang_up),
		TEST(test_hang_up_while_waiting),
		TEST(test_close_while_waiting),
		TEST(test_refusals),
		TEST(test_text),
		TEST(test_descriptors_that_nobody_wants),
		TEST(test_descriptors_of_a_hello),
		TEST(test_descriptors_that_do_not_fit),
		TEST(test_full_socket),
		TEST(test_read_without_waiting),
		TEST(test_farewell),
		TEST(test_read_of_a_flood),
		TEST(test_threads),
		TEST(test_reader_times_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
