/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/request.h"
#include "daemon/wait.h"

/* Part of its session; what it waits for is told by the pool. */
struct wait {
	struct list link; /* session->waits */
	struct pool_waiter waiter;
	struct session *session;
	uint64_t id; /* of the request */
	sd_event_source *timer;
	struct block_key keys[];
};

static void wait_free(struct wait *w)
{
	pool_wait_cancel(&w->waiter);
	sd_event_source_disable_unref(w->timer);
	list_del(&w->link);
	w->session->n_waits--;
	w->session->n_wait_keys -= w->waiter.n_keys;
	free(w);
}

static void wait_answer(struct session *s, uint64_t id, uint32_t present, int timed_out)
{
	Kvpool__WaitReply reply = KVPOOL__WAIT_REPLY__INIT;

	reply.present = present;
	reply.timed_out = timed_out;
	session_reply(s, OP_WAIT, id, &reply.base);
}

void wait_wake(struct pool_waiter *waiter, uint32_t present)
{
	struct wait *w = container_of(waiter, struct wait, waiter);
	struct session *s = w->session;
	uint64_t id = w->id;

	wait_free(w);
	s->domain->counts.waits_served++;
	wait_answer(s, id, present, 0);
}

/* With what is there by now. */
static void wait_end(struct wait *w)
{
	struct session *s = w->session;
	uint64_t id = w->id;
	uint32_t present =
		pool_present(s->domain->pool, w->waiter.ns, w->waiter.keys, w->waiter.n_keys);

	wait_free(w);
	wait_answer(s, id, present, 1);
}

static int wait_on_time(sd_event_source *source, uint64_t usec, void *data)
{
	struct wait *w = data;

	w->session->domain->counts.waits_timed_out++;
	wait_end(w);
	return 0;
}

static struct wait *wait_new(struct request *rq, uint32_t ns, const struct block_key *keys,
			     uint32_t n)
{
	struct wait *w = malloc(sizeof(*w) + n * sizeof(*keys));

	if (!w)
		return NULL;
	w->session = rq->session;
	w->id = rq->head.id;
	w->timer = NULL;
	memcpy(w->keys, keys, n * sizeof(*keys));
	pool_waiter_init(&w->waiter);
	w->waiter.ns = ns;
	w->waiter.keys = w->keys;
	w->waiter.n_keys = n;
	list_add_tail(&rq->session->waits, &w->link);
	rq->session->n_waits++;
	rq->session->n_wait_keys += n;
	return w;
}

static void wait_start(struct request *rq, struct wait *w, uint32_t timeout_ms)
{
	struct domain *d = rq->domain;
	uint64_t until = (rq->now + timeout_ms * NSEC_PER_MSEC) / NSEC_PER_USEC;
	uint32_t present;

	if (!pool_wait(d->pool, &w->waiter, &present)) {
		wait_free(w);
		wait_answer(rq->session, rq->head.id, present, 0);
		return;
	}
	d->counts.waits++;
	if (sd_event_add_time(d->event, &w->timer, CLOCK_BOOTTIME, until, 1000, wait_on_time, w) >=
	    0)
		return;
	wait_free(w);
	session_doom(rq->session, REASON_KICKED, "out of memory");
}

void handler_wait(struct request *rq)
{
	const Kvpool__Wait *m = rq->msg;
	struct session *s = rq->session;
	uint32_t n;
	const struct block_key *keys = request_keys(&m->keys, &n);
	struct wait *w;

	if (!request_ns(rq, m->ns))
		return;
	if (s->n_waits == SESSION_WAITS || s->n_wait_keys + n > SESSION_WAIT_KEYS) {
		request_fail(rq, ERROR_LIMIT, NULL,
			     "this client waits for too much already: end a wait, or compute the "
			     "blocks instead");
		return;
	}
	w = wait_new(rq, m->ns, keys, n);
	if (w)
		wait_start(rq, w, m->timeout_ms);
	else
		session_doom(s, REASON_KICKED, "out of memory");
}

static struct wait *wait_find(const struct session *s, uint64_t id)
{
	struct wait *w;

	list_for_each(w, &s->waits, link)
		if (w->id == id)
			return w;
	return NULL;
}

/* Each request has its answer: the one to the wait comes first. */
void handler_unwait(struct request *rq)
{
	const Kvpool__Unwait *m = rq->msg;
	Kvpool__UnwaitReply reply = KVPOOL__UNWAIT_REPLY__INIT;
	struct wait *w = wait_find(rq->session, m->id);

	reply.ended = w != NULL;
	if (w)
		wait_end(w);
	request_reply(rq, &reply.base);
}

void wait_end_all(struct session *s)
{
	while (!list_empty(&s->waits))
		wait_free(list_first(&s->waits, struct wait, link));
}
