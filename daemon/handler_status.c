/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator sees at a glance: versions, status, and where its counters begin. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/request.h"

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
