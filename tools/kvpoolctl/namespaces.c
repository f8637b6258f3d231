/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/listing.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

#define ID_DIGITS 12 /* of the fingerprint, as everywhere that people read one */

enum {
	COL_NUMBER,
	COL_MODEL,
	COL_ID,
	COL_BLOCK,
	COL_TOKEN,
	COL_BLOCKS,
	COL_TOKENS,
	COL_CACHED,
	COL_LEASED,
	COL_WRITING,
	COL_EXTENTS,
	COL_HELD,
	COL_LOOKUPS,
	COL_ASKED,
	COL_HIT,
	COL_USED,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_NUMBER] = { "NUMBER", TABLE_RIGHT | TABLE_EXTRA },
	[COL_MODEL] = { "MODEL", TABLE_ELASTIC },
	[COL_ID] = { "FINGERPRINT", 0 },
	[COL_BLOCK] = { "BLOCK", TABLE_RIGHT | TABLE_EXTRA },
	[COL_TOKEN] = { "B/TOKEN", TABLE_RIGHT },
	[COL_BLOCKS] = { "BLOCKS", TABLE_RIGHT },
	[COL_TOKENS] = { "TOKENS", TABLE_RIGHT },
	[COL_CACHED] = { "CACHED", TABLE_RIGHT },
	[COL_LEASED] = { "LEASED", TABLE_RIGHT | TABLE_EXTRA },
	[COL_WRITING] = { "WRITING", TABLE_RIGHT | TABLE_EXTRA },
	[COL_EXTENTS] = { "EXTENTS", TABLE_RIGHT | TABLE_EXTRA },
	[COL_HELD] = { "HELD", TABLE_RIGHT | TABLE_EXTRA },
	[COL_LOOKUPS] = { "LOOKUPS", TABLE_RIGHT | TABLE_EXTRA },
	[COL_ASKED] = { "ASKED", TABLE_RIGHT | TABLE_EXTRA },
	[COL_HIT] = { "HIT%", TABLE_RIGHT },
	[COL_USED] = { "USED", TABLE_RIGHT },
};

static_assert(COL_MAX <= TABLE_COLUMNS_MAX, "");

/* How long ago it was used last. */
static uint64_t idle_ns(const Kvpool__NamespaceItem *n, uint64_t now)
{
	return now - MIN(n->used_ns, now);
}

static void add_row(struct listing *l, const Kvpool__NamespaceItem *n, uint64_t now)
{
	int exact = l->ctl->opt.bytes;

	listing_row(l);
	listing_cell(l, COL_NUMBER, "%" PRIu32, n->ns);
	listing_cell(l, COL_MODEL, "%s", n->model);
	listing_cell(l, COL_ID, "%.*s", ID_DIGITS, n->fingerprint);
	listing_cell(l, COL_BLOCK, "%" PRIu32, n->block_tokens);
	if (n->block_tokens)
		listing_cell(l, COL_TOKEN, "%s",
			     units_count(n->block_bytes / n->block_tokens).text);
	listing_cell(l, COL_BLOCKS, "%s", units_count(n->blocks).text);
	listing_cell(l, COL_TOKENS, "%s", units_count(n->blocks * n->block_tokens).text);
	listing_cell(l, COL_CACHED, "%s", units_bytes(n->blocks * n->block_bytes, exact).text);
	listing_cell(l, COL_LEASED, "%s",
		     units_bytes(n->leased_blocks * n->block_bytes, exact).text);
	listing_cell(l, COL_WRITING, "%s", units_count(n->writing_blocks).text);
	listing_cell(l, COL_EXTENTS, "%s", units_count(n->extents).text);
	listing_cell(l, COL_HELD, "%s", units_bytes(n->extent_bytes, exact).text);
	listing_cell(l, COL_LOOKUPS, "%s", units_count(n->lookups).text);
	listing_cell(l, COL_ASKED, "%s", units_count(n->asked_tokens).text);
	listing_cell(l, COL_HIT, "%s", units_percent(n->hit_tokens, n->asked_tokens).text);
	listing_cell(l, COL_USED, "%s", n->used_ns ? units_duration(idle_ns(n, now)).text : "-");
}

static json_t *item_json(const Kvpool__NamespaceItem *n, uint64_t now)
{
	json_t *o = json_object();

	report_u64(o, "namespace", n->ns);
	report_text(o, "model", n->model);
	report_text(o, "fingerprint", n->fingerprint);
	report_u64(o, "block_tokens", n->block_tokens);
	report_u64(o, "block_bytes", n->block_bytes);
	report_u64(o, "blocks", n->blocks);
	report_u64(o, "cached_tokens", n->blocks * n->block_tokens);
	report_u64(o, "cached_bytes", n->blocks * n->block_bytes);
	report_u64(o, "leased_blocks", n->leased_blocks);
	report_u64(o, "writing_blocks", n->writing_blocks);
	report_u64(o, "extents", n->extents);
	report_u64(o, "extent_bytes", n->extent_bytes);
	report_u64(o, "lookups", n->lookups);
	report_u64(o, "lookup_tokens", n->asked_tokens);
	report_u64(o, "hit_tokens", n->hit_tokens);
	if (n->used_ns)
		report_seconds(o, "idle_seconds", idle_ns(n, now));
	else
		report_add(o, "idle_seconds", json_null());
	return o;
}

static void add_page(struct listing *l, const Kvpool__NamespacesReply *reply)
{
	uint64_t now = clock_ns();

	for (size_t i = 0; i < reply->n_items; i++)
		if (l->items)
			listing_item(l, item_json(reply->items[i], now));
		else
			add_row(l, reply->items[i], now);
}

static enum ctl_exit add_pages(struct admin *a, struct listing *l)
{
	Kvpool__Namespaces request = KVPOOL__NAMESPACES__INIT;
	const Kvpool__NamespacesReply *reply;
	const void *message;
	enum ctl_exit rc;

	for (;;) {
		rc = admin_call(a, OP_NAMESPACES, &request.base, &message);
		if (rc)
			return rc;
		reply = message;
		add_page(l, reply);
		if (!reply->next)
			return EXIT_OK;
		if (reply->next <= request.after)
			return say_error(EXIT_FAILED,
					 "kvpoold at %s sends its list of namespaces in circles",
					 admin_path(a));
		request.after = reply->next;
	}
}

enum ctl_exit verb_namespaces(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	_cleanup_(listing_free) struct listing l;
	enum ctl_exit rc = listing_begin(&l, ctl, "namespace", columns, COL_MAX);

	if (!rc)
		rc = admin_open(&ctl->opt, &a);
	if (!rc)
		rc = add_pages(&a, &l);
	return rc ? rc : listing_print(&l, "kvpool.namespaces/1");
}
