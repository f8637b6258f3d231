/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has not taken yet: a queue of packets, bounded in bytes and number.
 *
 * A packet goes out at once when nothing waits before it and the socket has room; otherwise a copy
 * is kept and charged here. Descriptors of a kept packet are borrowed: they must stay open until it
 * is sent or the outbox is cleared.
 */
#ifndef KVP_DAEMON_OUTBOX_H
#define KVP_DAEMON_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define OUTBOX_BYTES   (256u << 10)
#define OUTBOX_PACKETS 64u

struct outbox {
	struct list packets;
	size_t bytes;
	unsigned int count;
	uint64_t stuck; /* since when nothing went out; meaningless when it is empty */
};

void outbox_init(struct outbox *o);

/* Drops what is in it. */
void outbox_clear(struct outbox *o);

/*
 * Sends or keeps a packet. Returns 0, -ENOBUFS when it is full, or what made sending impossible
 * (-EPIPE, -ECONNRESET: the peer is gone; -ENOMEM).
 */
int outbox_send(struct outbox *o, int sock, const void *packet, size_t n, const int *fds,
		unsigned int n_fds, uint64_t now);

/* Sends what the socket takes. Returns 0, or why the peer cannot be reached. */
int outbox_flush(struct outbox *o, int sock, uint64_t now);

/* Whether so much waits that no more requests should be read. */
int outbox_is_half_full(const struct outbox *o);

#endif
