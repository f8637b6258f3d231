/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "proto/frame.h"

#define FRAME_FLAGS (FRAME_REPLY | FRAME_ERROR)

/* Room for the largest number of descriptors that is ever taken. */
union frame_control {
	char bytes[CMSG_SPACE(FRAME_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

/*
 * The descriptors of one packet while it is not known whether they are wanted: room for whatever
 * the kernel can have put into the control buffer.
 */
struct frame_fds {
	int fd[sizeof(union frame_control) / sizeof(int)];
	unsigned int count;
};

void frame_write(void *packet, const struct frame_header *h)
{
	struct frame_header le = {
		.magic = htole32(h->magic),
		.op = htole16(h->op),
		.flags = htole16(h->flags),
		.id = htole64(h->id),
		.epoch = htole64(h->epoch),
	};

	_Static_assert(sizeof(le) == FRAME_HEADER_BYTES, "the header has no padding");
	memcpy(packet, &le, sizeof(le));
}

const char *frame_parse(const void *packet, size_t n, struct frame_header *ret)
{
	struct frame_header h;

	if (n < sizeof(h))
		return "shorter than a header";
	if (n > FRAME_MAX)
		return "longer than a packet may be";
	memcpy(&h, packet, sizeof(h));
	h.magic = le32toh(h.magic);
	h.op = le16toh(h.op);
	h.flags = le16toh(h.flags);
	h.id = le64toh(h.id);
	h.epoch = le64toh(h.epoch);
	if (h.magic != FRAME_MAGIC)
		return "does not start with the magic number";
	if (h.flags & ~FRAME_FLAGS)
		return "has flags that are not known";
	if (h.flags == FRAME_ERROR)
		return "is an error without being a reply";
	*ret = h;
	return NULL;
}

static void frame_attach(struct msghdr *msg, union frame_control *control, const int *fds,
			 unsigned int n_fds)
{
	struct cmsghdr *c;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
}

int frame_send(int sock, const void *packet, size_t n, const int *fds, unsigned int n_fds)
{
	union frame_control control;
	struct iovec iov = { (void *)packet, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t r;

	/* A packet of no bytes would read as the end of the connection. */
	if (n < FRAME_HEADER_BYTES || n > FRAME_MAX)
		return -EMSGSIZE;
	if (n_fds > FRAME_FDS_MAX)
		return -EINVAL;
	if (n_fds)
		frame_attach(&msg, &control, fds, n_fds);
	do
		r = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static void frame_collect(struct msghdr *msg, struct frame_fds *got)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(&got->fd[got->count], CMSG_DATA(c), bytes);
		got->count += (unsigned int)(bytes / sizeof(int));
	}
}

static void frame_drop(struct frame_fds *got)
{
	while (got->count)
		close_fd(got->fd[--got->count]);
}

/* What a packet that came is worth: its length, or the reason why it is refused. */
static long frame_verdict(const struct msghdr *msg, const struct frame_fds *got,
			  unsigned int max_fds, ssize_t n)
{
	if (msg->msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	/* Cut also when this process may open no more descriptors. */
	if ((msg->msg_flags & MSG_CTRUNC) || got->count > max_fds)
		return -EPROTO;
	return n;
}

long frame_recv(int sock, void *buf, int *fds, unsigned int max_fds, unsigned int *ret_fds)
{
	union frame_control control;
	struct iovec iov = { buf, FRAME_MAX };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct frame_fds got = { .count = 0 };
	ssize_t n;
	long r;

	do {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control);
		n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	frame_collect(&msg, &got);
	r = frame_verdict(&msg, &got, max_fds, n);
	if (r <= 0) {
		frame_drop(&got);
		return r;
	}
	if (got.count)
		memcpy(fds, got.fd, got.count * sizeof(int));
	*ret_fds = got.count;
	return r;
}
