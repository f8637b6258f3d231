/* SPDX-License-Identifier: Apache-2.0 */
/* What clients know of the future. */
#include "base/clock.h"
#include "daemon/request.h"
#include "daemon/touches.h"

/* What is wrong with a hint, or NULL. */
static const char *hint_wrong(const Kvpool__Hint *m)
{
	if (m->ended && (m->reuse_s || m->priority))
		return "hint: what ended has neither a next use nor a priority";
	if (!m->ended && !m->reuse_s && !m->priority)
		return "hint: it says nothing: give reuse_s, priority or ended";
	return NULL;
}

void handler_hint(struct request *rq)
{
	const Kvpool__Hint *m = rq->msg;
	Kvpool__HintReply reply = KVPOOL__HINT_REPLY__INIT;
	const struct pool_hint hint = {
		.reuse_ns = m->reuse_s * NSEC_PER_SEC,
		.priority = m->priority,
		.ended = m->ended,
	};
	const char *wrong = hint_wrong(m);
	uint32_t n;

	if (wrong) {
		request_fail(rq, ERROR_BAD_FIELD, "ended", "%s", wrong);
		return;
	}
	if (!request_ns(rq, m->ns))
		return;
	/* What it used before it said so was before. */
	touches_drain(rq->session, rq->now);
	reply.blocks =
		pool_hint(rq->domain->pool, m->ns, request_keys(&m->key, &n), &hint, rq->now);
	rq->domain->counts.hints++;
	rq->domain->changed = 1;
	request_reply(rq, &reply.base);
}
