/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/conn.h"

/* Packets of one client in one round of the loop: the others get their turn. */
#define CONN_ROUND 16u

static void conn_update(struct conn *c)
{
	uint32_t events = 0;

	if (c->sock < 0)
		return;
	if (!outbox_is_half_full(&c->outbox))
		events |= EPOLLIN;
	if (c->outbox.count)
		events |= EPOLLOUT;
	(void)sd_event_source_set_io_events(c->io, events);
}

static enum conn_problem conn_problem(long r)
{
	switch (r) {
	case -EMSGSIZE:
		return CONN_CUT;
	case -EPROTO:
		return CONN_DESCRIPTORS;
	case -ENOBUFS:
		return CONN_SLOW;
	case -ENOMEM:
		return CONN_NO_MEMORY;
	default:
		return CONN_HUNG_UP;
	}
}

/* One packet. Returns 0 to go on. */
static int conn_receive(struct conn *c)
{
	unsigned int n_fds;
	long n = frame_recv(c->sock, c->buffer, NULL, 0, &n_fds);

	if (n == -EAGAIN)
		return 1;
	/*
	 * Told once when the client went without reading all; what it sent before is still there.
	 */
	if (n == -ECONNRESET)
		return 0;
	if (n > 0)
		return c->ops->packet(c->ctx, c->buffer, (size_t)n) ||
		       outbox_is_half_full(&c->outbox);
	c->ops->broken(c->ctx, conn_problem(n));
	return 1;
}

/*
 * Nothing can be sent any more. What the peer sent before it went is still to be read, and the end
 * is found behind it.
 */
static void conn_on_send_failed(struct conn *c, int r)
{
	enum conn_problem problem = conn_problem(r);

	if (problem == CONN_HUNG_UP)
		outbox_clear(&c->outbox);
	else
		c->ops->broken(c->ctx, problem);
}

static int conn_on_io(sd_event_source *s, int fd, uint32_t revents, void *ctx)
{
	struct conn *c = ctx;

	if (revents & EPOLLOUT) {
		int r = outbox_flush(&c->outbox, c->sock, clock_ns());

		if (r < 0)
			conn_on_send_failed(c, r);
	}
	if (revents & EPOLLIN)
		for (unsigned int i = 0; i < CONN_ROUND && conn_receive(c) == 0; i++)
			;
	else if (revents & (EPOLLHUP | EPOLLERR))
		outbox_clear(&c->outbox); /* it was not read from: it is from here on */
	conn_update(c);
	return 0;
}

int conn_open(struct conn *c, sd_event *event, int sock, void *buffer, const struct conn_ops *ops,
	      void *ctx)
{
	int r = sd_event_add_io(event, &c->io, sock, EPOLLIN, conn_on_io, c);

	if (r < 0)
		return r;
	outbox_init(&c->outbox);
	c->sock = sock;
	c->buffer = buffer;
	c->ops = ops;
	c->ctx = ctx;
	return 0;
}

void conn_read_rest(struct conn *c)
{
	for (unsigned int i = 0; c->sock >= 0 && i < 4 * CONN_ROUND && conn_receive(c) == 0; i++)
		;
}

/*
 * What the client sent and nobody will read. If it stayed in the socket, the client would be told
 * ECONNRESET before it can read the answer that says why.
 */
static void conn_drain(struct conn *c)
{
	unsigned int n_fds;
	long n = 1;

	for (unsigned int i = 0; i < 2 * CONN_ROUND && (n > 0 || n == -EMSGSIZE || n == -EPROTO);
	     i++)
		n = frame_recv(c->sock, c->buffer, NULL, 0, &n_fds);
}

void conn_close(struct conn *c, uint64_t now)
{
	if (c->sock < 0)
		return;
	(void)outbox_flush(&c->outbox, c->sock, now);
	conn_drain(c);
	outbox_clear(&c->outbox);
	c->io = sd_event_source_disable_unref(c->io);
	c->sock = close_fd(c->sock);
}

void conn_send(struct conn *c, const void *packet, size_t n, const int *fds, unsigned int n_fds,
	       uint64_t now)
{
	int r;

	if (c->sock < 0)
		return;
	r = outbox_send(&c->outbox, c->sock, packet, n, fds, n_fds, now);
	if (r < 0)
		conn_on_send_failed(c, r);
	conn_update(c);
}

uint64_t conn_stuck(const struct conn *c)
{
	return c->sock >= 0 && c->outbox.count ? c->outbox.stuck : 0;
}
