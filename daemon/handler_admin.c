/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator asks for (flush is in flusher.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "daemon/leases.h"
#include "daemon/log.h"
#include "daemon/request.h"
#include "proto/nsdesc.h"

/* An item has at most some 970 bytes, with a model name of the longest kind. */
#define ADMIN_PAGE 64u

static_assert(ADMIN_PAGE * 1000 < FRAME_MAX, "a page of a list fits a packet");

/* One of a namespace has more texts. */
#define ADMIN_NAMESPACES 28u

static_assert(ADMIN_NAMESPACES * 2300 < FRAME_MAX, "a page of namespaces fits a packet");

/* A client that did nothing for this long is idle. */
#define ADMIN_IDLE_NS (5 * NSEC_PER_SEC)

void handler_version(struct request *rq)
{
	Kvpool__VersionReply reply = KVPOOL__VERSION_REPLY__INIT;

	reply.daemon = (char *)KVPOOL_VERSION;
	reply.protocol_min = PROTOCOL_MIN;
	reply.protocol_max = PROTOCOL_MAX;
	reply.layout = LAYOUT_VERSION;
	request_reply(rq, &reply.base);
}

static void status_pool(struct domain *d, const struct baseline *since, Kvpool__StatusReply *reply)
{
	struct pool_stats s;

	pool_get_stats(d->pool, &s);
	baseline_pool(since, &s);
	reply->pool_bytes = s.pool_bytes;
	reply->pool_max_bytes = pool_most_bytes(d->pool);
	reply->pool_excess_bytes = s.excess_bytes;
	reply->pool_handed_bytes = s.handed_bytes;
	reply->pool_resident_bytes = backing_resident(d->backing);
	reply->cached_bytes = s.cached_bytes;
	reply->leased_bytes = s.leased_bytes;
	reply->writing_bytes = s.writing_bytes;
	reply->unnamed_bytes = s.unnamed_bytes;
	reply->quarantined_bytes = s.quarantined_bytes;
	reply->doomed_bytes = s.doomed_bytes;
	reply->free_bytes = s.free_bytes;
	reply->blocks = s.blocks;
	reply->max_blocks = s.max_blocks;
	reply->namespaces = s.namespaces;
	reply->published_blocks = s.published;
	reply->duplicate_blocks = s.duplicates;
	reply->busy_blocks = s.busy;
	reply->full_blocks = s.full;
	reply->quota_blocks = s.quota;
	reply->evicted_blocks = s.evicted;
	reply->flushed_blocks = s.flushed;
	reply->extents_taken = s.extents_taken;
	reply->quarantined_blocks = s.quarantined;
	reply->checksum_dooms = s.dooms;
	reply->expired_blocks = s.expired;
	reply->pins = s.pins;
	reply->pinned_bytes = s.pinned_bytes;
	reply->pin_budget_bytes = s.pin_budget;
}

/* u is what the reply's list lies in. */
static void status_usage(struct domain *d, const struct baseline *since, struct usage *u,
			 Kvpool__StatusReply *reply)
{
	domain_usage(d, u, &reply->touches_lost);
	baseline_usage(since, u, &reply->touches_lost);
	reply->lookups = u->lookups;
	reply->asked_tokens = u->asked;
	reply->hit_tokens = u->hit;
	reply->miss_tokens = u->miss;
	reply->shared_tokens = u->shared;
	reply->raced = u->raced;
	reply->miss_reasons = u->reasons;
	reply->n_miss_reasons = USAGE_REASONS;
}

static void status_sessions(const struct domain *d, const struct baseline *since,
			    Kvpool__StatusReply *reply)
{
	struct domain_counts c = d->counts;
	struct domain_census census;

	baseline_counts(since, &c);
	domain_census(d, &census);
	reply->clients = census.clients - census.draining;
	reply->draining = census.draining;
	reply->waits = c.waits;
	reply->waits_served = c.waits_served;
	reply->waits_timed_out = c.waits_timed_out;
	reply->checksum_reports = c.reports;
	reply->hints = c.hints;
	reply->connects = c.connects;
	reply->ended_clean = c.ended[REASON_CLEAN];
	reply->ended_crash = c.ended[REASON_CRASH];
	reply->ended_kicked = c.ended[REASON_KICKED];
	reply->ended_protocol = c.ended[REASON_PROTOCOL];
	reply->ended_slow = c.ended[REASON_SLOW];
	reply->refused = c.ended[REASON_REFUSED];
	reply->protocol_errors = c.protocol_errors;
}

void handler_status(struct request *rq)
{
	static const struct baseline start = { .at = 0 };
	const Kvpool__Status *m = rq->msg;
	struct domain *d = rq->domain;
	const struct baseline *since = m->raw ? &start : &d->baseline;
	Kvpool__StatusReply reply = KVPOOL__STATUS_REPLY__INIT;
	struct usage usage;
	char page[24];

	if (d->hostmem->pages == HOSTMEM_HUGETLB)
		strcpy(page, "2 MiB");
	else
		snprintf(page, sizeof(page), "%ld KiB", sysconf(_SC_PAGESIZE) / 1024);
	reply.daemon = (char *)KVPOOL_VERSION;
	reply.instance = (char *)instance_name(d->cfg.instance);
	reply.domain = (char *)d->cfg.name;
	reply.pid = (uint64_t)getpid();
	reply.uptime_ns = rq->now - d->started;
	reply.log_level = (char *)log_level_name(log_level());
	reply.ready = 1; /* it answers */
	reply.page_size = page;
	reply.huge_pages = (char *)hostmem_pages_name(d->hostmem->pages);
	reply.numa = d->hostmem->numa;
	reply.epoch = pool_epoch(d->pool);
	reply.counters_ns = rq->now - (since->at ?: d->started);
	domain_drain_touches(d, rq->now);
	status_pool(d, since, &reply);
	status_usage(d, since, &usage, &reply);
	status_sessions(d, since, &reply);
	request_reply(rq, &reply.base);
}

void handler_stats_reset(struct request *rq)
{
	struct domain *d = rq->domain;
	Kvpool__StatsResetReply reply = KVPOOL__STATS_RESET_REPLY__INIT;

	reply.counters_ns = rq->now - (d->baseline.at ?: d->started);
	domain_reset_counters(d, rq->now);
	log_line(LOG_NOTICE, "counters begin at zero",
		 LOG_NUMBER("client_uid", rq->session->peer.uid));
	request_reply(rq, &reply.base);
}

/* An item of a list, and the text that is made for it. */
struct namespace_row {
	Kvpool__NamespaceItem item;
	char fingerprint[2 * KEY_BYTES + 1];
	char type_k[NSDESC_TEXT_MAX + 1], type_v[NSDESC_TEXT_MAX + 1];
};

static char *row_text(char buf[NSDESC_TEXT_MAX + 1], const struct nsdesc_item *it)
{
	memcpy(buf, it->value, it->n);
	buf[it->n] = '\0';
	return buf;
}

/* What its descriptor says of the model. */
static void namespace_shape(struct namespace_row *row, const struct pool_ns_stats *s)
{
	struct nsdesc_item it;
	size_t at = 0;

	while (at < s->n_desc && (at = nsdesc_next(s->desc, s->n_desc, at, &it)))
		switch (it.tag) {
		case NSDESC_LAYERS:
			row->item.n_layers = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_KV_HEADS:
			row->item.n_kv_heads = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_HEAD_DIM_K:
			row->item.head_dim_k = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_HEAD_DIM_V:
			row->item.head_dim_v = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_TYPE_K:
			row->item.type_k = row_text(row->type_k, &it);
			break;
		case NSDESC_TYPE_V:
			row->item.type_v = row_text(row->type_v, &it);
			break;
		}
}

static void namespace_row(struct namespace_row *row, uint32_t ns, const struct pool_ns_stats *s)
{
	kvpool__namespace_item__init(&row->item);
	hex_encode(s->seed, sizeof(s->seed), row->fingerprint);
	row->item.ns = ns;
	row->item.model = (char *)s->model;
	row->item.fingerprint = row->fingerprint;
	row->item.block_tokens = s->block_tokens;
	row->item.block_bytes = s->block_bytes;
	row->item.blocks = s->blocks;
	row->item.leased_blocks = s->leased_blocks;
	row->item.writing_blocks = s->writing_blocks;
	row->item.unnamed_blocks = s->unnamed_blocks;
	row->item.extents = s->extents;
	row->item.extent_bytes = s->extent_bytes;
	row->item.lookups = s->lookups;
	row->item.asked_tokens = s->asked_tokens;
	row->item.hit_tokens = s->hit_tokens;
	row->item.miss_reasons = (uint64_t *)s->missed;
	row->item.n_miss_reasons = USAGE_REASONS;
	row->item.used_ns = s->used;
	row->item.ttl_ns = s->ttl_ns;
	row->item.priority = s->priority;
	row->item.expired_blocks = s->expired;
	row->item.pinned_blocks = s->pinned_blocks;
	row->item.free_blocks = s->free_blocks;
	row->item.empty_blocks = s->empty_blocks;
	namespace_shape(row, s);
}

/* The cursor is the number after the last one that was listed. */
void handler_namespaces(struct request *rq)
{
	const Kvpool__Namespaces *m = rq->msg;
	struct pool *p = rq->domain->pool;
	Kvpool__NamespacesReply reply = KVPOOL__NAMESPACES_REPLY__INIT;
	struct namespace_row rows[ADMIN_NAMESPACES];
	Kvpool__NamespaceItem *items[ADMIN_NAMESPACES];
	struct pool_ns_stats s;
	uint32_t ns;

	domain_drain_touches(rq->domain, rq->now);
	pool_count_leased(p);
	for (ns = m->after;
	     ns < pool_control(p)->max_namespaces && reply.n_items < ADMIN_NAMESPACES; ns++) {
		if (pool_ns_get_stats(p, ns, &s) < 0)
			continue;
		namespace_row(&rows[reply.n_items], ns, &s);
		items[reply.n_items] = &rows[reply.n_items].item;
		reply.n_items++;
	}
	reply.items = items;
	reply.next = ns < pool_control(p)->max_namespaces ? ns : 0;
	request_reply(rq, &reply.base);
}

static const char *client_state(const struct session *s, uint64_t now)
{
	if (s->state == SESSION_DRAINING)
		return "draining";
	return now - s->active < ADMIN_IDLE_NS ? "active" : "idle";
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
	struct client_row rows[ADMIN_PAGE];
	Kvpool__ClientItem *items[ADMIN_PAGE];
	struct session *s;

	domain_drain_touches(rq->domain, rq->now);
	list_for_each(s, &rq->domain->sessions, link) {
		/* Those that have not said hello have no name and hold nothing. */
		if (s->number <= m->after || !s->region)
			continue;
		if (reply.n_items == ADMIN_PAGE) {
			reply.next = items[ADMIN_PAGE - 1]->session;
			break;
		}
		items[reply.n_items] = &rows[reply.n_items].item;
		client_row(s, rq->now, &rows[reply.n_items++]);
	}
	reply.items = items;
	request_reply(rq, &reply.base);
}
