/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator does to clients. */
#include "daemon/leases.h"
#include "daemon/log.h"
#include "daemon/request.h"

/* A client that has said hello and has not ended. */
static struct session *kick_find(struct request *rq, uint64_t number)
{
	struct session *s = domain_find(rq->domain, number);

	if (s && s->state == SESSION_READY && !s->reason)
		return s;
	request_fail(rq, ERROR_NO_OBJECT, "session",
		     "no connected client has the number %llu: see kvpoolctl clients",
		     (unsigned long long)number);
	return NULL;
}

/*
 * Its requests end with this round, as if it had hung up; what it reads stays until it lets go. Its
 * library connects again when it needs the daemon next.
 */
void handler_kick(struct request *rq)
{
	const Kvpool__Kick *m = rq->msg;
	Kvpool__KickReply reply = KVPOOL__KICK_REPLY__INIT;
	struct session *s = kick_find(rq, m->session);
	struct leases leases;

	if (!s)
		return;
	leases_count(pool_control(rq->domain->pool), &s->region->map, &rq->domain->leased, &leases);
	reply.name = s->name;
	reply.pid = (uint32_t)s->peer.pid;
	reply.leases = leases.words;
	log_line(LOG_NOTICE, "kicked a client", LOG_NUMBER("session", s->number),
		 LOG_NUMBER("client_uid", rq->session->peer.uid),
		 LOG_NUMBER("leases", leases.words));
	session_doom(s, REASON_KICKED, "by an operator");
	request_reply(rq, &reply.base);
}
