/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connected socket: packets in, a bounded number in each round of the loop, and packets out
 * through an outbox. It knows nothing of what the packets say.
 *
 * While much waits in the outbox no more packets are read, so a client that asks without reading
 * its answers is stopped by its own socket.
 */
#ifndef KVP_DAEMON_CONN_H
#define KVP_DAEMON_CONN_H

#include <systemd/sd-event.h>

#include "daemon/outbox.h"
#include "proto/frame.h"

/* Why it is of no use any more. */
enum conn_problem {
	CONN_HUNG_UP,
	CONN_CUT,         /* a packet longer than FRAME_MAX */
	CONN_DESCRIPTORS, /* it carried descriptors; they are closed */
	CONN_SLOW,        /* the outbox is full */
	CONN_NO_MEMORY,
};

struct conn_ops {
	/* A packet. Returns 0 to go on, anything else to read no more. */
	int (*packet)(void *ctx, const void *packet, size_t n);
	/* May be called more than once; must not close the connection itself. */
	void (*broken)(void *ctx, enum conn_problem problem);
};

struct conn {
	int sock; /* -1: closed */
	sd_event_source *io;
	struct outbox outbox;
	unsigned char *buffer; /* FRAME_MAX bytes, of the owner: one packet at a time */
	const struct conn_ops *ops;
	void *ctx;
};

/* Takes sock when it returns 0. Otherwise -errno. */
int conn_open(struct conn *c, sd_event *event, int sock, void *buffer, const struct conn_ops *ops,
	      void *ctx);

/* Sends what still can be sent, and closes. Twice is harmless. */
void conn_close(struct conn *c, uint64_t now);

/* Hands out what was sent before the peer went, up to what a client may have under way. */
void conn_read_rest(struct conn *c);

/* Sends or queues a packet; what goes wrong is told by ops->broken. */
void conn_send(struct conn *c, const void *packet, size_t n, const int *fds, unsigned int n_fds,
	       uint64_t now);

/* Since when its client has taken nothing though something waits; 0: it is up to date. */
uint64_t conn_stuck(const struct conn *c);

#endif
