/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/status.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "proto/reason.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/flow.h"
#include "tools/kvpoolctl/health.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

/* Where to print, and how. */
struct screen {
	FILE *out;
	const struct style *style;
	int exact;
};

/*
 * Bytes by state, which sum to the size of the pool. The protocol counts what is leased as cached
 * too; here each byte stands in one place.
 */
struct byte_state {
	const char *name;
	uint64_t bytes;
};

#define BYTE_STATES 8

static void byte_states(const Kvpool__StatusReply *s, struct byte_state *ret)
{
	uint64_t beyond = s->pool_handed_bytes - MIN(s->pool_handed_bytes, s->pool_bytes);

	const struct byte_state states[BYTE_STATES] = {
		{ "cached", s->cached_bytes - MIN(s->leased_bytes, s->cached_bytes) },
		{ "leased", s->leased_bytes },
		{ "writing", s->writing_bytes },
		{ "quarantined", s->quarantined_bytes },
		{ "doomed", s->doomed_bytes },
		{ "free", s->free_bytes },
		{ "unassigned", s->pool_bytes - MIN(s->pool_handed_bytes, s->pool_bytes) },
		/* No extent has it any more, and the system not yet. */
		{ "returning", s->pool_excess_bytes - MIN(beyond, s->pool_excess_bytes) },
	};

	for (unsigned int i = 0; i < BYTE_STATES; i++)
		ret[i] = states[i];
}

/* How long the counters have counted; an older daemon does not say, and counts since its start. */
static uint64_t counted_ns(const Kvpool__StatusReply *s)
{
	return s->counters_ns ? s->counters_ns : s->uptime_ns;
}

static uint64_t used_bytes(const Kvpool__StatusReply *s)
{
	return s->pool_handed_bytes - MIN(s->free_bytes, s->pool_handed_bytes);
}

static enum style_mark level_mark(enum health_level level)
{
	return level == HEALTH_OK ? STYLE_GOOD : level == HEALTH_NOTE ? STYLE_NOTE : STYLE_BAD;
}

static void print_title(const struct screen *sc, const Kvpool__StatusReply *s)
{
	_cleanup_free_ char *daemon = cell_clean(s->daemon), *instance = cell_clean(s->instance);
	enum style_mark mark = s->ready ? STYLE_GOOD : STYLE_BAD;

	fprintf(sc->out, "%s%s%s kvpoold %s   %s   up %s   pid %" PRIu64 "   %s\n",
		style_on(sc->style, mark), style_dot(sc->style), style_off(sc->style),
		daemon ? daemon : "-", instance ? instance : "-", units_duration(s->uptime_ns).text,
		s->pid, s->ready ? "ready" : "starting");
}

static void print_pool(const struct screen *sc, const Kvpool__StatusReply *s)
{
	struct byte_state states[BYTE_STATES];
	char bar[STYLE_BAR_BYTES];
	struct flow f;

	byte_states(s, states);
	style_bar(sc->style, used_bytes(s), s->pool_bytes, bar);
	flow_begin(&f, sc->out, STYLE_COLUMNS, "Pool");
	flow_add(&f, "host %s", bar);
	flow_add(&f, "%s / %s", units_bytes_of(used_bytes(s), s->pool_bytes, sc->exact).text,
		 units_bytes(s->pool_bytes, sc->exact).text);
	flow_add(&f, "%s", units_percent(used_bytes(s), s->pool_bytes).text);
	/* All of them: who adds them up gets the size. */
	for (unsigned int i = 0; i < BYTE_STATES; i++)
		if (states[i].bytes)
			flow_add(&f, "%s %s", states[i].name,
				 units_bytes_of(states[i].bytes, s->pool_bytes, sc->exact).text);
	flow_end(&f);
}

static void print_memory(const struct screen *sc, const Kvpool__StatusReply *s)
{
	struct flow f;

	if (!*s->huge_pages && !*s->numa && !s->pool_max_bytes)
		return;
	flow_begin(&f, sc->out, STYLE_COLUMNS, "Memory");
	if (*s->huge_pages)
		flow_clean(&f, "pages ", s->huge_pages);
	if (*s->numa)
		flow_clean(&f, "numa ", s->numa);
	flow_add(&f, "resident %s", units_bytes(s->pool_resident_bytes, sc->exact).text);
	if (s->pool_max_bytes)
		flow_add(&f, "resizable to %s", units_bytes(s->pool_max_bytes, sc->exact).text);
	if (s->pool_excess_bytes)
		flow_add(&f, "shrinking, %s to go",
			 units_bytes(s->pool_excess_bytes, sc->exact).text);
	flow_end(&f);
}

static void print_blocks(const struct screen *sc, const Kvpool__StatusReply *s)
{
	struct flow f;

	flow_begin(&f, sc->out, STYLE_COLUMNS, "Blocks");
	flow_add(&f, "%s of %s", units_count(s->blocks).text, units_count(s->max_blocks).text);
	flow_add(&f, "published %s", units_round(s->published_blocks).text);
	flow_add(&f, "evicted %s", units_round(s->evicted_blocks).text);
	if (s->flushed_blocks)
		flow_add(&f, "flushed %s", units_round(s->flushed_blocks).text);
	if (s->waits)
		flow_add(&f, "waits served %s of %s", units_round(s->waits_served).text,
			 units_round(s->waits).text);
	flow_end(&f);
}

static void print_hits(const struct screen *sc, const Kvpool__StatusReply *s)
{
	/* A reset was when the counters are clearly younger than the daemon. */
	int reset = counted_ns(s) + NSEC_PER_SEC < s->uptime_ns;
	struct flow f;

	flow_begin(&f, sc->out, STYLE_COLUMNS, "Hits");
	flow_add(&f, "%s%s %s of %s tokens", reset ? "last " : "since start",
		 reset ? units_duration(counted_ns(s)).text : "",
		 units_percent(s->hit_tokens, s->asked_tokens).text,
		 units_round(s->asked_tokens).text);
	flow_add(&f, "in %s lookups", units_round(s->lookups).text);
	flow_add(&f, "from another program: %s",
		 units_percent(s->shared_tokens, s->hit_tokens).text);
	flow_end(&f);
}

/* The reasons of what was missed, the most frequent first. */
static void print_misses(const struct screen *sc, const Kvpool__StatusReply *s)
{
	uint64_t last = UINT64_MAX;
	size_t last_i = 0;
	struct flow f;

	if (!s->miss_tokens || !s->n_miss_reasons)
		return;
	flow_begin(&f, sc->out, STYLE_COLUMNS, "Misses");
	for (;;) {
		size_t best = SIZE_MAX;

		for (size_t i = 0; i < s->n_miss_reasons; i++) {
			uint64_t n = s->miss_reasons[i];

			if (n && (n < last || (n == last && i > last_i)) &&
			    (best == SIZE_MAX || n > s->miss_reasons[best]))
				best = i;
		}
		if (best == SIZE_MAX)
			break;
		last = s->miss_reasons[best];
		last_i = best;
		flow_add(&f, "%s %s", miss_reason_name((unsigned int)best),
			 units_percent(last, s->miss_tokens).text);
	}
	flow_end(&f);
}

static void print_clients(const struct screen *sc, const Kvpool__StatusReply *s)
{
	struct flow f;

	flow_begin(&f, sc->out, STYLE_COLUMNS, "Clients");
	flow_add(&f, "%" PRIu32 " attached      ", s->clients);
	flow_add(&f, "Namespaces %" PRIu32 "      ", s->namespaces);
	flow_add(&f, "Pins %" PRIu32, s->pins);
	if (s->pin_budget_bytes)
		flow_add(&f, "(%s of %s budget)",
			 units_bytes_of(s->pinned_bytes, s->pin_budget_bytes, sc->exact).text,
			 units_bytes(s->pin_budget_bytes, sc->exact).text);
	flow_end(&f);
}

static void print_health(const struct screen *sc, const Kvpool__StatusReply *s)
{
	enum health_level level = health_level(s);
	const struct health_finding *h;
	struct flow f;

	flow_begin(&f, sc->out, STYLE_COLUMNS, "Health");
	fputs(style_on(sc->style, level_mark(level)), sc->out);
	flow_add(&f, "%s", health_level_name(level));
	fputs(style_off(sc->style), sc->out);
	for (unsigned int i = 0; (h = health_finding(i)); i++)
		if (h->count(s)) {
			flow_break(&f);
			flow_add(&f, "%s: %s%s%s", health_level_name(h->level), h->text,
				 h->is_state ? "" : ": ",
				 h->is_state ? "" : units_round(h->count(s)).text);
			flow_add(&f, "(%s)", h->advice);
		}
	flow_end(&f);
}

void status_print(const Kvpool__StatusReply *s, const struct style *style, int exact, FILE *out)
{
	const struct screen sc = { out, style, exact };

	print_title(&sc, s);
	print_pool(&sc, s);
	print_memory(&sc, s);
	print_blocks(&sc, s);
	print_hits(&sc, s);
	print_misses(&sc, s);
	print_clients(&sc, s);
	print_health(&sc, s);
}

static json_t *tier_json(const Kvpool__StatusReply *s)
{
	struct byte_state states[BYTE_STATES];
	json_t *tier = json_object(), *by_state = json_object();

	byte_states(s, states);
	for (unsigned int i = 0; i < BYTE_STATES; i++)
		report_u64(by_state, states[i].name, states[i].bytes);
	report_text(tier, "tier", "host");
	report_u64(tier, "capacity_bytes", s->pool_bytes);
	report_u64(tier, "used_bytes", used_bytes(s));
	report_u64(tier, "resident_bytes", s->pool_resident_bytes);
	report_text(tier, "page_size", s->page_size);
	report_text(tier, "huge_pages", s->huge_pages);
	report_text(tier, "numa", s->numa);
	report_known(tier, "max_bytes", s->pool_max_bytes);
	report_u64(tier, "excess_bytes", s->pool_excess_bytes);
	report_u64(tier, "unnamed_bytes", s->unnamed_bytes);
	report_add(tier, "states", by_state);
	return tier;
}

static json_t *health_json(const Kvpool__StatusReply *s)
{
	json_t *o = json_object(), *codes = json_array();
	const struct health_finding *h;

	for (unsigned int i = 0; (h = health_finding(i)); i++)
		if (h->count(s))
			json_array_append_new(codes, json_string(h->code));
	report_text(o, "level", health_level_name(health_level(s)));
	report_add(o, "codes", codes);
	return o;
}

/* Every counter of the reply under its own name: sums can be checked from outside. */
static json_t *counters_json(const Kvpool__StatusReply *s)
{
	const struct {
		const char *name;
		uint64_t n;
	} counters[] = {
		{ "lookups", s->lookups },
		{ "lookup_tokens", s->asked_tokens },
		{ "hit_tokens", s->hit_tokens },
		{ "miss_tokens", s->miss_tokens },
		{ "cross_client_hit_tokens", s->shared_tokens },
		{ "raced_lookups", s->raced },
		{ "hints", s->hints },
		{ "published_blocks", s->published_blocks },
		{ "duplicate_blocks", s->duplicate_blocks },
		{ "busy_blocks", s->busy_blocks },
		{ "full_blocks", s->full_blocks },
		{ "evicted_blocks", s->evicted_blocks },
		{ "expired_blocks", s->expired_blocks },
		{ "quota_blocks", s->quota_blocks },
		{ "flushed_blocks", s->flushed_blocks },
		{ "quarantined_blocks", s->quarantined_blocks },
		{ "extents_taken", s->extents_taken },
		{ "waits", s->waits },
		{ "waits_served", s->waits_served },
		{ "waits_timed_out", s->waits_timed_out },
		{ "checksum_reports", s->checksum_reports },
		{ "checksum_dooms", s->checksum_dooms },
		{ "touches_lost", s->touches_lost },
		{ "connects", s->connects },
		{ "ended_clean", s->ended_clean },
		{ "ended_crash", s->ended_crash },
		{ "ended_kicked", s->ended_kicked },
		{ "ended_protocol", s->ended_protocol },
		{ "ended_slow", s->ended_slow },
		{ "refused", s->refused },
		{ "protocol_errors", s->protocol_errors },
	};
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		report_u64(o, counters[i].name, counters[i].n);
	return o;
}

/* Tokens by reason; null from a daemon that does not tell them apart. */
static json_t *reasons_json(const Kvpool__StatusReply *s)
{
	json_t *o;

	if (!s->n_miss_reasons)
		return json_null();
	o = json_object();
	for (unsigned int i = 1; i <= MISS_MAX; i++)
		/* Numbers that are no reason read as "unknown", which is one itself. */
		if (*miss_reason_help(i))
			report_u64(o, miss_reason_name(i),
				   i < s->n_miss_reasons ? s->miss_reasons[i] : 0);
	return o;
}

static json_t *pins_json(const Kvpool__StatusReply *s)
{
	json_t *o = json_object();

	report_u64(o, "pins", s->pins);
	report_u64(o, "bytes", s->pinned_bytes);
	report_u64(o, "budget_bytes", s->pin_budget_bytes);
	return o;
}

json_t *status_json(const Kvpool__StatusReply *s)
{
	json_t *o = report_new("kvpool.status/1"), *tiers = json_array();

	json_array_append_new(tiers, tier_json(s));
	report_text(o, "version", s->daemon);
	report_text(o, "instance", s->instance);
	report_text(o, "domain", s->domain);
	report_u64(o, "pid", s->pid);
	report_u64(o, "epoch", s->epoch);
	report_bool(o, "ready", s->ready);
	report_seconds(o, "uptime_seconds", s->uptime_ns);
	report_add(o, "tiers", tiers);
	report_u64(o, "blocks", s->blocks);
	report_u64(o, "max_blocks", s->max_blocks);
	report_u64(o, "namespaces", s->namespaces);
	report_u64(o, "clients", s->clients);
	report_u64(o, "draining_clients", s->draining);
	report_text(o, "log_level", s->log_level);
	report_add(o, "pins", pins_json(s));
	report_seconds(o, "counters_seconds", counted_ns(s));
	report_add(o, "counters", counters_json(s));
	report_add(o, "miss_tokens_by_reason", reasons_json(s));
	report_add(o, "health", health_json(s));
	return o;
}

enum ctl_exit verb_status(const struct ctl *ctl)
{
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const void *reply;

	request.raw = ctl->opt.raw;
	if (!rc)
		rc = admin_call(&a, OP_STATUS, &request.base, &reply);
	if (rc)
		return rc;
	if (report_wanted(ctl))
		return report_print(ctl, status_json(reply));
	if (!ctl->opt.quiet)
		status_print(reply, &ctl->style, ctl->opt.bytes, stdout);
	return EXIT_OK;
}
