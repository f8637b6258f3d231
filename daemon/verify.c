/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/request.h"
#include "daemon/verify.h"
#include "kernels/crc32c.h"

/*
 * Lives on when its session ends: the pool has pinned the block until it is told. The session is
 * named by its number.
 */
struct verify {
	struct list link; /* domain->verifies */
	struct job job;
	struct domain *domain;
	uint64_t session, id; /* who asked, and the request */
	uint32_t desc;
	uint64_t gen;
	const unsigned char *data;
	uint64_t bytes;
	uint32_t expected, computed;
};

static void verify_run(struct job *j)
{
	struct verify *v = container_of(j, struct verify, job);

	v->computed = crc32c(0, v->data, v->bytes);
}

static void verify_answer(const struct verify *v, int doomed)
{
	struct session *s = domain_find(v->domain, v->session);
	Kvpool__ReportReply reply = KVPOOL__REPORT_REPLY__INIT;

	if (!s)
		return;
	s->n_reports--;
	reply.doomed = doomed;
	session_reply(s, OP_REPORT, v->id, &reply.base);
}

static void verify_done(struct job *j)
{
	struct verify *v = container_of(j, struct verify, job);
	struct domain *d = v->domain;
	int wrong = v->computed != v->expected;
	int doomed = pool_verify_done(d->pool, v->desc, v->gen, wrong, clock_ns());

	d->changed = 1;
	if (doomed)
		log_line(LOG_WARNING,
			 "a block has other bytes than were committed: dropped with what is below "
			 "it",
			 LOG_NUMBER("desc", v->desc), LOG_NUMBER("bytes", v->bytes));
	verify_answer(v, doomed);
	list_del(&v->link);
	free(v);
}

static struct verify *verify_new(struct request *rq, uint32_t desc, uint64_t gen)
{
	struct verify *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->domain = rq->domain;
	v->session = rq->session->number;
	v->id = rq->head.id;
	v->desc = desc;
	v->gen = gen;
	v->job.run = verify_run;
	v->job.done = verify_done;
	list_init(&v->job.link);
	list_add_tail(&rq->domain->verifies, &v->link);
	return v;
}

static void verify_free(struct verify *v)
{
	list_del(&v->link);
	free(v);
}

/* Returns what pool_pin_for_verify says; on 0 the answer comes later. */
static int verify_start(struct verify *v)
{
	struct domain *d = v->domain;
	uint64_t offset;
	int r = pool_pin_for_verify(d->pool, v->desc, v->gen, &offset, &v->bytes, &v->expected);

	if (r < 0)
		return r;
	v->data = (const unsigned char *)d->hostmem->base + offset;
	worker_submit(d->worker, &v->job);
	return 0;
}

static void report_fail_limit(struct request *rq)
{
	request_fail(rq, ERROR_LIMIT, NULL,
		     "too many checksums are being computed: report the block again later");
}

void handler_report(struct request *rq)
{
	const Kvpool__Report *m = rq->msg;
	Kvpool__ReportReply reply = KVPOOL__REPORT_REPLY__INIT;
	struct verify *v;
	int r;

	rq->domain->counts.reports++;
	if (rq->session->n_reports == SESSION_REPORTS) {
		report_fail_limit(rq);
		return;
	}
	v = verify_new(rq, m->desc, m->gen);
	if (!v) {
		session_doom(rq->session, REASON_KICKED, "out of memory");
		return;
	}
	r = verify_start(v);
	if (r == 0) {
		rq->session->n_reports++;
		return;
	}
	verify_free(v);
	if (r == -ENOENT) /* it is gone already: nothing to doom */
		request_reply(rq, &reply.base);
	else
		report_fail_limit(rq);
}

void verify_free_all(struct domain *d)
{
	while (!list_empty(&d->verifies))
		verify_free(list_first(&d->verifies, struct verify, link));
}
