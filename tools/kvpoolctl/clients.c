/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <pwd.h>

#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/unit.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

enum {
	COL_SESSION,
	COL_NAME,
	COL_PID,
	COL_USER,
	COL_UNIT,
	COL_NAMESPACE,
	COL_LEASES,
	COL_LEASED,
	COL_WRITING,
	COL_UNNAMED,
	COL_EXTENTS,
	COL_QUOTA,
	COL_WAITS,
	COL_CACHED,
	COL_LOOKUPS,
	COL_ASKED,
	COL_HIT,
	COL_SHARED,
	COL_AGE,
	COL_LIBRARY,
	COL_STATE,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_SESSION] = { "SESSION", TABLE_RIGHT | TABLE_EXTRA, "Number of its session" },
	[COL_NAME] = { "NAME", TABLE_ELASTIC, "What it calls itself" },
	[COL_PID] = { "PID", TABLE_RIGHT, "Process" },
	[COL_USER] = { "USER", TABLE_ELASTIC, "User that it runs as" },
	[COL_UNIT] = { "UNIT", TABLE_ELASTIC | TABLE_EXTRA, "systemd unit or container" },
	[COL_NAMESPACE] = { "NAMESPACE", TABLE_ELASTIC,
			    "Model of the namespace that it opened last" },
	[COL_LEASES] = { "LEASES", TABLE_RIGHT | TABLE_EXTRA, "Prefixes that it holds now" },
	[COL_LEASED] = { "LEASED", TABLE_RIGHT, "Bytes of these" },
	[COL_WRITING] = { "WRITING", TABLE_RIGHT | TABLE_EXTRA,
			  "Blocks that it has reserved and not committed" },
	[COL_UNNAMED] = { "UNNAMED", TABLE_RIGHT | TABLE_EXTRA,
			  "Bytes of its slots without a key" },
	[COL_EXTENTS] = { "EXTENTS", TABLE_RIGHT | TABLE_EXTRA,
			  "Bytes of the extents that hold what it writes" },
	[COL_QUOTA] = { "QUOTA", TABLE_RIGHT | TABLE_EXTRA,
			"What it may hold reserved, and in slots without a key" },
	[COL_WAITS] = { "WAITS", TABLE_RIGHT | TABLE_EXTRA, "Waits that it is in now" },
	[COL_CACHED] = { "CACHED", TABLE_RIGHT, "Bytes that it wrote and that are still there" },
	[COL_LOOKUPS] = { "LOOKUPS", TABLE_RIGHT | TABLE_EXTRA, "Its lookups" },
	[COL_ASKED] = { "ASKED", TABLE_RIGHT | TABLE_EXTRA, "Tokens that it asked for" },
	[COL_HIT] = { "HIT%", TABLE_RIGHT, "Part of these that was cached" },
	[COL_SHARED] = { "SHARED", TABLE_RIGHT,
			 "Part of its hits that another program had computed" },
	[COL_AGE] = { "AGE", TABLE_RIGHT, "How long it has been attached" },
	[COL_LIBRARY] = { "LIBRARY", TABLE_EXTRA, "Version of its library" },
	[COL_STATE] = { "STATE", 0, "active, idle or draining" },
};

static_assert(COL_MAX <= TABLE_COLUMNS_MAX, "");

static void add_user(struct listing *l, uint32_t uid)
{
	const struct passwd *p = getpwuid(uid);

	if (p)
		listing_cell(l, COL_USER, "%s", p->pw_name);
	else
		listing_cell(l, COL_USER, "%" PRIu32, uid);
}

static void add_held(struct listing *l, const Kvpool__ClientItem *c, int exact)
{
	listing_cell(l, COL_LEASES, "%s", units_count(c->leases).text);
	listing_cell(l, COL_LEASED, "%s", units_bytes(c->leased_bytes, exact).text);
	listing_cell(l, COL_WRITING, "%s", units_count(c->writing_blocks).text);
	listing_cell(l, COL_UNNAMED, "%s", units_bytes(c->unnamed_bytes, exact).text);
	listing_cell(l, COL_EXTENTS, "%s", units_bytes(c->extent_bytes, exact).text);
	if (c->quota_bytes)
		listing_cell(l, COL_QUOTA, "%s", units_bytes(c->quota_bytes, exact).text);
	listing_cell(l, COL_WAITS, "%s", units_count(c->waits).text);
	listing_cell(l, COL_CACHED, "%s", units_bytes(c->cached_bytes, exact).text);
}

static void add_row(struct listing *l, const void *item)
{
	const Kvpool__ClientItem *c = item;
	char unit[UNIT_BYTES];

	listing_cell(l, COL_SESSION, "%" PRIu64, c->session);
	listing_cell(l, COL_NAME, "%s", c->name);
	listing_cell(l, COL_PID, "%" PRIu32, c->pid);
	add_user(l, c->uid);
	if (!unit_of_pid(c->pid, unit))
		listing_cell(l, COL_UNIT, "%s", unit);
	listing_cell(l, COL_NAMESPACE, "%s", c->namespace_);
	add_held(l, c, l->ctl->opt.bytes);
	listing_cell(l, COL_LOOKUPS, "%s", units_count(c->lookups).text);
	listing_cell(l, COL_ASKED, "%s", units_count(c->asked_tokens).text);
	listing_cell(l, COL_HIT, "%s", units_percent(c->hit_tokens, c->asked_tokens).text);
	listing_cell(l, COL_SHARED, "%s", units_percent(c->shared_tokens, c->hit_tokens).text);
	listing_cell(l, COL_AGE, "%s", units_duration(c->connected_ns).text);
	listing_cell(l, COL_LIBRARY, "%s", c->library);
	listing_cell(l, COL_STATE, "%s", c->state);
}

static json_t *item_json(const void *item)
{
	const Kvpool__ClientItem *c = item;
	char unit[UNIT_BYTES] = "";
	json_t *o = json_object();

	if (unit_of_pid(c->pid, unit))
		*unit = '\0';
	report_u64(o, "session", c->session);
	report_text(o, "name", c->name);
	report_u64(o, "pid", c->pid);
	report_u64(o, "uid", c->uid);
	report_text(o, "unit", unit);
	report_text(o, "namespace", c->namespace_);
	report_seconds(o, "age_seconds", c->connected_ns);
	report_u64(o, "leases", c->leases);
	report_u64(o, "leased_bytes", c->leased_bytes);
	report_u64(o, "writing_blocks", c->writing_blocks);
	report_u64(o, "unnamed_blocks", c->unnamed_blocks);
	report_u64(o, "unnamed_bytes", c->unnamed_bytes);
	report_u64(o, "extents", c->extents);
	report_u64(o, "extent_bytes", c->extent_bytes);
	report_known(o, "quota_bytes", c->quota_bytes);
	report_u64(o, "waits", c->waits);
	report_u64(o, "cached_blocks", c->cached_blocks);
	report_u64(o, "cached_bytes", c->cached_bytes);
	report_u64(o, "lookups", c->lookups);
	report_u64(o, "lookup_tokens", c->asked_tokens);
	report_u64(o, "hit_tokens", c->hit_tokens);
	report_u64(o, "cross_client_hit_tokens", c->shared_tokens);
	report_text(o, "library", c->library);
	report_text(o, "state", c->state);
	return o;
}

const struct listing_kind clients_listing = { "client", "clients", "kvpool.clients/1",
					      columns,  COL_MAX,   OP_CLIENTS,
					      add_row,  item_json };

enum ctl_exit verb_clients(const struct ctl *ctl)
{
	return listing_run(ctl, &clients_listing, NULL);
}
