/* SPDX-License-Identifier: Apache-2.0 */
/* Headers, packets and the descriptors that travel with them. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "proto/frame.h"

static const struct frame_header sample = {
	.magic = FRAME_MAGIC,
	.op = 0x0102,
	.flags = FRAME_REPLY | FRAME_ERROR,
	.id = 0x1122334455667788,
	.epoch = 0x99aabbccddeeff00,
};

struct pair {
	int a, b;
	uint8_t out[FRAME_MAX], in[FRAME_MAX];
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int sv[2];

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	p->a = sv[0];
	p->b = sv[1];
	frame_write(p->out, &sample);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	close_fd(p->a);
	close_fd(p->b);
	free(p);
	return 0;
}

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Sends more descriptors than frame_send would. */
static void send_raw(int sock, const void *packet, size_t n, unsigned int n_fds)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)packet, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
			      .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int zero = 0;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	for (unsigned int i = 0; i < n_fds; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &zero, sizeof(int));
	assert_int_equal(sendmsg(sock, &msg, 0), (ssize_t)n);
}

static void header_bytes(void **state)
{
	static const uint8_t expected[FRAME_HEADER_BYTES] = {
		'K', 'V', 'P', '1', 0x02, 0x01, 0x03, 0x00, 0x88, 0x77, 0x66, 0x55,
		0x44, 0x33, 0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99,
	};
	uint8_t bytes[FRAME_HEADER_BYTES];

	frame_write(bytes, &sample);
	assert_memory_equal(bytes, expected, sizeof(expected));
}

static void header_comes_back(void **state)
{
	struct frame_header h;
	uint8_t bytes[FRAME_HEADER_BYTES];

	frame_write(bytes, &sample);
	assert_null(frame_parse(bytes, sizeof(bytes), &h));
	assert_memory_equal(&h, &sample, sizeof(h));
}

static void expect_bad(const void *bytes, size_t n, const char *why)
{
	struct frame_header h = { .id = 4711 };
	const char *said = frame_parse(bytes, n, &h);

	assert_non_null(said);
	assert_string_equal(said, why);
	assert_int_equal(h.id, 4711);
}

static void bad_headers_say_why(void **state)
{
	struct frame_header h = sample;
	struct pair *p = *state;

	for (size_t n = 0; n < FRAME_HEADER_BYTES; n++)
		expect_bad(p->out, n, "shorter than a header");
	expect_bad(p->out, FRAME_MAX + 1, "longer than a packet may be");
	h.magic ^= 1;
	frame_write(p->out, &h);
	expect_bad(p->out, FRAME_HEADER_BYTES, "does not start with the magic number");
	h = sample;
	h.flags = 4;
	frame_write(p->out, &h);
	expect_bad(p->out, FRAME_HEADER_BYTES, "has flags that are not known");
	h.flags = FRAME_ERROR;
	frame_write(p->out, &h);
	expect_bad(p->out, FRAME_HEADER_BYTES, "is an error without being a reply");
}

static void packet_arrives_whole(void **state)
{
	static const size_t sizes[] = { FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + 1, 4096,
					FRAME_MAX };
	struct pair *p = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned int n_fds = 9;

		memset(p->out + FRAME_HEADER_BYTES, (int)i + 1, sizes[i] - FRAME_HEADER_BYTES);
		memset(p->in, 0, FRAME_MAX);
		assert_int_equal(frame_send(p->a, p->out, sizes[i], NULL, 0), 0);
		assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &n_fds), sizes[i]);
		assert_int_equal(n_fds, 0);
		assert_memory_equal(p->in, p->out, sizes[i]);
	}
}

static void send_refuses_other_sizes(void **state)
{
	struct pair *p = *state;
	int fds[FRAME_FDS_MAX + 1] = { 0 };

	assert_int_equal(frame_send(p->a, p->out, 0, NULL, 0), -EMSGSIZE);
	assert_int_equal(frame_send(p->a, p->out, FRAME_HEADER_BYTES - 1, NULL, 0), -EMSGSIZE);
	assert_int_equal(frame_send(p->a, p->out, FRAME_MAX + 1, NULL, 0), -EMSGSIZE);
	assert_int_equal(frame_send(p->a, p->out, FRAME_MAX, fds, FRAME_FDS_MAX + 1), -EINVAL);
	assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &(unsigned int){ 0 }), -EAGAIN);
}

static void descriptors_arrive(void **state)
{
	struct pair *p = *state;
	unsigned int before = open_fds();

	for (unsigned int n = 1; n <= FRAME_FDS_MAX; n++) {
		int fds[FRAME_FDS_MAX], got[FRAME_FDS_MAX];
		unsigned int n_got = 0;
		struct stat a, b;

		for (unsigned int i = 0; i < n; i++)
			fds[i] = open(i ? "/dev/zero" : "/dev/null", O_RDONLY | O_CLOEXEC);
		assert_int_equal(frame_send(p->a, p->out, FRAME_HEADER_BYTES, fds, n), 0);
		assert_int_equal(frame_recv(p->b, p->in, got, FRAME_FDS_MAX, &n_got),
				 FRAME_HEADER_BYTES);
		assert_int_equal(n_got, n);
		for (unsigned int i = 0; i < n; i++) {
			assert_int_equal(fstat(fds[i], &a) | fstat(got[i], &b), 0);
			assert_int_equal(a.st_rdev, b.st_rdev);
			assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
			close_fd(got[i]);
			close_fd(fds[i]);
		}
	}
	assert_int_equal(open_fds(), before);
}

static void too_many_descriptors_leave_none(void **state)
{
	struct pair *p = *state;
	unsigned int before = open_fds();

	for (unsigned int max = 0; max <= FRAME_FDS_MAX; max++)
		for (unsigned int n = max + 1; n <= 64; n++) {
			int got[FRAME_FDS_MAX] = { -7, -7, -7, -7 };
			unsigned int n_got = 77;

			send_raw(p->a, p->out, FRAME_HEADER_BYTES, n);
			assert_int_equal(frame_recv(p->b, p->in, got, max, &n_got), -EPROTO);
			assert_int_equal(n_got, 77);
			for (unsigned int i = 0; i < FRAME_FDS_MAX; i++)
				assert_int_equal(got[i], -7);
			assert_int_equal(open_fds(), before);
		}
	/* The connection itself is as good as before. */
	assert_int_equal(frame_send(p->a, p->out, 100, NULL, 0), 0);
	assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &(unsigned int){ 0 }), 100);
}

/* The kernel cuts the list when the process may have no more open files. */
static void descriptors_beyond_the_limit(void **state)
{
	struct pair *p = *state;
	unsigned int before = open_fds(), n_got = 77;
	struct rlimit saved, low;
	int got[FRAME_FDS_MAX], next = dup(0);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	close_fd(next);
	low = (struct rlimit){ (rlim_t)next + 2, saved.rlim_max };
	send_raw(p->a, p->out, FRAME_HEADER_BYTES, 4);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(frame_recv(p->b, p->in, got, FRAME_FDS_MAX, &n_got), -EPROTO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	assert_int_equal(open_fds(), before);
	assert_int_equal(n_got, 77);
}

static void packet_too_long_is_refused_whole(void **state)
{
	struct pair *p = *state;
	unsigned int before = open_fds(), n_got = 77;
	uint8_t *big = calloc(2, FRAME_MAX);
	int got[FRAME_FDS_MAX];

	assert_non_null(big);
	send_raw(p->a, big, FRAME_MAX + 1, 2);
	assert_int_equal(frame_recv(p->b, p->in, got, FRAME_FDS_MAX, &n_got), -EMSGSIZE);
	assert_int_equal(n_got, 77);
	assert_int_equal(open_fds(), before);
	assert_int_equal(frame_recv(p->b, p->in, got, FRAME_FDS_MAX, &n_got), -EAGAIN);
	free(big);
}

/* A packet of no bytes is the end, even with descriptors. */
static void empty_packet_is_the_end(void **state)
{
	struct pair *p = *state;
	unsigned int before = open_fds(), n_got = 77;
	int got[FRAME_FDS_MAX];

	send_raw(p->a, p->out, 0, 3);
	assert_int_equal(frame_recv(p->b, p->in, got, FRAME_FDS_MAX, &n_got), 0);
	assert_int_equal(n_got, 77);
	assert_int_equal(open_fds(), before);
}

/* A SIGPIPE would end the test. */
static void closed_peer(void **state)
{
	struct pair *p = *state;
	unsigned int n_got = 77;

	p->b = close_fd(p->b);
	assert_int_equal(frame_send(p->a, p->out, 100, NULL, 0), -EPIPE);
	assert_int_equal(frame_send(p->a, p->out, 100, &p->a, 1), -EPIPE);
	assert_int_equal(frame_recv(p->a, p->in, NULL, 0, &n_got), 0);
	assert_int_equal(n_got, 77);
}

static void peer_that_left_a_packet_unread(void **state)
{
	struct pair *p = *state;

	assert_int_equal(frame_send(p->a, p->out, 100, NULL, 0), 0);
	p->b = close_fd(p->b);
	assert_int_equal(frame_recv(p->a, p->in, NULL, 0, &(unsigned int){ 0 }), -ECONNRESET);
}

static void packets_before_the_end_are_read(void **state)
{
	struct pair *p = *state;
	unsigned int n = 0;

	assert_int_equal(frame_send(p->a, p->out, 100, NULL, 0), 0);
	assert_int_equal(frame_send(p->a, p->out, 200, NULL, 0), 0);
	p->a = close_fd(p->a);
	assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &n), 100);
	assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &n), 200);
	assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &n), 0);
}

static void full_socket_does_not_block(void **state)
{
	struct pair *p = *state;
	unsigned int before = open_fds(), sent = 0, n_got;
	int r;

	while ((r = frame_send(p->a, p->out, FRAME_MAX, &p->a, 1)) == 0)
		sent++;
	assert_int_equal(r, -EAGAIN);
	assert_true(sent > 0);
	for (; sent; sent--) {
		int fd;

		assert_int_equal(frame_recv(p->b, p->in, &fd, 1, &n_got), FRAME_MAX);
		assert_int_equal(n_got, 1);
		close_fd(fd);
	}
	assert_int_equal(frame_recv(p->b, p->in, NULL, 0, &n_got), -EAGAIN);
	assert_int_equal(frame_send(p->a, p->out, FRAME_MAX, NULL, 0), 0);
	assert_int_equal(open_fds(), before);
}

static void no_socket(void **state)
{
	struct pair *p = *state;

	assert_int_equal(frame_send(-1, p->out, 100, NULL, 0), -EBADF);
	assert_int_equal(frame_recv(-1, p->in, NULL, 0, &(unsigned int){ 0 }), -EBADF);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(header_bytes),
		T(header_comes_back),
		T(bad_headers_say_why),
		T(packet_arrives_whole),
		T(send_refuses_other_sizes),
		T(descriptors_arrive),
		T(too_many_descriptors_leave_none),
		T(descriptors_beyond_the_limit),
		T(packet_too_long_is_refused_whole),
		T(empty_packet_is_the_end),
		T(closed_peer),
		T(peer_that_left_a_packet_unread),
		T(packets_before_the_end_are_read),
		T(full_socket_does_not_block),
		T(no_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
