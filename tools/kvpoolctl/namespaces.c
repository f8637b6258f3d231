/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
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
	COL_PINNED,
	COL_EXPIRED,
	COL_TTL,
	COL_PRIORITY,
	COL_LOOKUPS,
	COL_ASKED,
	COL_HIT,
	COL_USED,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_NUMBER] = { "NUMBER", TABLE_RIGHT | TABLE_EXTRA, "Number of the namespace" },
	[COL_MODEL] = { "MODEL", TABLE_ELASTIC, "Name of the model" },
	[COL_ID] = { "FINGERPRINT", 0, "Start of the value that its keys start from" },
	[COL_BLOCK] = { "BLOCK", TABLE_RIGHT | TABLE_EXTRA, "Tokens of a block" },
	[COL_TOKEN] = { "B/TOKEN", TABLE_RIGHT, "Bytes of a token" },
	[COL_BLOCKS] = { "BLOCKS", TABLE_RIGHT, "Blocks that are cached" },
	[COL_TOKENS] = { "TOKENS", TABLE_RIGHT, "Tokens that are cached" },
	[COL_CACHED] = { "CACHED", TABLE_RIGHT, "Bytes that are cached" },
	[COL_LEASED] = { "LEASED", TABLE_RIGHT | TABLE_EXTRA, "Bytes that readers hold now" },
	[COL_WRITING] = { "WRITING", TABLE_RIGHT | TABLE_EXTRA,
			  "Blocks that are reserved and not committed" },
	[COL_EXTENTS] = { "EXTENTS", TABLE_RIGHT | TABLE_EXTRA, "Extents that it has" },
	[COL_HELD] = { "HELD", TABLE_RIGHT | TABLE_EXTRA, "Bytes of these" },
	[COL_PINNED] = { "PINNED", TABLE_RIGHT | TABLE_EXTRA, "Blocks that operators pinned" },
	[COL_EXPIRED] = { "EXPIRED", TABLE_RIGHT | TABLE_EXTRA, "Blocks whose TTL was over" },
	[COL_TTL] = { "TTL", TABLE_RIGHT | TABLE_EXTRA, "How long blocks stay unused at most" },
	[COL_PRIORITY] = { "PRIORITY", TABLE_RIGHT | TABLE_EXTRA,
			   "Its priority, 50 is the default" },
	[COL_LOOKUPS] = { "LOOKUPS", TABLE_RIGHT | TABLE_EXTRA, "Lookups" },
	[COL_ASKED] = { "ASKED", TABLE_RIGHT | TABLE_EXTRA, "Tokens asked for" },
	[COL_HIT] = { "HIT%", TABLE_RIGHT, "Part of these that was cached" },
	[COL_USED] = { "USED", TABLE_RIGHT, "How long ago it was used" },
};

static_assert(COL_MAX <= TABLE_COLUMNS_MAX, "");

/* How long ago it was used last. */
static uint64_t idle_ns(const Kvpool__NamespaceItem *n)
{
	uint64_t now = clock_ns();

	return now - MIN(n->used_ns, now);
}

static void add_held(struct listing *l, const Kvpool__NamespaceItem *n, int exact)
{
	listing_cell(l, COL_BLOCKS, "%s", units_count(n->blocks).text);
	listing_cell(l, COL_TOKENS, "%s", units_count(n->blocks * n->block_tokens).text);
	listing_cell(l, COL_CACHED, "%s", units_bytes(n->blocks * n->block_bytes, exact).text);
	listing_cell(l, COL_LEASED, "%s",
		     units_bytes(n->leased_blocks * n->block_bytes, exact).text);
	listing_cell(l, COL_WRITING, "%s", units_count(n->writing_blocks).text);
	listing_cell(l, COL_EXTENTS, "%s", units_count(n->extents).text);
	listing_cell(l, COL_HELD, "%s", units_bytes(n->extent_bytes, exact).text);
	listing_cell(l, COL_PINNED, "%s", units_count(n->pinned_blocks).text);
	listing_cell(l, COL_EXPIRED, "%s", units_count(n->expired_blocks).text);
}

static void add_row(struct listing *l, const void *item)
{
	const Kvpool__NamespaceItem *n = item;

	listing_cell(l, COL_NUMBER, "%" PRIu32, n->ns);
	listing_cell(l, COL_MODEL, "%s", n->model);
	listing_cell(l, COL_ID, "%.*s", ID_DIGITS, n->fingerprint);
	listing_cell(l, COL_BLOCK, "%" PRIu32, n->block_tokens);
	if (n->block_tokens)
		listing_cell(l, COL_TOKEN, "%s",
			     units_count(n->block_bytes / n->block_tokens).text);
	add_held(l, n, l->ctl->opt.bytes);
	listing_cell(l, COL_TTL, "%s", n->ttl_ns ? units_duration(n->ttl_ns).text : "never");
	if (n->priority)
		listing_cell(l, COL_PRIORITY, "%" PRIu32, n->priority);
	listing_cell(l, COL_LOOKUPS, "%s", units_count(n->lookups).text);
	listing_cell(l, COL_ASKED, "%s", units_count(n->asked_tokens).text);
	listing_cell(l, COL_HIT, "%s", units_percent(n->hit_tokens, n->asked_tokens).text);
	if (n->used_ns)
		listing_cell(l, COL_USED, "%s", units_duration(idle_ns(n)).text);
}

/* What its descriptor says of the model; null where the daemon does not know. */
static void add_shape(json_t *o, const Kvpool__NamespaceItem *n)
{
	report_known(o, "layers", n->n_layers);
	report_known(o, "kv_heads", n->n_kv_heads);
	report_known(o, "head_dim_k", n->head_dim_k);
	report_known(o, "head_dim_v", n->head_dim_v);
	report_text(o, "type_k", n->type_k);
	report_text(o, "type_v", n->type_v);
}

static json_t *item_json(const void *item)
{
	const Kvpool__NamespaceItem *n = item;
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
	report_u64(o, "unnamed_blocks", n->unnamed_blocks);
	report_u64(o, "pinned_blocks", n->pinned_blocks);
	report_u64(o, "expired_blocks", n->expired_blocks);
	report_u64(o, "free_blocks", n->free_blocks);
	report_u64(o, "empty_blocks", n->empty_blocks);
	report_known_seconds(o, "ttl_seconds", n->ttl_ns);
	report_known(o, "priority", n->priority);
	report_known_seconds(o, "idle_seconds", n->used_ns ? idle_ns(n) : 0);
	add_shape(o, n);
	return o;
}

const struct listing_kind namespaces_listing = { "namespace", "namespaces", "kvpool.namespaces/1",
						 columns,     COL_MAX,      OP_NAMESPACES,
						 add_row,     item_json };

enum ctl_exit verb_namespaces(const struct ctl *ctl)
{
	return listing_run(ctl, &namespaces_listing, NULL);
}
