/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of a session. */
#include <string.h>

#include "daemon/log.h"
#include "daemon/request.h"

static int hello_check_version(struct request *rq, const Kvpool__Hello *m)
{
	if (m->protocol_min > m->protocol_max) {
		request_fail(rq, ERROR_BAD_FIELD, "protocol_max",
			     "hello: protocol_max %u is below protocol_min %u", m->protocol_max,
			     m->protocol_min);
		return -1;
	}
	if (m->protocol_min > PROTOCOL_MAX || m->protocol_max < PROTOCOL_MIN) {
		request_fail(rq, ERROR_VERSION, "protocol_max",
			     "the client speaks protocol %u to %u, kvpoold %s speaks %u to %u: "
			     "bring both to one version",
			     m->protocol_min, m->protocol_max, KVPOOL_VERSION, PROTOCOL_MIN,
			     PROTOCOL_MAX);
		return -1;
	}
	if (m->layout != LAYOUT_VERSION) {
		request_fail(rq, ERROR_VERSION, "layout",
			     "the client reads layout %u of shared memory, kvpoold %s writes %u: "
			     "bring both to one version",
			     m->layout, KVPOOL_VERSION, LAYOUT_VERSION);
		return -1;
	}
	return 0;
}

/* As many as asked for, as long as a scan of everybody's stays short: else half of what is left. */
static uint32_t hello_hazards(const struct domain *d, uint32_t asked)
{
	uint32_t left = d->hazards < DOMAIN_HAZARDS ? DOMAIN_HAZARDS - d->hazards : 0;
	uint32_t n = MIN(asked, left / 2);

	return MIN(MAX(n, REGION_HAZARDS_MIN), REGION_HAZARDS_MAX);
}

static void hello_reply(struct request *rq)
{
	struct session *s = rq->session;
	struct pool *p = rq->domain->pool;
	const int fds[] = { pool_control_fd(p), pool_memory_fd(p), s->region->client_fd };
	Kvpool__HelloReply reply = KVPOOL__HELLO_REPLY__INIT;

	reply.protocol = PROTOCOL_MAX;
	reply.daemon = (char *)KVPOOL_VERSION;
	reply.session = s->number;
	reply.domain = (char *)rq->domain->cfg.name;
	reply.control_bytes = pool_control_bytes(p);
	reply.pool_bytes = pool_memory_bytes(p);
	reply.region_bytes = s->region->size;
	reply.pool_writable = 1;
	reply.max_keys = FRAME_KEYS_MAX;
	reply.features = FEATURE_UNNAMED | FEATURE_HINT | FEATURE_UNWAIT;
	session_send(s, OP_HELLO, FRAME_REPLY, rq->head.id, &reply.base, fds, ARRAY_SIZE(fds));
}

void handler_hello(struct request *rq)
{
	const Kvpool__Hello *m = rq->msg;
	struct session *s = rq->session;
	struct domain *d = rq->domain;
	struct region *region;
	int r;

	if (hello_check_version(rq, m) < 0)
		return;
	r = region_new(d->event, s->number, hello_hazards(d, m->hazards), &region);
	if (r < 0) {
		log_line(LOG_ERR, "cannot make the region of a client",
			 LOG_NUMBER("client_pid", s->peer.pid), LOG_ERRNO(r));
		request_fail(rq, ERROR_INTERNAL, NULL,
			     "no memory or descriptors for another session: try later");
		return;
	}
	d->hazards += region->map.hazard_count;
	session_ready(s, region);
	strcpy(s->name, m->name);
	strcpy(s->library, m->library);
	log_line(LOG_INFO, "client connected", LOG_NUMBER("session", s->number),
		 LOG_TEXT("client", *s->name ? s->name : NULL),
		 LOG_NUMBER("client_pid", s->peer.pid), LOG_NUMBER("client_uid", s->peer.uid),
		 LOG_TEXT("domain", d->cfg.name),
		 LOG_TEXT("library", *s->library ? s->library : NULL));
	hello_reply(rq);
}

void handler_ping(struct request *rq)
{
	Kvpool__PingReply reply = KVPOOL__PING_REPLY__INIT;

	reply.uptime_ns = rq->now - rq->domain->started;
	request_reply(rq, &reply.base);
}

void handler_bye(struct request *rq)
{
	Kvpool__ByeReply reply = KVPOOL__BYE_REPLY__INIT;

	/* First: a client that does not wait for the answer has hung up by now. */
	session_doom(rq->session, REASON_CLEAN, NULL);
	request_reply(rq, &reply.base);
}
