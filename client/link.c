/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/attempt.h"
#include "client/link.h"
#include "client/ns.h"
#include "proto/kvpool.pb-c.h"

#define BACKOFF_MIN_NS (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (5 * NSEC_PER_SEC)

void link_put(struct kvpool *p, struct link *l)
{
	if (handle_is_forked(p))
		rpc_forget(l->rpc);
	else
		rpc_unref(l->rpc);
	attach_put(l->attach);
	*l = (struct link){ .rpc = NULL };
}

void link_dup(const struct link *l, struct link *ret)
{
	attach_dup(l->attach);
	*ret = (struct link){ rpc_ref(l->rpc), l->attach, l->max_keys };
}

int link_errno(int err)
{
	return err == -ETIMEDOUT || err == -ENOMEM || err == -EPROTO || err == -ESTALE ? err
										       : -ENOTCONN;
}

/* What was looked up while there was no daemon is told to the one that is there now. */
static void tell_missed(struct kvpool *p, struct attach *a)
{
	struct touch t = { .desc = DESC_NONE, .ns = NS_NONE, .reason_tail = KVPOOL_NO_DAEMON };
	uint64_t missed = xchg_acq_rel(&p->stray[COUNTER_MISS_TOKENS], 0);

	session_count(&a->session, COUNTER_LOOKUPS, xchg_acq_rel(&p->stray[COUNTER_LOOKUPS], 0));
	session_count(&a->session, COUNTER_ASKED_TOKENS,
		      xchg_acq_rel(&p->stray[COUNTER_ASKED_TOKENS], 0));
	session_count(&a->session, COUNTER_MISS_TOKENS, missed);
	for (; missed; missed -= t.asked_tokens) {
		t.asked_tokens = (uint32_t)MIN(missed, (uint64_t)UINT32_MAX);
		touch_push(&a->session, &t);
	}
}

void link_publish(struct kvpool *p, const struct link *l, const struct hello *h)
{
	struct attach *old;

	pthread_mutex_lock(&p->lock);
	old = p->current;
	p->max_keys = h->max_keys;
	p->features = h->features;
	memcpy(p->daemon, h->daemon, sizeof(p->daemon));
	p->rpc = rpc_ref(l->rpc);
	p->connects++;
	p->backoff_ns = 0;
	tell_missed(p, l->attach);
	/* Release: pairs with the acquire in lease_attach. */
	store_release(&p->current, l->attach);
	if (old)
		attach_retire(old);
	handle_tidy_locked(p);
	pthread_mutex_unlock(&p->lock);
}

/* Makes a connection, and waits for it. */
static int open_link(struct kvpool *p, uint64_t deadline)
{
	struct attempt a;
	int err;

	attempt_begin(&a, p);
	do
		err = attempt_step(&a);
	while (err == -EINPROGRESS && attempt_sleep(&a, deadline) == 0);
	if (err == -EINPROGRESS)
		err = attempt_time_out(&a);
	attempt_end(&a);
	return err;
}

/* Gives up the connection. Under the lock. */
static void hang_up(struct kvpool *p)
{
	struct attach *a = p->current;

	p->requests += rpc_requests(p->rpc);
	p->rpc = rpc_unref(p->rpc);
	p->link_error = -ENOTCONN;
	p->retry_at = 0;
	if (a && (p->closed || attach_is_given_up(a))) {
		store_relaxed(&p->current, NULL);
		attach_retire(a);
	}
	handle_tidy_locked(p);
	/* A loop that watches may connect again. */
	loop_ring(&p->ops.loop);
}

/* Gives the connection up when it is dead. Under the lock. */
static void check_status(struct kvpool *p)
{
	const char *why;

	if (!p->rpc || !rpc_status(p->rpc, &why))
		return;
	handle_error(p, 0, "lost the connection to kvpoold: %s; the next call connects again", why);
	hang_up(p);
}

/* Sees whether the connection still stands. Under the lock. */
static void check_link(struct kvpool *p)
{
	if (p->rpc)
		rpc_read(p->rpc);
	check_status(p);
}

/* Another thread connects: waits until it is done. Under the lock. */
static int wait_for_link(struct kvpool *p, uint64_t deadline)
{
	uint64_t now = clock_ns();
	struct timespec t;

	if (now >= deadline)
		return handle_error(p, -ETIMEDOUT,
				    "no connection to kvpoold in time: another thread is "
				    "still connecting");
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = deadline - now + (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(now / NSEC_PER_SEC);
	t.tv_nsec = (long)(now % NSEC_PER_SEC);
	pthread_cond_timedwait(&p->link_changed, &p->lock, &t);
	return 0;
}

/* This thread connects no more: err is what came of it. Under the lock. */
static void end_connecting(struct kvpool *p, int err)
{
	p->connecting = 0;
	if (err < 0 && err != -EINPROGRESS) {
		p->link_error = err;
		p->backoff_ns =
			p->backoff_ns ? MIN(2 * p->backoff_ns, BACKOFF_MAX_NS) : BACKOFF_MIN_NS;
		p->retry_at = clock_ns() + p->backoff_ns;
	}
	pthread_cond_broadcast(&p->link_changed);
	if (p->closed && p->rpc)
		hang_up(p);
}

/* Connects, with the lock, which is given up meanwhile. */
static int connect_now(struct kvpool *p, uint64_t deadline)
{
	int err;

	p->connecting = 1;
	pthread_mutex_unlock(&p->lock);
	err = open_link(p, deadline);
	pthread_mutex_lock(&p->lock);
	end_connecting(p, err);
	loop_ring(&p->ops.loop);
	return err;
}

/* What kvpool_dispatch began to make is given up. Under the lock. */
static void drop_attempt(struct kvpool *p)
{
	if (p->attempt)
		attempt_end(p->attempt);
	free(p->attempt);
	p->attempt = NULL;
}

/* One step towards a connection, under the lock. Returns 0: look again; or why there is none. */
static int step(struct kvpool *p, enum link_effort effort, uint64_t deadline)
{
	if (p->closed)
		return -ENOTCONN;
	if (p->connecting)
		return wait_for_link(p, deadline);
	if (effort == LINK_PATIENT && clock_ns() < p->retry_at)
		return p->link_error;
	/* Nobody knows when its loop would go on with it. */
	drop_attempt(p);
	return connect_now(p, deadline);
}

/* With the current one, under the lock. */
static void ref_link(struct kvpool *p, struct link *ret)
{
	/* It is retired only under the lock. */
	(void)attach_try_get(p->current);
	*ret = (struct link){ rpc_ref(p->rpc), p->current, p->max_keys };
}

static int take_link(struct kvpool *p, enum link_effort effort, uint64_t deadline, struct link *ret)
{
	int err = 0;

	pthread_mutex_lock(&p->lock);
	check_link(p);
	while (!p->rpc && !err)
		err = step(p, effort, deadline);
	if (!err)
		ref_link(p, ret);
	pthread_mutex_unlock(&p->lock);
	return err;
}

int link_peek(struct kvpool *p, struct link *ret)
{
	int err = 0;

	pthread_mutex_lock(&p->lock);
	check_status(p);
	if (p->rpc)
		ref_link(p, ret);
	else
		err = -ENOTCONN;
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* The next step of the one attempt, under the lock, which is given up meanwhile. */
static void step_attempt(struct kvpool *p, uint64_t now)
{
	struct attempt *a = p->attempt;
	int err;

	p->connecting = 1;
	pthread_mutex_unlock(&p->lock);
	err = attempt_step(a);
	if (err == -EINPROGRESS && now >= p->attempt_until)
		err = attempt_time_out(a);
	pthread_mutex_lock(&p->lock);
	if (err != -EINPROGRESS || p->closed)
		drop_attempt(p);
	end_connecting(p, err);
}

/* Goes on connecting, where it is time for that. Under the lock. */
static void connect_further(struct kvpool *p)
{
	uint64_t now = clock_ns();

	if (p->closed || p->connecting || (!p->attempt && now < p->retry_at))
		return;
	if (!p->attempt) {
		p->attempt = malloc(sizeof(*p->attempt));
		if (!p->attempt) {
			end_connecting(p, -ENOMEM);
			return;
		}
		attempt_begin(p->attempt, p);
		p->attempt_until = now + p->timeout_ns;
	}
	step_attempt(p, now);
}

/* What is to be watched while there is no connection. Under the lock. */
static void view_attempt(struct kvpool *p, struct link_view *v)
{
	struct rpc *r = p->attempt ? attempt_rpc(p->attempt) : NULL;

	if (p->closed || p->connecting) /* another thread rings when it is done */
		return;
	v->again = p->retry_at;
	if (p->attempt)
		v->again = r ? p->attempt_until : clock_ns() + ATTEMPT_RETRY_NS;
	if (r)
		v->rpc = rpc_ref(r);
}

void link_attend(struct kvpool *p, struct rpc_port *port, int arrived, struct link_view *ret)
{
	*ret = (struct link_view){ .again = UINT64_MAX };
	pthread_mutex_lock(&p->lock);
	if (p->rpc && arrived)
		ret->busy = rpc_attend(p->rpc, port) == -EBUSY;
	check_status(p);
	if (!p->rpc)
		connect_further(p);
	ret->ns_later = p->rpc && p->ns_later == NS_LATER_LOOK;
	if (p->rpc)
		ret->rpc = rpc_ref(p->rpc);
	else
		view_attempt(p, ret);
	pthread_mutex_unlock(&p->lock);
}

int link_get(struct kvpool *p, enum link_effort effort, uint64_t deadline, struct link *ret)
{
	int err = take_link(p, effort, deadline, ret);

	if (err < 0)
		return err;
	/* A namespace that the daemon does not answer about in time is asked about by the next. */
	err = ns_register_all(p, ret, deadline);
	if (err != -ENOTCONN && err != -EPROTO)
		return 0;
	link_put(p, ret);
	/* It was broken already: as if check_link had seen it. */
	return err == -ENOTCONN ? take_link(p, effort, deadline, ret) : err;
}

int link_failed(struct kvpool *p, struct rpc *r, const char *what, const struct rpc_call *call,
		int err)
{
	const char *why;

	if (rpc_status(r, &why)) {
		handle_error(p, err, "cannot %s: the connection to kvpoold is lost: %s", what, why);
		pthread_mutex_lock(&p->lock);
		if (p->rpc == r)
			hang_up(p);
		pthread_mutex_unlock(&p->lock);
		return err;
	}
	if (err == -ETIMEDOUT)
		return handle_error(p, err,
				    "cannot %s: kvpoold does not answer (is it stopped, or very "
				    "busy?)",
				    what);
	return handle_error(p, err, "cannot %s: kvpoold refuses: %s", what,
			    call->text[0] ? call->text : strerrordesc_np(-err));
}

int link_call(struct kvpool *p, const struct link *l, const char *what, struct rpc_call *call,
	      const ProtobufCMessage *request, uint64_t deadline)
{
	int err = rpc_call(l->rpc, call, request, deadline);

	return err < 0 ? link_failed(p, l->rpc, what, call, err) : 0;
}

void link_close(struct kvpool *p)
{
	Kvpool__Bye bye = KVPOOL__BYE__INIT;

	if (handle_is_forked(p)) {
		rpc_forget(p->rpc);
		p->rpc = NULL;
		drop_attempt(p);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->closed = 1;
	if (!p->connecting)
		drop_attempt(p);
	if (p->rpc) {
		rpc_post(p->rpc, OP_BYE, &bye.base);
		rpc_close(p->rpc, -ENOTCONN, "the pool was closed");
		hang_up(p);
	} else if (p->current) {
		attach_retire(p->current);
		store_relaxed(&p->current, NULL);
		handle_tidy_locked(p);
	}
	pthread_mutex_unlock(&p->lock);
}
