/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/pages.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

enum {
	COL_PIN,
	COL_ID,
	COL_NAMESPACE,
	COL_TOKENS,
	COL_SIZE,
	COL_LEFT,
	COL_PRIORITY,
	COL_AGE,
	COL_LABEL,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_PIN] = { "PIN", TABLE_RIGHT, "Its number" },
	[COL_ID] = { "ID", 0, "Start of the key of its deepest block" },
	[COL_NAMESPACE] = { "NAMESPACE", TABLE_ELASTIC, "Model of the namespace" },
	[COL_TOKENS] = { "TOKENS", TABLE_RIGHT, "Tokens that it keeps" },
	[COL_SIZE] = { "SIZE", TABLE_RIGHT,
		       "Bytes of its blocks; what pins share takes the budget once" },
	[COL_LEFT] = { "LEFT", TABLE_RIGHT, "Until it ends, \"never\" when it has no TTL" },
	[COL_PRIORITY] = { "PRIORITY", TABLE_RIGHT | TABLE_EXTRA,
			   "Low ones go first when the budget shrinks" },
	[COL_AGE] = { "AGE", TABLE_RIGHT | TABLE_EXTRA, "Since it was made" },
	[COL_LABEL] = { "LABEL", TABLE_ELASTIC, "What its maker called it" },
};

static void add_row(struct listing *l, const void *item)
{
	const Kvpool__PinItem *p = item;

	listing_cell(l, COL_PIN, "%" PRIu64, p->pin);
	listing_cell(l, COL_ID, "%s", p->id);
	listing_cell(l, COL_NAMESPACE, "%s", p->namespace_);
	listing_cell(l, COL_TOKENS, "%s", units_count(p->tokens).text);
	listing_cell(l, COL_SIZE, "%s", units_bytes(p->bytes, l->ctl->opt.bytes).text);
	listing_cell(l, COL_LEFT, "%s", p->left_ns ? units_duration(p->left_ns).text : "never");
	listing_cell(l, COL_PRIORITY, "%" PRIu32, p->priority);
	listing_cell(l, COL_AGE, "%s", units_duration(p->age_ns).text);
	listing_cell(l, COL_LABEL, "%s", p->label);
}

static json_t *item_json(const void *item)
{
	const Kvpool__PinItem *p = item;
	json_t *o = json_object();

	report_u64(o, "pin", p->pin);
	report_text(o, "id", p->id);
	report_u64(o, "namespace", p->ns);
	report_text(o, "model", p->namespace_);
	report_u64(o, "tokens", p->tokens);
	report_u64(o, "bytes", p->bytes);
	report_known_seconds(o, "left_seconds", p->left_ns);
	report_u64(o, "priority", p->priority);
	report_seconds(o, "age_seconds", p->age_ns);
	report_text(o, "label", p->label);
	return o;
}

const struct listing_kind pins_listing = { "pin",   "pins",  "kvpool.pins/1", columns,
					   COL_MAX, OP_PINS, add_row,         item_json };

static enum ctl_exit add_budget(struct admin *a, struct listing *l)
{
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	const Kvpool__StatusReply *s;
	const void *reply;
	enum ctl_exit rc = admin_call(a, OP_STATUS, &request.base, &reply);

	if (rc)
		return rc;
	s = reply;
	report_u64(l->more, "used_bytes", s->pinned_bytes);
	report_u64(l->more, "budget_bytes", s->pin_budget_bytes);
	snprintf(l->note, sizeof(l->note), ", %s of a budget of %s",
		 units_bytes_of(s->pinned_bytes, s->pin_budget_bytes, l->ctl->opt.bytes).text,
		 units_bytes(s->pin_budget_bytes, l->ctl->opt.bytes).text);
	return EXIT_OK;
}

enum ctl_exit verb_pins(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	_cleanup_(listing_free) struct listing l;
	enum ctl_exit rc = listing_begin(&l, ctl, &pins_listing);

	if (!rc)
		rc = admin_open(&ctl->opt, &a);
	if (!rc)
		rc = pages_each(&a, OP_PINS, NULL, listing_add, &l);
	if (!rc)
		rc = add_budget(&a, &l);
	return rc ? rc : listing_print(&l);
}
