/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/dispatch.h"
#include "daemon/log.h"
#include "daemon/request.h"
#include "proto/text.h"

/* Who runs an operation, and for whom: the states of a session in which it may be asked for. */
struct operation {
	enum proto_op op;
	unsigned int states;
	void (*handler)(struct request *rq);
};

static const struct operation operations[] = {
	{ OP_HELLO, SESSION_NEW, handler_hello },
	{ OP_NS_OPEN, SESSION_READY, handler_ns_open },
	{ OP_RESERVE, SESSION_READY, handler_reserve },
	{ OP_COMMIT, SESSION_READY, handler_commit },
	{ OP_ABORT, SESSION_READY, handler_abort },
	{ OP_WAIT, SESSION_READY, handler_wait },
	{ OP_TOUCH, SESSION_READY, handler_touch },
	{ OP_LOCATE, SESSION_READY, handler_locate },
	{ OP_REPORT, SESSION_READY, handler_report },
	{ OP_PING, SESSION_READY | SESSION_ADMIN, handler_ping },
	{ OP_BYE, SESSION_READY, handler_bye },
	{ OP_NS_CLOSE, SESSION_READY, handler_ns_close },
	{ OP_HINT, SESSION_READY, handler_hint },
	{ OP_UNWAIT, SESSION_READY, handler_unwait },
	{ OP_VERSION, SESSION_ADMIN, handler_version },
	{ OP_STATUS, SESSION_ADMIN, handler_status },
	{ OP_NAMESPACES, SESSION_ADMIN, handler_namespaces },
	{ OP_CLIENTS, SESSION_ADMIN, handler_clients },
	{ OP_FLUSH, SESSION_ADMIN, handler_flush },
	{ OP_RESIZE, SESSION_ADMIN, handler_resize },
	{ OP_STATS_RESET, SESSION_ADMIN, handler_stats_reset },
	{ OP_KICK, SESSION_ADMIN, handler_kick },
	{ OP_PIN, SESSION_ADMIN, handler_pin },
	{ OP_UNPIN, SESSION_ADMIN, handler_unpin },
	{ OP_PINS, SESSION_ADMIN, handler_pins },
	{ OP_PREFIXES, SESSION_ADMIN, handler_prefixes },
	{ OP_EXPLAIN, SESSION_ADMIN, handler_explain },
	{ OP_REQUESTS, SESSION_ADMIN, handler_requests },
	{ OP_CONFIG, SESSION_ADMIN, handler_config },
	{ OP_CONFIG_SET, SESSION_ADMIN, handler_config_set },
	{ OP_RELOAD, SESSION_ADMIN, handler_reload },
	{ OP_LOG_LEVEL, SESSION_ADMIN, handler_log_level },
};

static const struct operation *operation_find(enum proto_op op)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (operations[i].op == op)
			return &operations[i];
	return NULL;
}

void request_reply(struct request *rq, const ProtobufCMessage *m)
{
	session_reply(rq->session, rq->op->op, rq->head.id, m);
}

void request_fail(struct request *rq, enum proto_error code, const char *field, const char *format,
		  ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	text_clean(text); /* perhaps cut within a character */
	session_error(rq->session, (enum proto_op)rq->head.op, rq->head.id, code, field, text);
}

int request_ns(struct request *rq, uint32_t ns)
{
	if (session_has_ns(rq->session, ns))
		return 1;
	request_fail(rq, ERROR_NO_NAMESPACE, "ns",
		     "namespace %u is not open in this session: open it first", ns);
	return 0;
}

static void dispatch_wrong_state(struct request *rq)
{
	switch (rq->session->state) {
	case SESSION_NEW:
		if (rq->op->admin)
			break;
		request_fail(rq, ERROR_BAD_STATE, NULL, "%s before hello: say hello first",
			     rq->op->name);
		return;
	case SESSION_READY:
		if (rq->op->admin)
			break;
		request_fail(rq, ERROR_BAD_STATE, NULL, "%s in a session that has said hello",
			     rq->op->name);
		return;
	default:
		request_fail(rq, ERROR_DENIED, NULL,
			     "%s is for the clients' socket, and this is the admin socket",
			     rq->op->name);
		return;
	}
	request_fail(rq, ERROR_DENIED, NULL, "%s is for the admin socket: ask there", rq->op->name);
}

static void dispatch_message(struct request *rq, const struct operation *o, const void *body,
			     size_t n)
{
	const char *field, *why;

	rq->msg = codec_unpack(&rq->domain->arena, rq->op->request, body, n);
	if (!rq->msg) {
		request_fail(rq, ERROR_BAD_MESSAGE, NULL, "%s: the message does not unpack",
			     rq->op->name);
		return;
	}
	if (proto_check(rq->op, rq->msg, &field, &why) < 0) {
		request_fail(rq, ERROR_BAD_FIELD, field, "%s: field %s %s", rq->op->name, field,
			     why);
		return;
	}
	rq->handler = o->handler;
	rq->handler(rq);
}

static void dispatch_request(struct request *rq, const void *body, size_t n)
{
	const struct operation *o;

	rq->op = proto_op_find(rq->head.op);
	o = rq->op ? operation_find(rq->op->op) : NULL;
	if (!o) {
		request_fail(rq, ERROR_UNKNOWN_OP, NULL,
			     "operation %u is not known to this daemon, version %s", rq->head.op,
			     KVPOOL_VERSION);
		return;
	}
	if (!(o->states & rq->session->state)) {
		dispatch_wrong_state(rq);
		return;
	}
	dispatch_message(rq, o, body, n);
}

/* What is wrong with the frame as a request; NULL when it is one. */
static const char *dispatch_parse(const void *packet, size_t n, struct frame_header *ret)
{
	const char *wrong = frame_parse(packet, n, ret);

	if (wrong)
		return wrong;
	if (ret->flags)
		return "is a reply, and this end asked for nothing";
	return ret->id ? NULL : "has the number 0, which is for what nobody asked for";
}

void dispatch_packet(struct session *s, const void *packet, size_t n)
{
	struct request rq = { .session = s, .domain = s->domain, .now = clock_ns() };
	const char *wrong = dispatch_parse(packet, n, &rq.head);

	if (wrong) {
		char text[128];

		snprintf(text, sizeof(text), "the packet %s: the connection ends", wrong);
		session_error(s, 0, 0, ERROR_BAD_FRAME, NULL, text);
		session_doom(s, REASON_PROTOCOL, wrong);
		return;
	}
	s->active = rq.now;
	dispatch_request(&rq, (const char *)packet + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES);
}
