/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/find_ns.h"
#include "daemon/flusher.h"
#include "daemon/log.h"
#include "daemon/request.h"

struct flusher {
	struct session *session;
	uint64_t id; /* of the request */
	int dry_run;
	char name[NSDESC_TEXT_MAX + 1]; /* empty: all */
	sd_event_source *source;
	uint32_t ns; /* the next one to look at */
	int begun;   /* it matches, and part is the sum of its steps */
	struct pool_flushed part;
	struct pool_flushed sum;
	uint32_t matched;
};

struct flusher *flusher_free(struct flusher *f)
{
	if (!f)
		return NULL;
	f->session->domain->flushing--;
	sd_event_source_disable_unref(f->source);
	free(f);
	return NULL;
}

/* Goes on to the next namespace that is meant. Returns 0 when there is none. */
static int flusher_begin(struct flusher *f)
{
	struct pool *p = f->session->domain->pool;

	for (; f->ns < pool_control(p)->max_namespaces; f->ns++)
		if (find_ns_matches(p, f->ns, f->name)) {
			f->begun = 1;
			f->matched++;
			memset(&f->part, 0, sizeof(f->part));
			return 1;
		}
	return 0;
}

static void flusher_add(struct flusher *f)
{
	f->sum.freed_blocks += f->part.freed_blocks;
	f->sum.freed_bytes += f->part.freed_bytes;
	f->sum.kept_blocks += f->part.kept_blocks;
	f->sum.voided_blocks += f->part.voided_blocks;
	f->sum.dropped_pins += f->part.dropped_pins;
	f->begun = 0;
	f->ns++;
}

static void flusher_log(const struct flusher *f)
{
	log_line(LOG_NOTICE, "flushed", LOG_TEXT("namespace", *f->name ? f->name : NULL),
		 LOG_NUMBER("client_uid", f->session->peer.uid),
		 LOG_NUMBER("namespaces", f->matched), LOG_NUMBER("blocks", f->sum.freed_blocks),
		 LOG_NUMBER("bytes", f->sum.freed_bytes), LOG_NUMBER("kept", f->sum.kept_blocks));
}

static void flusher_reply(struct flusher *f)
{
	Kvpool__FlushReply reply = KVPOOL__FLUSH_REPLY__INIT;

	reply.namespaces = f->matched;
	reply.freed_blocks = f->sum.freed_blocks;
	reply.freed_bytes = f->sum.freed_bytes;
	reply.kept_blocks = f->sum.kept_blocks;
	reply.voided_blocks = f->sum.voided_blocks;
	reply.dropped_pins = f->sum.dropped_pins;
	session_reply(f->session, OP_FLUSH, f->id, &reply.base);
}

/* The answer, and the end of f. A name that nothing has is an error; nothing to flush is none. */
static void flusher_answer(struct flusher *f)
{
	struct session *s = f->session;

	if (!f->matched && *f->name) {
		session_error(s, OP_FLUSH, f->id, ERROR_NO_OBJECT, "namespace", FIND_NS_NONE);
	} else {
		if (!f->dry_run)
			flusher_log(f);
		flusher_reply(f);
	}
	s->flush = flusher_free(f);
}

static int flusher_on_step(sd_event_source *source, void *ctx)
{
	struct flusher *f = ctx;
	struct domain *d = f->session->domain;

	if (!f->begun && !flusher_begin(f)) {
		flusher_answer(f);
		return 0;
	}
	d->changed = 1;
	/* Also when it was closed since it was begun. */
	if (pool_flush(d->pool, f->ns, f->dry_run, clock_ns(), &f->part) != 1)
		flusher_add(f);
	return 0;
}

static int flusher_new(struct request *rq, const Kvpool__Flush *m)
{
	struct flusher *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->session = rq->session;
	f->id = rq->head.id;
	f->dry_run = m->dry_run;
	strcpy(f->name, m->namespace_);
	rq->domain->flushing++;
	r = sd_event_add_defer(rq->domain->event, &f->source, flusher_on_step, f);
	if (r >= 0)
		r = sd_event_source_set_enabled(f->source, SD_EVENT_ON);
	if (r < 0) {
		flusher_free(f);
		return r;
	}
	rq->session->flush = f;
	return 0;
}

void handler_flush(struct request *rq)
{
	if (rq->session->flush)
		request_fail(rq, ERROR_LIMIT, NULL,
			     "a flush of this connection is under way: wait for its answer");
	else if (flusher_new(rq, rq->msg) < 0)
		session_doom(rq->session, REASON_KICKED, "out of memory");
}
