/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

enum {
	COL_ID,
	COL_NAMESPACE,
	COL_TOKENS,
	COL_SIZE,
	COL_HITS,
	COL_HIT_TOKENS,
	COL_READERS,
	COL_WRITER,
	COL_AGE,
	COL_USED,
	COL_NEXT,
	COL_ONCE,
	COL_PINNED,
	COL_LABEL,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_ID] = { "ID", 0, "Start of the key of its deepest block" },
	[COL_NAMESPACE] = { "NAMESPACE", TABLE_ELASTIC, "Model of the namespace" },
	[COL_TOKENS] = { "TOKENS", TABLE_RIGHT, "Its length" },
	[COL_SIZE] = { "SIZE", TABLE_RIGHT, "Bytes of the whole prefix" },
	[COL_HITS] = { "HITS", TABLE_RIGHT,
		       "Lookups that ended here, as far as they were tracked" },
	[COL_HIT_TOKENS] = { "HITTOKENS", TABLE_RIGHT | TABLE_EXTRA, "Tokens of these" },
	[COL_READERS] = { "READERS", TABLE_RIGHT, "Clients among them" },
	[COL_WRITER] = { "WRITER", TABLE_ELASTIC | TABLE_EXTRA,
			 "The client that stored it, if it is attached" },
	[COL_AGE] = { "AGE", TABLE_RIGHT | TABLE_EXTRA, "Since it was first seen" },
	[COL_USED] = { "USED", TABLE_RIGHT, "Since it was last used" },
	[COL_NEXT] = { "NEXT", TABLE_RIGHT, "Different continuations that are cached" },
	[COL_ONCE] = { "ONCE", TABLE_RIGHT | TABLE_EXTRA,
		       "Of these: with nothing below, used by one client" },
	[COL_PINNED] = { "PINNED", TABLE_RIGHT, "Until its pin ends, \"ever\" without a TTL" },
	[COL_LABEL] = { "LABEL", TABLE_ELASTIC | TABLE_EXTRA, "Label of its pin" },
};

static void add_tracked(struct listing *l, const Kvpool__PrefixItem *p)
{
	listing_cell(l, COL_HITS, "%s", units_count(p->hits).text);
	listing_cell(l, COL_HIT_TOKENS, "%s", units_count(p->hit_tokens).text);
	listing_cell(l, COL_READERS, "%" PRIu32, p->readers);
	listing_cell(l, COL_AGE, "%s", units_duration(p->age_ns).text);
	listing_cell(l, COL_USED, "%s", units_duration(p->used_ns).text);
}

static void add_row(struct listing *l, const void *item)
{
	const Kvpool__PrefixItem *p = item;

	listing_cell(l, COL_ID, "%s", p->id);
	listing_cell(l, COL_NAMESPACE, "%s", p->namespace_);
	listing_cell(l, COL_TOKENS, "%s", units_count(p->tokens).text);
	listing_cell(l, COL_SIZE, "%s", units_bytes(p->bytes, l->ctl->opt.bytes).text);
	if (p->tracked)
		add_tracked(l, p);
	listing_cell(l, COL_WRITER, "%s", p->writer);
	listing_cell(l, COL_NEXT, "%" PRIu32, p->children);
	listing_cell(l, COL_ONCE, "%" PRIu32, p->children_once);
	if (p->pinned)
		listing_cell(l, COL_PINNED, "%s",
			     p->pin_left_ns ? units_duration(p->pin_left_ns).text : "ever");
	listing_cell(l, COL_LABEL, "%s", p->pin_label);
}

/* What is known only of a prefix that is tracked; a number of it may be 0. */
static void add_known(json_t *o, const char *name, const Kvpool__PrefixItem *p, uint64_t n)
{
	report_add(o, name, p->tracked ? json_integer((json_int_t)n) : json_null());
}

static json_t *item_json(const void *item)
{
	const Kvpool__PrefixItem *p = item;
	json_t *o = json_object();

	report_text(o, "id", p->id);
	report_u64(o, "namespace", p->ns);
	report_text(o, "model", p->namespace_);
	report_u64(o, "tokens", p->tokens);
	report_u64(o, "bytes", p->bytes);
	report_bool(o, "tracked", p->tracked);
	add_known(o, "hits", p, p->hits);
	add_known(o, "hit_tokens", p, p->hit_tokens);
	add_known(o, "readers", p, p->readers);
	report_text(o, "writer", p->writer);
	report_known_seconds(o, "age_seconds", p->age_ns);
	report_known_seconds(o, "idle_seconds", p->used_ns);
	report_u64(o, "children", p->children);
	report_u64(o, "children_once", p->children_once);
	report_bool(o, "pinned", p->pinned);
	report_text(o, "pin_label", p->pin_label);
	report_known_seconds(o, "pin_left_seconds", p->pin_left_ns);
	return o;
}

const struct listing_kind prefixes_listing = { "prefix", "prefixes", "kvpool.prefixes/1",
					       columns,  COL_MAX,    OP_PREFIXES,
					       add_row,  item_json };

static enum ctl_exit find_sort(const char *name, uint32_t *ret)
{
	static const char *const names[] = {
		[SORT_HITS] = "hits",
		[SORT_BYTES] = "bytes",
		[SORT_AGE] = "age",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!name || !strcmp(name, names[i])) {
			*ret = i;
			return EXIT_OK;
		}
	return say_error(EXIT_USAGE, "--sort %s is no order: use hits, bytes or age", name);
}

enum ctl_exit verb_prefixes(const struct ctl *ctl)
{
	Kvpool__Prefixes request = KVPOOL__PREFIXES__INIT;
	enum ctl_exit rc = find_sort(ctl->opt.sort, &request.sort);

	if (ctl->opt.namespace)
		request.namespace_ = (char *)ctl->opt.namespace;
	request.limit = (uint32_t)ctl->opt.limit;
	return rc ? rc : listing_run(ctl, &prefixes_listing, &request.base);
}
