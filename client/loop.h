/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program's own loop watches: one descriptor for the life of the handle, that is readable
 * when kvpool_dispatch has something to do. It is an epoll of the socket of the moment, a timer,
 * and an eventfd that other threads ring.
 *
 * All but loop_ring is under the lock of the operations (ops.h).
 */
#ifndef KVP_CLIENT_LOOP_H
#define KVP_CLIENT_LOOP_H

#include <stdint.h>

struct rpc;

struct loop {
	int epoll, timer;
	int event;           /* atomic; -1: nobody watches anything yet, as the other two */
	struct rpc *watched; /* with a reference: its socket stays open until it is taken out */
	uint32_t events;
	uint64_t armed; /* when the timer goes off; UINT64_MAX: never */
};

enum loop_ready {
	LOOP_SOCKET = 1,
	LOOP_TIMER = 2,
	LOOP_EVENT = 4,
	LOOP_ALL = 7,
};

void loop_init(struct loop *l);

/* Makes the descriptors, unless they are there. Returns 0 or -errno. */
int loop_open(struct loop *l);

/* Closes them; in a child too. */
void loop_close(struct loop *l, int forked);

/* Makes it readable. From any thread, under any lock; does nothing before loop_open. */
void loop_ring(struct loop *l);

/* What there is to do: bits of enum loop_ready, all without descriptors. Quiets timer and event. */
unsigned int loop_look(struct loop *l);

/* Watches the socket of r (NULL: none) for these events. */
void loop_watch(struct loop *l, struct rpc *r, uint32_t events);

/* Makes it readable at that time, and perhaps before it. */
void loop_arm(struct loop *l, uint64_t at);

#endif
