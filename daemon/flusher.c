/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/parse.h"
#include "daemon/flusher.h"
#include "daemon/log.h"
#include "daemon/request.h"

/* Digits of a fingerprint that may stand for a namespace: fewer are a name, or a slip. */
#define FLUSHER_DIGITS_MIN 6u

struct flusher {
	struct session *session;
	uint64_t id; /* of the request */
	int dry_run;
	char name[NSDESC_TEXT_MAX + 1]; /* empty: all */
	sd_event_source *source;
	uint32_t ns;              /* the next one to look at */
	int begun;                /* it matches, and part is the sum of its steps */
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

/* By model, by number, or by the first digits of the fingerprint. */
static int flusher_matches(const struct flusher *f, uint32_t ns, const struct pool_ns_stats *stats)
{
	char hex[2 * KEY_BYTES + 1];
	size_t n = strlen(f->name);
	const char *why;
	uint64_t number;

	if (!n || !strcmp(f->name, stats->model))
		return 1;
	if (parse_count(f->name, 0, UINT32_MAX, &number, &why) == 0 && number == ns)
		return 1;
	hex_encode(stats->seed, KEY_BYTES, hex);
	return n >= FLUSHER_DIGITS_MIN && !strncmp(hex, f->name, n);
}

/* Goes on to the next namespace that is meant. Returns 0 when there is none. */
static int flusher_begin(struct flusher *f)
{
	struct pool *p = f->session->domain->pool;
	struct pool_ns_stats stats;

	for (; f->ns < pool_control(p)->max_namespaces; f->ns++)
		if (pool_ns_get_stats(p, f->ns, &stats) == 0 && flusher_matches(f, f->ns, &stats)) {
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
	session_reply(f->session, OP_FLUSH, f->id, &reply.base);
}

/* The answer, and the end of f. A name that nothing has is an error; nothing to flush is none. */
static void flusher_answer(struct flusher *f)
{
	struct session *s = f->session;

	if (!f->matched && *f->name) {
		session_error(s, OP_FLUSH, f->id, ERROR_NO_NAMESPACE, "namespace",
			      "no namespace has this number, model or beginning of a fingerprint "
			      "(6 digits at least):"
			      " see kvpoolctl namespaces");
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
