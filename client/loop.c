/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/loop.h"
#include "client/rpc.h"

void loop_init(struct loop *l)
{
	*l = (struct loop){ .epoll = -1, .timer = -1, .event = -1, .armed = UINT64_MAX };
}

/* data: what loop_look says when it is ready. */
static int add(int epoll, int fd, enum loop_ready data, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u32 = data };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int loop_open(struct loop *l)
{
	_cleanup_fd_ int epoll = -1, timer = -1, event = -1;
	int err;

	if (l->epoll >= 0)
		return 0;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	timer = epoll < 0 ? -1 : timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	event = timer < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event < 0)
		return -errno;
	err = add(epoll, timer, LOOP_TIMER, EPOLLIN);
	if (!err)
		err = add(epoll, event, LOOP_EVENT, EPOLLIN);
	if (err < 0)
		return err;
	l->epoll = TAKE_FD(epoll);
	l->timer = TAKE_FD(timer);
	/* Acquire in loop_ring: the number is good as soon as it is seen. */
	store_release(&l->event, TAKE_FD(event));
	return 0;
}

void loop_close(struct loop *l, int forked)
{
	if (forked)
		rpc_forget(l->watched);
	else
		loop_watch(l, NULL, 0);
	close_fd(l->event);
	close_fd(l->timer);
	close_fd(l->epoll);
	loop_init(l);
}

void loop_ring(struct loop *l)
{
	int fd = load_acquire(&l->event), saved = errno;
	uint64_t one = 1;

	/* Full: then it is readable already. */
	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
	errno = saved;
}

static void quiet(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

unsigned int loop_look(struct loop *l)
{
	struct epoll_event e[3];
	unsigned int ready = 0;
	int n;

	if (l->epoll < 0)
		return LOOP_ALL;
	n = epoll_wait(l->epoll, e, 3, 0);
	for (int i = 0; i < n; i++)
		ready |= e[i].data.u32;
	if (ready & LOOP_EVENT)
		quiet(l->event);
	if (ready & LOOP_TIMER) {
		quiet(l->timer);
		l->armed = UINT64_MAX;
	}
	return ready;
}

void loop_watch(struct loop *l, struct rpc *r, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u32 = LOOP_SOCKET };

	if (l->epoll < 0 || (r == l->watched && (!r || events == l->events)))
		return;
	if (r && r == l->watched) {
		if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, rpc_sock(r), &e) == 0)
			l->events = events;
		return;
	}
	/* Not left to close(): a child may have the socket open too. */
	if (l->watched) {
		(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, rpc_sock(l->watched), NULL);
		l->watched = rpc_unref(l->watched);
	}
	if (r && add(l->epoll, rpc_sock(r), LOOP_SOCKET, events) == 0) {
		l->watched = rpc_ref(r);
		l->events = events;
	}
}

void loop_arm(struct loop *l, uint64_t at)
{
	struct itimerspec t = {
		.it_value = { (time_t)(at / NSEC_PER_SEC), (long)(at % NSEC_PER_SEC) },
	};

	if (l->timer < 0 || at >= l->armed)
		return;
	if (timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &t, NULL) == 0)
		l->armed = at;
}
