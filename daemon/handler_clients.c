/* SPDX-License-Identifier: Apache-2.0 */
/* Clients, as an operator sees them and ends them. */
#include "base/clock.h"
#include "daemon/leases.h"
#include "daemon/log.h"
#include "daemon/request.h"

/* An item has at most some 970 bytes, with a model name of the longest kind. */
#define CLIENTS_PAGE 64u

static_assert(CLIENTS_PAGE * 1000 < FRAME_MAX, "a page of a list fits a packet");

/* A client that did nothing for this long is idle. */
#define CLIENTS_IDLE_NS (5 * NSEC_PER_SEC)

static const char *client_state(const struct session *s, uint64_t now)
{
	if (s->state == SESSION_DRAINING)
		return "draining";
	return now - s->active < CLIENTS_IDLE_NS ? "active" : "idle";
}

/* The model of the namespace that it opened last, in the pool's memory. */
static const char *client_model(const struct session *s)
{
	return s->n_ns ? pool_ns_model(s->domain->pool, s->ns[s->n_ns - 1]) : NULL;
}

/* An item of a list, and the numbers that are read for it. */
struct client_row {
	Kvpool__ClientItem item;
	struct usage usage;
};

static void client_region(struct session *s, struct client_row *row)
{
	Kvpool__ClientItem *item = &row->item;
	struct leases leases;
	struct usage *u = &row->usage;

	leases_count(pool_control(s->domain->pool), &s->region->map, &s->domain->leased, &leases);
	account_read(&s->account, &s->region->map, u);
	item->leases = leases.words;
	item->leased_bytes = leases.bytes;
	item->lookups = u->lookups;
	item->asked_tokens = u->asked;
	item->hit_tokens = u->hit;
	item->shared_tokens = u->shared;
	item->miss_reasons = u->reasons;
	item->n_miss_reasons = USAGE_REASONS;
}

static void client_writes(const struct session *s, Kvpool__ClientItem *item)
{
	const struct pool_owner *o = &s->owner;

	item->writing_blocks = (uint64_t)o->n_reserved + o->n_unnamed;
	item->unnamed_blocks = o->n_unnamed;
	item->unnamed_bytes = o->unnamed_bytes;
	item->cached_blocks = o->cached_blocks;
	item->cached_bytes = o->cached_bytes;
	item->quota_bytes = pool_owner_limit(s->domain->pool);
	pool_owner_extents(s->domain->pool, o, &item->extents, &item->extent_bytes);
}

static void client_row(struct session *s, uint64_t now, struct client_row *row)
{
	Kvpool__ClientItem *item = &row->item;
	const char *model = client_model(s);

	kvpool__client_item__init(item);
	item->session = s->number;
	item->waits = s->n_waits;
	item->name = s->name;
	item->pid = (uint32_t)s->peer.pid;
	item->uid = s->peer.uid;
	item->connected_ns = now - s->connected;
	client_writes(s, item);
	item->state = (char *)client_state(s, now);
	item->library = s->library;
	if (model)
		item->namespace_ = (char *)model;
	if (s->region)
		client_region(s, row);
}

/* The cursor is the number of the last session that was listed. */
void handler_clients(struct request *rq)
{
	const Kvpool__Clients *m = rq->msg;
	Kvpool__ClientsReply reply = KVPOOL__CLIENTS_REPLY__INIT;
	struct client_row rows[CLIENTS_PAGE];
	Kvpool__ClientItem *items[CLIENTS_PAGE];
	struct session *s;

	domain_drain_touches(rq->domain, rq->now);
	list_for_each(s, &rq->domain->sessions, link) {
		/* Those that have not said hello have no name and hold nothing. */
		if (s->number <= m->after || !s->region)
			continue;
		if (reply.n_items == CLIENTS_PAGE) {
			reply.next = items[CLIENTS_PAGE - 1]->session;
			break;
		}
		items[reply.n_items] = &rows[reply.n_items].item;
		client_row(s, rq->now, &rows[reply.n_items++]);
	}
	reply.items = items;
	request_reply(rq, &reply.base);
}

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
