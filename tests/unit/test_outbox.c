/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a client that does not read: its order, its bounds, and the descriptors in it. */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "daemon/outbox.h"
#include "proto/frame.h"

struct pair {
	int near, far;
	struct outbox o;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int sv[2], small = 4096;

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	/* The kernel makes it a little more; some packets of 1 KiB fit. */
	assert_int_equal(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	p->near = sv[0];
	p->far = sv[1];
	outbox_init(&p->o);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	outbox_clear(&p->o);
	assert_int_equal(p->o.count, 0);
	assert_int_equal(p->o.bytes, 0);
	close(p->near);
	if (p->far >= 0)
		close(p->far);
	free(p);
	return 0;
}

/* A packet of n bytes that says which it is. */
static int push(struct pair *p, uint64_t id, size_t n, const int *fds, unsigned int n_fds,
		uint64_t now)
{
	static unsigned char packet[FRAME_MAX];
	const struct frame_header h = { .magic = FRAME_MAGIC, .op = 10, .id = id };

	frame_write(packet, &h);
	return outbox_send(&p->o, p->near, packet, n, fds, n_fds, now);
}

/* The number of the next packet that arrives, 0 when there is none. */
static uint64_t pull(struct pair *p, int *fds, unsigned int *n_fds)
{
	static unsigned char packet[FRAME_MAX];
	struct frame_header h;
	long n = frame_recv(p->far, packet, fds, FRAME_FDS_MAX, n_fds);

	if (n == -EAGAIN)
		return 0;
	assert_true(n > 0);
	assert_null(frame_parse(packet, (size_t)n, &h));
	return h.id;
}

/* Sends until something is kept. Returns how many packets went out at once. */
static uint64_t fill(struct pair *p, uint64_t now)
{
	uint64_t id = 1;

	for (; !p->o.count; id++)
		assert_int_equal(push(p, id, 1024, NULL, 0, now), 0);
	return id - 2;
}

static void goes_out_at_once(void **state)
{
	struct pair *p = *state;
	int fds[FRAME_FDS_MAX];
	unsigned int n;

	assert_int_equal(push(p, 5, FRAME_HEADER_BYTES, NULL, 0, 1), 0);
	assert_int_equal(p->o.count, 0);
	assert_int_equal(pull(p, fds, &n), 5);
	assert_int_equal(n, 0);
}

static void keeps_the_order(void **state)
{
	struct pair *p = *state;
	int fds[FRAME_FDS_MAX];
	unsigned int n;
	uint64_t sent = fill(p, 7), last;

	assert_true(sent >= 1);
	for (last = sent + 1; last < sent + 20; last++)
		assert_int_equal(push(p, last + 1, 1024, NULL, 0, 8), 0);
	assert_int_equal(p->o.count, 20);
	assert_int_equal(p->o.bytes, 20 * 1024);
	assert_int_equal(p->o.stuck, 7);
	for (uint64_t id = 1; id <= last; id++) {
		assert_int_equal(outbox_flush(&p->o, p->near, 9), 0);
		assert_int_equal(pull(p, fds, &n), id);
	}
	assert_int_equal(pull(p, fds, &n), 0);
	assert_int_equal(p->o.count, 0);
	assert_int_equal(p->o.bytes, 0);
}

static void stuck_until_something_moves(void **state)
{
	struct pair *p = *state;
	int fds[FRAME_FDS_MAX];
	unsigned int n;

	fill(p, 100);
	assert_int_equal(outbox_flush(&p->o, p->near, 200), 0);
	assert_int_equal(p->o.stuck, 100);
	while (pull(p, fds, &n))
		;
	push(p, 99, 1024, NULL, 0, 250);
	assert_int_equal(outbox_flush(&p->o, p->near, 300), 0);
	assert_int_equal(p->o.count, 0);
}

static void full_of_packets(void **state)
{
	struct pair *p = *state;
	unsigned int n = 1;

	fill(p, 1);
	for (; n < OUTBOX_PACKETS; n++)
		assert_int_equal(push(p, 1000 + n, FRAME_HEADER_BYTES, NULL, 0, 1), 0);
	assert_int_equal(push(p, 1, FRAME_HEADER_BYTES, NULL, 0, 1), -ENOBUFS);
	assert_int_equal(p->o.count, OUTBOX_PACKETS);
}

static void full_of_bytes(void **state)
{
	struct pair *p = *state;

	fill(p, 1);
	assert_int_equal(push(p, 1, FRAME_MAX, NULL, 0, 1), 0);
	assert_int_equal(push(p, 1, FRAME_MAX, NULL, 0, 1), 0);
	assert_int_equal(push(p, 1, FRAME_MAX, NULL, 0, 1), 0);
	assert_int_equal(push(p, 1, FRAME_MAX, NULL, 0, 1), -ENOBUFS);
	assert_int_equal(push(p, 1, FRAME_MAX - 1024, NULL, 0, 1), 0);
	assert_int_equal(p->o.bytes, OUTBOX_BYTES);
	assert_int_equal(push(p, 1, FRAME_HEADER_BYTES, NULL, 0, 1), -ENOBUFS);
}

static void half_full(void **state)
{
	struct pair *p = *state;

	fill(p, 1);
	assert_false(outbox_is_half_full(&p->o));
	while (p->o.count < OUTBOX_PACKETS / 2)
		push(p, 1, FRAME_HEADER_BYTES, NULL, 0, 1);
	assert_false(outbox_is_half_full(&p->o));
	push(p, 1, FRAME_HEADER_BYTES, NULL, 0, 1);
	assert_true(outbox_is_half_full(&p->o));
}

static void half_full_of_bytes(void **state)
{
	struct pair *p = *state;

	fill(p, 1);
	push(p, 1, FRAME_MAX, NULL, 0, 1);
	push(p, 1, FRAME_MAX - 1024, NULL, 0, 1);
	assert_int_equal(p->o.bytes, OUTBOX_BYTES / 2);
	assert_false(outbox_is_half_full(&p->o));
	push(p, 1, FRAME_HEADER_BYTES, NULL, 0, 1);
	assert_true(outbox_is_half_full(&p->o));
}

static void descriptors_wait_too(void **state)
{
	struct pair *p = *state;
	int mine = open("/dev/null", O_RDONLY | O_CLOEXEC), fds[FRAME_FDS_MAX];
	unsigned int n = 0;
	uint64_t sent = fill(p, 1);

	assert_true(mine >= 0);
	assert_int_equal(push(p, 500, 1024, &mine, 1, 1), 0);
	for (uint64_t id = 1; id <= sent + 1; id++) {
		assert_int_equal(pull(p, fds, &n), id);
		assert_int_equal(n, 0);
		assert_int_equal(outbox_flush(&p->o, p->near, 1), 0);
	}
	assert_int_equal(pull(p, fds, &n), 500);
	assert_int_equal(n, 1);
	/* Borrowed: still open here. */
	assert_true(fcntl(mine, F_GETFD) >= 0);
	close(mine);
	close(fds[0]);
}

static void peer_is_gone(void **state)
{
	struct pair *p = *state;

	fill(p, 1);
	close(p->far);
	p->far = -1;
	/* Told once that what it was sent was never read. */
	assert_int_equal(outbox_flush(&p->o, p->near, 1), -ECONNRESET);
	assert_int_equal(outbox_flush(&p->o, p->near, 1), -EPIPE);
	outbox_clear(&p->o);
	assert_int_equal(push(p, 1, 1024, NULL, 0, 1), -EPIPE);
	assert_int_equal(p->o.count, 0);
}

int main(void)
{
#define WITH_PAIR(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_PAIR(goes_out_at_once),
		WITH_PAIR(keeps_the_order),
		WITH_PAIR(stuck_until_something_moves),
		WITH_PAIR(full_of_packets),
		WITH_PAIR(full_of_bytes),
		WITH_PAIR(half_full),
		WITH_PAIR(half_full_of_bytes),
		WITH_PAIR(descriptors_wait_too),
		WITH_PAIR(peer_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
