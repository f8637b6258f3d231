/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/pages.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/status.h"
#include "tools/kvpoolctl/verb.h"

#define ALL_PREFIXES 64u
#define ALL_REQUESTS 256u

static enum ctl_exit add_status(struct admin *a, const struct ctl *ctl, json_t *o)
{
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	const void *reply;
	enum ctl_exit rc;

	request.raw = ctl->opt.raw;
	rc = admin_call(a, OP_STATUS, &request.base, &reply);
	if (!rc)
		report_add(o, "status", status_json(reply));
	return rc;
}

/* A list, and what makes its items. */
struct list {
	const struct listing_kind *kind;
	json_t *items;
};

static void add_item(void *data, const void *item)
{
	struct list *l = data;

	json_array_append_new(l->items, l->kind->json(item));
}

/* What the daemon does not know of is null. */
static enum ctl_exit add_list(struct admin *a, json_t *o, const struct listing_kind *kind,
			      ProtobufCMessage *request)
{
	struct list l = { kind, json_array() };
	enum ctl_exit rc = pages_each(a, kind->op, request, add_item, &l);

	if (rc && a->code == ERROR_UNKNOWN_OP) {
		json_decref(l.items);
		l.items = json_null();
		rc = EXIT_OK;
	}
	report_add(o, kind->nouns, l.items);
	return rc;
}

/*
 * Prefixes and lookups have no pages that go on where one ended: their first one is what there is
 * room for.
 */
static enum ctl_exit add_all(struct admin *a, json_t *o)
{
	Kvpool__Prefixes prefixes = KVPOOL__PREFIXES__INIT;
	Kvpool__Requests requests = KVPOOL__REQUESTS__INIT;
	const struct {
		const struct listing_kind *kind;
		ProtobufCMessage *request;
	} lists[] = {
		{ &namespaces_listing, NULL },
		{ &clients_listing, NULL },
		{ &pins_listing, NULL },
		{ &prefixes_listing, &prefixes.base },
		{ &requests_listing, &requests.base },
		{ &config_listing, NULL },
	};
	enum ctl_exit rc = EXIT_OK;

	prefixes.limit = ALL_PREFIXES;
	requests.limit = ALL_REQUESTS;
	for (size_t i = 0; i < ARRAY_SIZE(lists) && !rc; i++)
		rc = add_list(a, o, lists[i].kind, lists[i].request);
	return rc;
}

enum ctl_exit verb_dump(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	struct ctl json = *ctl;
	json_t *o;

	if (rc)
		return rc;
	a.expected = 1u << ERROR_UNKNOWN_OP;
	o = report_new("kvpool.dump/1");
	rc = add_status(&a, ctl, o);
	if (!rc)
		rc = add_all(&a, o);
	if (rc) {
		json_decref(o);
		return rc;
	}
	if (!report_wanted(ctl))
		json.opt.json = OPTIONS_JSON_AUTO;
	return report_print(&json, o);
}
