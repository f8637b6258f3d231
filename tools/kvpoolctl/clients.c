/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <pwd.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/listing.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
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
	COL_CACHED,
	COL_ASKED,
	COL_HIT,
	COL_SHARED,
	COL_AGE,
	COL_LIBRARY,
	COL_STATE,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_SESSION] = { "SESSION", TABLE_RIGHT | TABLE_EXTRA },
	[COL_NAME] = { "NAME", TABLE_ELASTIC },
	[COL_PID] = { "PID", TABLE_RIGHT },
	[COL_USER] = { "USER", TABLE_ELASTIC },
	[COL_UNIT] = { "UNIT", TABLE_ELASTIC | TABLE_EXTRA },
	[COL_NAMESPACE] = { "NAMESPACE", TABLE_ELASTIC },
	[COL_LEASES] = { "LEASES", TABLE_RIGHT | TABLE_EXTRA },
	[COL_LEASED] = { "LEASED", TABLE_RIGHT },
	[COL_WRITING] = { "WRITING", TABLE_RIGHT | TABLE_EXTRA },
	[COL_CACHED] = { "CACHED", TABLE_RIGHT },
	[COL_ASKED] = { "ASKED", TABLE_RIGHT | TABLE_EXTRA },
	[COL_HIT] = { "HIT%", TABLE_RIGHT },
	[COL_SHARED] = { "SHARED", TABLE_RIGHT },
	[COL_AGE] = { "AGE", TABLE_RIGHT },
	[COL_LIBRARY] = { "LIBRARY", TABLE_EXTRA },
	[COL_STATE] = { "STATE", 0 },
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

static void add_row(struct listing *l, const Kvpool__ClientItem *c)
{
	int exact = l->ctl->opt.bytes;
	char unit[UNIT_BYTES];

	listing_row(l);
	listing_cell(l, COL_SESSION, "%" PRIu64, c->session);
	listing_cell(l, COL_NAME, "%s", c->name);
	listing_cell(l, COL_PID, "%" PRIu32, c->pid);
	add_user(l, c->uid);
	if (!unit_of_pid(c->pid, unit))
		listing_cell(l, COL_UNIT, "%s", unit);
	listing_cell(l, COL_NAMESPACE, "%s", c->namespace_);
	listing_cell(l, COL_LEASES, "%s", units_count(c->leases).text);
	listing_cell(l, COL_LEASED, "%s", units_bytes(c->leased_bytes, exact).text);
	listing_cell(l, COL_WRITING, "%s", units_count(c->writing_blocks).text);
	listing_cell(l, COL_CACHED, "%s", units_bytes(c->cached_bytes, exact).text);
	listing_cell(l, COL_ASKED, "%s", units_count(c->asked_tokens).text);
	listing_cell(l, COL_HIT, "%s", units_percent(c->hit_tokens, c->asked_tokens).text);
	listing_cell(l, COL_SHARED, "%s", units_percent(c->shared_tokens, c->hit_tokens).text);
	listing_cell(l, COL_AGE, "%s", units_duration(c->connected_ns).text);
	listing_cell(l, COL_LIBRARY, "%s", c->library);
	listing_cell(l, COL_STATE, "%s", c->state);
}

static json_t *item_json(const Kvpool__ClientItem *c)
{
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
	report_u64(o, "cached_blocks", c->cached_blocks);
	report_u64(o, "cached_bytes", c->cached_bytes);
	report_u64(o, "lookup_tokens", c->asked_tokens);
	report_u64(o, "hit_tokens", c->hit_tokens);
	report_u64(o, "cross_client_hit_tokens", c->shared_tokens);
	report_text(o, "library", c->library);
	report_text(o, "state", c->state);
	return o;
}

static void add_page(struct listing *l, const Kvpool__ClientsReply *reply)
{
	for (size_t i = 0; i < reply->n_items; i++)
		if (l->items)
			listing_item(l, item_json(reply->items[i]));
		else
			add_row(l, reply->items[i]);
}

static enum ctl_exit add_pages(struct admin *a, struct listing *l)
{
	Kvpool__Clients request = KVPOOL__CLIENTS__INIT;
	const Kvpool__ClientsReply *reply;
	const void *message;
	enum ctl_exit rc;

	for (;;) {
		rc = admin_call(a, OP_CLIENTS, &request.base, &message);
		if (rc)
			return rc;
		reply = message;
		add_page(l, reply);
		if (!reply->next)
			return EXIT_OK;
		if (reply->next <= request.after)
			return say_error(EXIT_FAILED,
					 "kvpoold at %s sends its list of clients in circles",
					 admin_path(a));
		request.after = reply->next;
	}
}

enum ctl_exit verb_clients(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	_cleanup_(listing_free) struct listing l;
	enum ctl_exit rc = listing_begin(&l, ctl, "client", columns, COL_MAX);

	if (!rc)
		rc = admin_open(&ctl->opt, &a);
	if (!rc)
		rc = add_pages(&a, &l);
	return rc ? rc : listing_print(&l, "kvpool.clients/1");
}
