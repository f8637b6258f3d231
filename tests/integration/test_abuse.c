/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that break the rules, against a real daemon: frames that are none, descriptors that
 * nobody asked for, answers that are never read, sockets that are given away, connections without
 * end. The daemon ends them, with a reason that is counted, keeps nothing of theirs, and goes on
 * serving others.
 */
#undef NDEBUG
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "shm/session.h"
#include "tests/integration/daemon.h"
#include "tests/integration/raw.h"

static struct daemon daemon_under_test;

/* Somebody who keeps the rules, all the time. */
static struct raw *honest, *admin;

static int group_setup(void **state)
{
	if (daemon_start(&daemon_under_test, NULL) < 0)
		return -1;
	honest = raw_hello(daemon_under_test.socket, "honest");
	admin = raw_open(daemon_under_test.admin);
	return 0;
}

static int group_teardown(void **state)
{
	raw_close(honest);
	raw_close(admin);
	return daemon_end(&daemon_under_test);
}

static const Kvpool__StatusReply *status(void)
{
	Kvpool__Status m = KVPOOL__STATUS__INIT;

	return raw_call(admin, OP_STATUS, &m.base);
}

static uint64_t ended(const Kvpool__StatusReply *s)
{
	return s->ended_clean + s->ended_crash + s->ended_kicked + s->ended_protocol +
	       s->ended_slow + s->refused;
}

/* Waits until only the honest client is left, and nothing of the others. */
static void settle(void)
{
	const Kvpool__StatusReply *s = NULL;

	for (unsigned int i = 0; i < 2000; i++) {
		s = status();
		if (s->clients == 1 && !s->draining && !s->quarantined_bytes && !s->writing_bytes)
			break;
		usleep(10000);
	}
	assert_int_equal(s->clients, 1);
	assert_int_equal(s->draining, 0);
	assert_int_equal(s->writing_bytes, 0);
	assert_int_equal(s->quarantined_bytes, 0);
	assert_int_equal(s->connects, s->clients + ended(s));
	raw_ping(honest);
}

/* What the daemon has open; -1 where that cannot be seen. */
static int count_fds(void)
{
	char path[64];
	struct dirent *e;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", daemon_under_test.pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int fds_before;

static int setup(void **state)
{
	settle();
	fds_before = count_fds();
	return 0;
}

static int teardown(void **state)
{
	settle();
	assert_int_equal(count_fds(), fds_before);
	return 0;
}

/* A packet that is no frame: an error says so, and the connection ends. */
static void expect_bad_frame(const void *packet, size_t n)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "bad frame");

	assert_int_equal(raw_send_packet(r, packet, n, NULL, 0), 0);
	raw_expect_error(r, ERROR_BAD_FRAME, NULL);
	assert_int_equal(r->head.id, 0);
	raw_expect_end(r);
	raw_close(r);
}

static void half_frames(void **state)
{
	unsigned char packet[FRAME_HEADER_BYTES] = { 0 };
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = OP_PING, .id = 1 };
	uint64_t before = status()->ended_protocol;

	frame_write(packet, &h);
	for (size_t n = 1; n < FRAME_HEADER_BYTES; n++)
		expect_bad_frame(packet, n);
	assert_int_equal(status()->ended_protocol, before + FRAME_HEADER_BYTES - 1);
}

static void wrong_headers(void **state)
{
	static const struct frame_header wrong[] = {
		{ .magic = 0, .op = OP_PING, .id = 1 },
		{ .magic = FRAME_MAGIC + 1, .op = OP_PING, .id = 1 },
		{ .magic = FRAME_MAGIC, .op = OP_PING, .id = 0 },
		{ .magic = FRAME_MAGIC, .op = OP_PING, .id = 1, .flags = FRAME_REPLY },
		{ .magic = FRAME_MAGIC, .op = OP_PING, .id = 1, .flags = FRAME_ERROR },
		{ .magic = FRAME_MAGIC,
		  .op = OP_PING,
		  .id = 1,
		  .flags = FRAME_REPLY | FRAME_ERROR },
		{ .magic = FRAME_MAGIC, .op = OP_PING, .id = 1, .flags = 0x8000 },
	};
	unsigned char packet[FRAME_HEADER_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		frame_write(packet, &wrong[i]);
		expect_bad_frame(packet, sizeof(packet));
	}
}

static void packet_too_long(void **state)
{
	static unsigned char packet[FRAME_MAX + 1];
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = OP_PING, .id = 1 };

	frame_write(packet, &h);
	expect_bad_frame(packet, sizeof(packet));
}

/* It cannot be told from the end of the connection, and is taken for it. */
static void packet_of_nothing(void **state)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "nothing");

	assert_int_equal(raw_send_packet(r, "", 0, NULL, 0), 0);
	raw_expect_end(r);
	raw_close(r);
}

/* F18: as many as fit a packet. They are closed, and so is the connection. */
static void descriptors_to_the_daemon(void **state)
{
	static const unsigned int counts[] = { 1, 4, 5, 253 };
	int fds[253], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned char packet[FRAME_HEADER_BYTES];
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = OP_PING, .id = 1 };
	uint64_t before = status()->ended_protocol;

	assert_true(null >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = null;
	frame_write(packet, &h);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct raw *r = raw_hello(daemon_under_test.socket, "descriptors");

		assert_int_equal(raw_send_packet(r, packet, sizeof(packet), fds, counts[i]), 0);
		raw_expect_error(r, ERROR_FDS, NULL);
		raw_expect_end(r);
		raw_close(r);
	}
	close(null);
	assert_int_equal(status()->ended_protocol, before + ARRAY_SIZE(counts));
}

/* In the very first packet, by somebody who never says hello. */
static void descriptors_before_hello(void **state)
{
	struct raw *r = raw_open(daemon_under_test.socket);
	uint64_t before = status()->refused;

	assert_int_equal(raw_send_packet(r, "x", 1, &r->sock, 1), 0);
	raw_expect_end(r);
	raw_close(r);
	assert_int_equal(status()->refused, before + 1);
}

/*
 * Sends pings until the daemon takes no more of them, and others have been served meanwhile.
 * Returns how many it took.
 */
static unsigned int flood(struct raw *r)
{
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = OP_PING, .id = 1 };
	unsigned char packet[FRAME_HEADER_BYTES];
	unsigned int sent = 0;

	frame_write(packet, &h);
	for (unsigned int idle = 0; idle < 20 && sent < 100000;) {
		if (raw_send_packet(r, packet, sizeof(packet), NULL, 0) == 0) {
			sent++;
			idle = 0;
			continue;
		}
		/* The daemon has had the time to take more, if it took any. */
		raw_ping(honest);
		usleep(1000);
		idle++;
	}
	return sent;
}

/* F17: asks and asks, and never reads. It is stopped by its own socket, and others are not. */
static void answers_that_are_not_read(void **state)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "deaf");
	unsigned int sent = flood(r);

	assert_in_range(sent, 100, 99999);
	/* All that was taken is answered, in order, once it reads. */
	for (unsigned int i = 0; i < sent; i++)
		assert_true(raw_receive(r));
	raw_ping(r);
	raw_close(r);
}

/* More answers than a client may leave lying about: it is dropped as slow, and says so. */
static void too_many_answers_that_are_not_read(void **state)
{
	struct raw *deaf = raw_hello(daemon_under_test.socket, "deaf");
	struct raw *writer = raw_hello(daemon_under_test.socket, "writer");
	uint32_t ns = raw_ns(deaf, "abuse");
	uint8_t keys[KEY_BYTES];
	uint64_t before = status()->ended_slow;
	Kvpool__Wait wait = KVPOOL__WAIT__INIT;

	raw_ns(writer, "abuse");
	raw_keys(1, keys, 1);
	assert_int_equal(raw_reserve(writer, ns, keys, 1)->n_desc, 1);
	wait.ns = ns;
	wait.keys = (ProtobufCBinaryData){ sizeof(keys), keys };
	wait.timeout_ms = 60000;
	for (unsigned int i = 0; i < 64; i++)
		raw_send(deaf, OP_WAIT, &wait.base);
	raw_send(deaf, OP_WAIT, &wait.base);
	raw_expect_error(deaf, ERROR_LIMIT, NULL);
	flood(deaf);
	/* Its writer goes, and all 64 waits are answered at once. */
	raw_close(writer);
	for (unsigned int i = 0; i < 1000 && status()->ended_slow == before; i++)
		usleep(10000);
	assert_int_equal(status()->ended_slow, before + 1);
	raw_close(deaf);
}

/* F20: gone before the descriptors that it asked for are sent. */
static void gone_before_the_answer(void **state)
{
	Kvpool__Hello m = KVPOOL__HELLO__INIT;

	m.protocol_min = m.protocol_max = PROTOCOL_MAX;
	m.layout = LAYOUT_VERSION;
	for (unsigned int i = 0; i < 100; i++) {
		struct raw *r = raw_open(daemon_under_test.socket);

		raw_send(r, OP_HELLO, &m.base);
		raw_close(r);
	}
	raw_ping(honest);
}

static void says_bye_and_does_not_wait(void **state)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "hasty");
	uint64_t before = status()->ended_clean;
	Kvpool__Bye m = KVPOOL__BYE__INIT;

	/*
	 * An answer that is not read makes the daemon's next read fail; what follows still counts.
	 */
	raw_send(r, OP_PING, &m.base);
	raw_send(r, OP_BYE, &m.base);
	raw_close(r);
	for (unsigned int i = 0; i < 1000 && status()->ended_clean == before; i++)
		usleep(1000);
	assert_int_equal(status()->ended_clean, before + 1);
}

static void send_socket(int over, int sock)
{
	struct raw carrier = { .sock = over };

	assert(raw_send_packet(&carrier, "s", 1, &sock, 1) == 0);
}

/* F8: the socket lives on in this process, but the one that connected is gone. */
static void socket_that_is_given_away(void **state)
{
	int pair[2], status_of, fds[FRAME_FDS_MAX];
	unsigned char packet[FRAME_MAX];
	unsigned int n_fds;
	struct raw r = { .id = 1 };
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	if (child == 0) {
		struct raw *mine = raw_hello(daemon_under_test.socket, "giver");

		send_socket(pair[1], mine->sock);
		pause();
	}
	assert_true(child > 0);
	close(pair[1]);
	while (frame_recv(pair[0], packet, fds, FRAME_FDS_MAX, &n_fds) != 1)
		usleep(1000);
	assert_int_equal(n_fds, 1);
	close(pair[0]);
	r.sock = fds[0];
	codec_arena_init(&r.arena, r.memory, sizeof(r.memory));
	raw_ping(&r);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status_of, 0), child);
	raw_expect_end(&r);
	close(r.sock);
}

/*
 * F4, F5, F21: killed with a pin, a reservation and a wait. Socket and process end at the same
 * time, and everything is given back once. A sum that goes wrong is seen by settle().
 */
static void killed_in_the_middle(void **state)
{
	uint64_t before = status()->ended_crash;
	int go[2], status_of;
	char c;

	for (unsigned int i = 0; i < 20; i++) {
		pid_t child;

		assert_int_equal(pipe2(go, O_CLOEXEC), 0);
		child = fork();
		if (child == 0) {
			struct raw *r = raw_hello(daemon_under_test.socket, "victim");
			uint8_t keys[8 * KEY_BYTES];
			struct session_map m;
			void *base = mmap(NULL, session_size(16, 2048), PROT_READ | PROT_WRITE,
					  MAP_SHARED, r->fds[2], 0);
			uint32_t ns = raw_ns(r, "abuse");

			assert(base != MAP_FAILED &&
			       !session_attach(base, session_size(16, 2048), &m));
			m.hazard[0] = 1 + i;
			raw_keys(100 + i, keys, 8);
			raw_reserve(r, ns, keys, 8);
			assert(write(go[1], "g", 1) == 1);
			pause();
		}
		assert_true(child > 0);
		close(go[1]);
		assert_int_equal(read(go[0], &c, 1), 1);
		close(go[0]);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status_of, 0), child);
	}
	for (unsigned int i = 0; i < 1000 && status()->ended_crash < before + 20; i++)
		usleep(1000);
	assert_int_equal(status()->ended_crash, before + 20);
}

/* The pool gets its time however busy the others are: what a dead writer left is free again. */
static void quarantine_ends_under_load(void **state)
{
	struct raw *writer = raw_hello(daemon_under_test.socket, "writer");
	uint32_t ns = raw_ns(writer, "abuse"), other = raw_ns(honest, "busy");
	uint8_t keys[KEY_BYTES];
	Kvpool__Abort m = KVPOOL__ABORT__INIT;
	unsigned int rounds = 0;

	raw_keys(50, keys, 1);
	assert_int_equal(raw_reserve(writer, ns, keys, 1)->n_desc, 1);
	raw_close(writer);
	raw_keys(51, keys, 1);
	do {
		const Kvpool__ReserveReply *g = raw_reserve(honest, other, keys, 1);
		uint32_t desc;
		uint64_t gen;

		assert_int_equal(g->n_desc, 1);
		desc = g->desc[0];
		gen = g->gen[0];
		m.desc = &desc;
		m.gen = &gen;
		m.n_desc = m.n_gen = 1;
		raw_call(honest, OP_ABORT, &m.base);
		assert_true(++rounds < 1000000);
	} while (rounds % 1000 || status()->quarantined_bytes);
}

/* Its requests end with its connection; its pins with its mapping. */
static void mapped_after_the_end(void **state)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "reader");
	uint64_t size = session_size(16, 2048);
	Kvpool__Clients list = KVPOOL__CLIENTS__INIT;
	const Kvpool__ClientsReply *reply;
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fds[2], 0);

	assert_ptr_not_equal(base, MAP_FAILED);
	raw_close(r);
	for (unsigned int i = 0; i < 1000 && !status()->draining; i++)
		usleep(1000);
	assert_int_equal(status()->draining, 1);
	usleep(300000);
	assert_int_equal(status()->draining, 1);
	reply = raw_call(admin, OP_CLIENTS, &list.base);
	assert_int_equal(reply->n_items, 2);
	assert_string_equal(reply->items[1]->state, "draining");
	munmap(base, size);
}

/* Says hello, maps its region, has a pin there if asked to, and goes; the mapping stays. */
static void *end_mapped(uint32_t pin)
{
	struct raw *r = raw_hello(daemon_under_test.socket, "mapped");
	struct session_header *h = mmap(NULL, session_size(16, 2048), PROT_READ | PROT_WRITE,
					MAP_SHARED, r->fds[2], 0);

	assert_ptr_not_equal(h, MAP_FAILED);
	*(uint64_t *)((char *)h + h->hazard_offset) = pin;
	raw_close(r);
	return h;
}

static void wait_draining(uint32_t n)
{
	for (unsigned int i = 0; i < 5000 && status()->draining != n; i++)
		usleep(1000);
	assert_int_equal(status()->draining, n);
}

static void expect_refused(void)
{
	struct raw *r = raw_open(daemon_under_test.socket);

	raw_expect_error(r, ERROR_LIMIT, NULL);
	raw_expect_end(r);
	raw_close(r);
}

/*
 * Ended sessions that are still mapped: those that pin something count as clients, of which a user
 * may have 64; the others do not, up to 256.
 */
static void ended_sessions_in_the_count(void **state)
{
	const uint64_t pin = 1;
	void *base[255];

	for (uint32_t i = 0; i < ARRAY_SIZE(base); i++)
		base[i] = end_mapped(i < 60 ? pin : 0);
	/* With the honest one. */
	wait_draining(ARRAY_SIZE(base));
	expect_refused();
	for (uint32_t i = 0; i < 155; i++)
		munmap(base[100 + i], session_size(16, 2048));
	wait_draining(100);
	for (uint32_t i = 100; i < 103; i++) {
		base[i] = end_mapped(pin);
		wait_draining(i + 1);
	}
	expect_refused();
	for (uint32_t i = 0; i < 103; i++)
		munmap(base[i], session_size(16, 2048));
	wait_draining(0);
}

/* F39: a thousand connections of one user. 64 are served, the others are told why not. */
static void a_thousand_connections(void **state)
{
	static struct raw *r[1000];
	uint64_t before = status()->refused;
	unsigned int served = 0;

	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = raw_open(daemon_under_test.socket);
		if (i < 63) {
			raw_send_body(r[i], OP_PING, "", 0);
			raw_expect_error(r[i], ERROR_BAD_STATE, NULL);
			served++;
		} else {
			raw_expect_error(r[i], ERROR_LIMIT, NULL);
			raw_expect_end(r[i]);
			raw_close(r[i]);
			r[i] = NULL;
		}
	}
	/* With the honest one. */
	assert_int_equal(served + 1, status()->clients);
	assert_int_equal(status()->refused, before + 1000 - served);
	raw_ping(honest);
	for (size_t i = 0; i < ARRAY_SIZE(r); i++)
		raw_close(r[i]);
}

/* Connections of the admin socket are counted apart. */
static void many_operators(void **state)
{
	struct raw *r[15];

	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = raw_open(daemon_under_test.admin);
		raw_ping(r[i]);
	}
	for (unsigned int i = 0; i < 5; i++) {
		struct raw *more = raw_open(daemon_under_test.admin);

		raw_expect_error(more, ERROR_LIMIT, NULL);
		raw_expect_end(more);
		raw_close(more);
	}
	for (size_t i = 0; i < ARRAY_SIZE(r); i++)
		raw_close(r[i]);
}

int main(void)
{
#define ABUSE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		ABUSE(half_frames),
		ABUSE(wrong_headers),
		ABUSE(packet_too_long),
		ABUSE(packet_of_nothing),
		ABUSE(descriptors_to_the_daemon),
		ABUSE(descriptors_before_hello),
		ABUSE(answers_that_are_not_read),
		ABUSE(too_many_answers_that_are_not_read),
		ABUSE(gone_before_the_answer),
		ABUSE(says_bye_and_does_not_wait),
		ABUSE(socket_that_is_given_away),
		ABUSE(killed_in_the_middle),
		ABUSE(quarantine_ends_under_load),
		ABUSE(mapped_after_the_end),
		ABUSE(ended_sessions_in_the_count),
		ABUSE(a_thousand_connections),
		ABUSE(many_operators),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
