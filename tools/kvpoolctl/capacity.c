/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/estimate.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/pages.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

enum {
	COL_MODEL,
	COL_ID,
	COL_BLOCK,
	COL_TOKEN,
	COL_USED,
	COL_FREE,
	COL_EMPTY,
	COL_RESIZED,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_MODEL] = { "MODEL", TABLE_ELASTIC, "Name of the model" },
	[COL_ID] = { "FINGERPRINT", TABLE_EXTRA, "Start of the value that its keys start from" },
	[COL_BLOCK] = { "BLOCK", TABLE_RIGHT | TABLE_EXTRA, "Tokens of a block" },
	[COL_TOKEN] = { "B/TOKEN", TABLE_RIGHT, "Bytes of a token" },
	[COL_USED] = { "USED", TABLE_RIGHT, "Tokens that are cached" },
	[COL_FREE] = { "FREE", TABLE_RIGHT, "Tokens that could be stored without evicting" },
	[COL_EMPTY] = { "EMPTY", TABLE_RIGHT, "Tokens that would fit if the pool were empty" },
	[COL_RESIZED] = { "RESIZED", TABLE_RIGHT | TABLE_EXTRA,
			  "The same in a pool of --pool-size; shown with it" },
};

/* A namespace, or its size in tokens, and a listing of it: what --pool-size asks for is beside. */
struct capacity {
	struct listing l;
	uint64_t pool_bytes; /* of --pool-size, 0: none */
	const char *only;    /* the fingerprint of --namespace, NULL: all */
};

static void add_row(struct listing *l, const void *item)
{
	const Kvpool__NamespaceItem *n = item;
	uint64_t tokens = n->block_tokens;

	listing_cell(l, COL_MODEL, "%s", n->model);
	listing_cell(l, COL_ID, "%.12s", n->fingerprint);
	listing_cell(l, COL_BLOCK, "%" PRIu64, tokens);
	if (tokens)
		listing_cell(l, COL_TOKEN, "%s", units_count(n->block_bytes / tokens).text);
	listing_cell(l, COL_USED, "%s", units_count(n->blocks * tokens).text);
	/* Room for nothing, however empty: a daemon that does not say. */
	if (!n->empty_blocks)
		return;
	listing_cell(l, COL_FREE, "%s", units_count(n->free_blocks * tokens).text);
	listing_cell(l, COL_EMPTY, "%s", units_count(n->empty_blocks * tokens).text);
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
	report_u64(o, "cached_tokens", n->blocks * n->block_tokens);
	if (n->empty_blocks)
		report_u64(o, "free_tokens", n->free_blocks * n->block_tokens);
	else
		report_add(o, "free_tokens", json_null());
	report_known(o, "empty_tokens", n->empty_blocks * n->block_tokens);
	return o;
}

const struct listing_kind capacity_listing = { "namespace", "namespaces", "kvpool.capacity/1",
					       columns,     COL_MAX,      OP_NAMESPACES,
					       add_row,     item_json };

static uint64_t resized_tokens(const struct capacity *c, const Kvpool__NamespaceItem *n)
{
	return shape_pool_blocks(c->pool_bytes, n->block_bytes) * n->block_tokens;
}

static void add_namespace(void *data, const void *item)
{
	struct capacity *c = data;
	const Kvpool__NamespaceItem *n = item;
	json_t *last;

	if (c->only && strcmp(c->only, n->fingerprint))
		return;
	listing_add(&c->l, item);
	if (c->l.items) {
		last = json_array_get(c->l.items, json_array_size(c->l.items) - 1);
		report_known(last, "resized_tokens", c->pool_bytes ? resized_tokens(c, n) : 0);
	} else if (c->pool_bytes) {
		listing_cell(&c->l, COL_RESIZED, "%s", units_count(resized_tokens(c, n)).text);
	}
}

static enum ctl_exit ask(const struct ctl *ctl, struct capacity *c)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	_cleanup_(object_free) struct object ns = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);

	if (!rc && ctl->opt.namespace)
		rc = objects_find(&a, OBJECTS_NAMESPACE, ctl->opt.namespace, &ns);
	if (rc)
		return rc;
	c->only = ctl->opt.namespace ? object_text(&ns, "fingerprint") : NULL;
	rc = pages_each(&a, OP_NAMESPACES, NULL, add_namespace, c);
	c->only = NULL;
	return rc;
}

static enum ctl_exit list(const struct ctl *ctl, struct capacity *c)
{
	struct ctl shown = *ctl;
	enum ctl_exit rc;

	if (c->pool_bytes && !ctl->opt.columns)
		shown.opt.columns = "model,b/token,used,free,empty,resized";
	rc = listing_begin(&c->l, &shown, &capacity_listing);
	if (!rc)
		rc = ask(ctl, c);
	if (!rc)
		rc = listing_print(&c->l);
	listing_free(&c->l);
	return rc;
}

enum ctl_exit verb_capacity(const struct ctl *ctl)
{
	const struct options *o = &ctl->opt;
	struct capacity c = { 0 };
	const char *why;

	if (o->pool_size && parse_size(o->pool_size, 0, &c.pool_bytes, &why))
		return say_error(EXIT_USAGE, "--pool-size %s %s: write it as 16G", o->pool_size,
				 why);
	if (estimate_wanted(o))
		return estimate_print(ctl, c.pool_bytes);
	return list(ctl, &c);
}
