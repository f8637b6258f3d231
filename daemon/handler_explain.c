/* SPDX-License-Identifier: Apache-2.0 */
/* Why a prompt is not a hit: of a chain that somebody names, and of lookups that were. */
#include <string.h>

#include "base/hex.h"
#include "daemon/find_id.h"
#include "daemon/find_ns.h"
#include "daemon/insight.h"

/* An item has at most some 750 bytes, with a model name of the longest kind. */
#define REQUESTS_PAGE 32u

static_assert(REQUESTS_PAGE * 1000 < FRAME_MAX, "a page of a list fits a packet");

/* How long ago, of what may be unknown (0). It is never 0 then. */
static uint64_t ago(uint64_t when, uint64_t now)
{
	if (!when)
		return 0;
	return now > when ? now - when : 1;
}

static void explain_point(struct request *rq, uint32_t desc, char *id, Kvpool__ExplainReply *reply)
{
	struct explain_fanout f;

	insight_fanout(rq->domain, reply->ns, desc, &f);
	reply->children = f.children;
	reply->children_once = f.once;
	if (desc == DESC_NONE)
		return;
	find_id_of(rq->domain->pool, desc, id);
	reply->id = id;
	reply->readers = prefixes_readers(insight_prefix(rq->domain, desc));
}

static void explain_key(struct request *rq, const struct block_key *key,
			Kvpool__ExplainReply *reply)
{
	struct explain_missing m;

	explain_missing(rq->domain->pool, key, &m);
	reply->reason = m.why;
	reply->ago_ns = ago(m.when, rq->now);
	if (m.writer)
		reply->writer = (char *)insight_client(rq->domain, m.writer);
}

void handler_explain(struct request *rq)
{
	const Kvpool__Explain *m = rq->msg;
	Kvpool__ExplainReply reply = KVPOOL__EXPLAIN_REPLY__INIT;
	uint32_t n, desc = DESC_NONE;
	const struct block_key *keys = request_keys(&m->keys, &n);
	struct pool *p = rq->domain->pool;
	char id[FIND_ID_DIGITS + 1];
	uint64_t gen;

	if (!n) {
		request_fail(rq, ERROR_BAD_FIELD, "keys", "explain: field keys is missing");
		return;
	}
	if (!find_ns(rq, m->namespace_, &reply.ns))
		return;
	domain_drain_touches(rq->domain, rq->now);
	reply.present = pool_present(p, reply.ns, keys, n);
	if (reply.present)
		desc = pool_find(p, reply.ns, &keys[reply.present - 1], &gen);
	if (reply.present < n)
		explain_key(rq, &keys[reply.present], &reply);
	explain_point(rq, desc, id, &reply);
	request_reply(rq, &reply.base);
}

/* An item of the list, and the text that is made for it. */
struct request_row {
	Kvpool__RequestItem item;
	char id[FIND_ID_DIGITS + 1];
};

/* The block that it ended at: DESC_NONE for the start of a chain. Returns 0 when it is gone. */
static int request_point(const struct domain *d, const struct past_lookup *e, uint32_t *ret)
{
	struct explain_block b;

	*ret = e->desc;
	if (insight_ns_mark(d, e->ns) != e->mark)
		return 0;
	if (e->desc == DESC_NONE)
		return !e->from && !e->hit;
	return explain_block(d->pool, e->desc, &b) == 0 && b.gen == e->gen;
}

static void request_insight(struct domain *d, const struct past_lookup *e,
			    Kvpool__RequestItem *item)
{
	struct explain_fanout f;
	uint32_t desc;

	if (!request_point(d, e, &desc))
		return;
	insight_fanout(d, e->ns, desc, &f);
	item->children = f.children;
	item->children_once = f.once;
	if (desc != DESC_NONE)
		item->readers = prefixes_readers(insight_prefix(d, desc));
}

static void request_row(struct request *rq, const struct past_lookup *e,
			const struct request_ring *ring, struct request_row *row)
{
	Kvpool__RequestItem *item = &row->item;

	kvpool__request_item__init(item);
	item->number = e->number;
	item->ago_ns = rq->now - e->when;
	item->session = ring->session;
	item->client = (char *)ring->client;
	item->ns = e->ns;
	if (insight_ns_mark(rq->domain, e->ns) == e->mark)
		item->namespace_ = (char *)insight_model(rq->domain, e->ns);
	item->asked_tokens = e->asked;
	item->hit_tokens = e->hit;
	item->from_token = e->from;
	item->reason = e->why;
	item->tail_tokens = e->tail;
	item->reason_ago_ns = ago(e->gone, rq->now);
	if (e->desc != DESC_NONE) {
		hex_encode(e->id, sizeof(e->id), row->id);
		item->id = row->id;
	}
	request_insight(rq->domain, e, item);
}

/* Somebody whom the query asks about is connected, or was until lately. */
static int requests_has_client(const struct domain *d, const struct requests_query *q)
{
	const struct session *s;

	if (requests_knows(&d->requests, q))
		return 1;
	list_for_each(s, &d->sessions,
		      link) if (s->region && (!q->session || s->number == q->session) &&
				(!*q->client || !strcmp(s->name, q->client))) return 1;
	return 0;
}

static void requests_fail(struct request *rq, const Kvpool__Requests *m)
{
	if (m->session)
		request_fail(rq, ERROR_NO_OBJECT, "session",
			     "nothing is known of session %llu: see kvpoolctl clients",
			     (unsigned long long)m->session);
	else
		request_fail(rq, ERROR_NO_OBJECT, "client",
			     "no client called \"%s\" is connected, or was lately: see kvpoolctl "
			     "clients",
			     m->client);
}

/* The cursor is the number of the last lookup that was listed. */
static void requests_list(struct request *rq, struct requests_query *q, uint32_t limit)
{
	Kvpool__RequestsReply reply = KVPOOL__REQUESTS_REPLY__INIT;
	struct request_row rows[REQUESTS_PAGE];
	Kvpool__RequestItem *items[REQUESTS_PAGE];
	const struct request_ring *ring;
	const struct past_lookup *e;

	while ((e = requests_newest(&rq->domain->requests, q, &ring)) != NULL) {
		if (reply.n_items == limit) {
			reply.next = q->before;
			break;
		}
		request_row(rq, e, ring, &rows[reply.n_items]);
		items[reply.n_items] = &rows[reply.n_items].item;
		reply.n_items++;
		q->before = e->number;
	}
	reply.items = items;
	request_reply(rq, &reply.base);
}

void handler_requests(struct request *rq)
{
	const Kvpool__Requests *m = rq->msg;
	struct requests_query q = {
		.session = m->session,
		.client = m->client,
		.misses = m->misses,
		.before = m->before,
	};

	if (m->session && *m->client) {
		request_fail(rq, ERROR_BAD_FIELD, "client",
			     "requests: name the client in one way: by session or by name");
		return;
	}
	domain_drain_touches(rq->domain, rq->now);
	if ((m->session || *m->client) && !requests_has_client(rq->domain, &q))
		requests_fail(rq, m);
	else
		requests_list(rq, &q, MIN(m->limit ?: 1, REQUESTS_PAGE));
}
