/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request while its handler runs, and the handlers.
 *
 * The frame was sound, the operation is known and allowed in this state, the message is unpacked
 * and its fields passed the table of proto/check.h. A handler answers once: with request_reply or
 * request_fail, or later with session_reply and rq->head.id. What msg points to ends with the
 * handler.
 */
#ifndef KVP_DAEMON_REQUEST_H
#define KVP_DAEMON_REQUEST_H

#include "daemon/domain.h"
#include "proto/kvpool.pb-c.h"

struct find_id;

struct request {
	struct session *session;
	struct domain *domain;
	struct frame_header head;
	const struct proto_op_info *op;
	void (*handler)(struct request *rq);
	const void *msg; /* the unpacked message of op->request */
	const struct find_id *found; /* the second time: what daemon/finder.h found */
	uint64_t now;
};

void request_reply(struct request *rq, const ProtobufCMessage *m);

/* field may be NULL. The text names the object, the cause and the next step. */
void request_fail(struct request *rq, enum proto_error code, const char *field, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

/*
 * The namespace of a request that this session has opened. Returns 1; otherwise answers with an
 * error and returns 0.
 */
int request_ns(struct request *rq, uint32_t ns);

/* Keys of a message, which the arena has aligned. */
static inline const struct block_key *request_keys(const ProtobufCBinaryData *b, uint32_t *ret_n)
{
	*ret_n = (uint32_t)(b->len / sizeof(struct block_key));
	return (const struct block_key *)(const void *)b->data;
}

void handler_hello(struct request *rq);
void handler_ping(struct request *rq);
void handler_bye(struct request *rq);

void handler_ns_open(struct request *rq);
void handler_ns_close(struct request *rq);

void handler_reserve(struct request *rq);
void handler_commit(struct request *rq);
void handler_abort(struct request *rq);
void handler_touch(struct request *rq);
void handler_locate(struct request *rq);
void handler_hint(struct request *rq);

void handler_wait(struct request *rq);
void handler_unwait(struct request *rq);
void handler_report(struct request *rq);

void handler_version(struct request *rq);
void handler_status(struct request *rq);
void handler_namespaces(struct request *rq);
void handler_clients(struct request *rq);
void handler_flush(struct request *rq);
void handler_resize(struct request *rq);
void handler_stats_reset(struct request *rq);
void handler_kick(struct request *rq);
void handler_pin(struct request *rq);
void handler_unpin(struct request *rq);
void handler_pins(struct request *rq);

void handler_prefixes(struct request *rq);
void handler_explain(struct request *rq);
void handler_requests(struct request *rq);
void handler_config(struct request *rq);
void handler_config_set(struct request *rq);
void handler_reload(struct request *rq);
void handler_log_level(struct request *rq);

#endif
