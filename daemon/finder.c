/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/find_id.h"
#include "daemon/finder.h"

struct finder {
	struct session *session;
	struct find_id find;
	sd_event_source *source;
	/* What asks, as it came: a message lives no longer than its handler. */
	struct frame_header head;
	const struct proto_op_info *op;
	void (*handler)(struct request *rq);
	size_t n;
	uint8_t body[];
};

struct finder *finder_free(struct finder *f)
{
	if (!f)
		return NULL;
	sd_event_source_disable_unref(f->source);
	free(f);
	return NULL;
}

/* The handler again. It may end the session, but not free it. */
static void finder_again(struct finder *f)
{
	struct session *s = f->session;
	struct request rq = {
		.session = s,
		.domain = s->domain,
		.head = f->head,
		.op = f->op,
		.handler = f->handler,
		.found = &f->find,
		.now = clock_ns(),
	};

	rq.msg = codec_unpack(&s->domain->arena, f->op->request, f->body, f->n);
	s->finder = NULL;
	f->handler(&rq);
	finder_free(f);
}

static int finder_on_step(sd_event_source *source, void *ctx)
{
	struct finder *f = ctx;

	if (!find_id_step(&f->find, f->session->domain->pool))
		finder_again(f);
	return 0;
}

static struct finder *finder_new(struct request *rq, const struct find_id *find)
{
	size_t n = protobuf_c_message_get_packed_size(rq->msg);
	struct finder *f = malloc(sizeof(*f) + n);
	int r;

	if (!f)
		return NULL;
	*f = (struct finder){
		.session = rq->session,
		.find = *find,
		.head = rq->head,
		.op = rq->op,
		.handler = rq->handler,
		.n = protobuf_c_message_pack(rq->msg, f->body),
	};
	r = sd_event_add_defer(rq->domain->event, &f->source, finder_on_step, f);
	if (r >= 0)
		r = sd_event_source_set_enabled(f->source, SD_EVENT_ON);
	return r < 0 ? finder_free(f) : f;
}

static void finder_start(struct request *rq, uint32_t ns, const char *id)
{
	struct find_id find;

	if (find_id_init(&find, ns, id) < 0) {
		request_fail(rq, ERROR_BAD_FIELD, "id",
			     "\"%s\" is no id: give the first of its hex digits, as kvpoolctl "
			     "prefixes shows them",
			     id);
		return;
	}
	if (rq->session->finder) {
		request_fail(rq, ERROR_LIMIT, NULL,
			     "a search of this connection is under way: wait for its answer");
		return;
	}
	rq->session->finder = finder_new(rq, &find);
	if (!rq->session->finder)
		session_doom(rq->session, REASON_KICKED, "out of memory");
}

int finder_find(struct request *rq, uint32_t ns, const char *id, uint32_t *ret_desc)
{
	if (!rq->found) {
		finder_start(rq, ns, id);
		return 0;
	}
	if (rq->found->found > 1) {
		request_fail(rq, ERROR_AMBIGUOUS, "id",
			     "several cached blocks have an id that begins with \"%s\": give more "
			     "digits",
			     id);
		return 0;
	}
	if (!find_id_is_there(rq->found, rq->domain->pool)) {
		request_fail(rq, ERROR_NO_OBJECT, "id",
			     "no cached block has an id that begins with \"%s\": see kvpoolctl "
			     "prefixes",
			     id);
		return 0;
	}
	*ret_desc = rq->found->desc;
	return 1;
}
