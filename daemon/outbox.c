/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/outbox.h"
#include "proto/frame.h"

struct packet {
	struct list link;
	int fd[FRAME_FDS_MAX];
	unsigned int n_fds;
	size_t n;
	unsigned char bytes[];
};

void outbox_init(struct outbox *o)
{
	list_init(&o->packets);
	o->bytes = 0;
	o->count = 0;
	o->stuck = 0;
}

static void outbox_drop_first(struct outbox *o)
{
	struct packet *p = list_first(&o->packets, struct packet, link);

	list_del(&p->link);
	o->bytes -= p->n;
	o->count--;
	free(p);
}

void outbox_clear(struct outbox *o)
{
	while (o->count)
		outbox_drop_first(o);
}

static int outbox_keep(struct outbox *o, const void *packet, size_t n, const int *fds,
		       unsigned int n_fds, uint64_t now)
{
	struct packet *p;

	if (n_fds > FRAME_FDS_MAX)
		return -EINVAL;
	if (o->count == OUTBOX_PACKETS || n > OUTBOX_BYTES - o->bytes)
		return -ENOBUFS;
	p = malloc(sizeof(*p) + n);
	if (!p)
		return -ENOMEM;
	memcpy(p->bytes, packet, n);
	p->n = n;
	p->n_fds = n_fds;
	for (unsigned int i = 0; i < n_fds; i++)
		p->fd[i] = fds[i];
	if (!o->count)
		o->stuck = now;
	list_add_tail(&o->packets, &p->link);
	o->bytes += n;
	o->count++;
	return 0;
}

int outbox_send(struct outbox *o, int sock, const void *packet, size_t n, const int *fds,
		unsigned int n_fds, uint64_t now)
{
	if (!o->count) {
		int r = frame_send(sock, packet, n, fds, n_fds);

		if (r != -EAGAIN)
			return r;
	}
	return outbox_keep(o, packet, n, fds, n_fds, now);
}

int outbox_flush(struct outbox *o, int sock, uint64_t now)
{
	while (o->count) {
		struct packet *p = list_first(&o->packets, struct packet, link);
		int r = frame_send(sock, p->bytes, p->n, p->fd, p->n_fds);

		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		outbox_drop_first(o);
		o->stuck = now;
	}
	return 0;
}

int outbox_is_half_full(const struct outbox *o)
{
	return o->bytes > OUTBOX_BYTES / 2 || o->count > OUTBOX_PACKETS / 2;
}
