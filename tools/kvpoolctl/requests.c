/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/requests.h"

#include <inttypes.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/lookup.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static struct lookup item_lookup(const Kvpool__RequestItem *r)
{
	return (struct lookup){
		.asked_tokens = r->asked_tokens,
		.hit_tokens = r->hit_tokens,
		.from_token = r->from_token,
		.tail_tokens = r->tail_tokens,
		.reason = r->reason,
		.reason_ago_ns = r->reason_ago_ns,
		.children = r->children,
		.children_once = r->children_once,
		.readers = r->readers,
		.id = r->id,
	};
}

static json_t *item_json(const void *item)
{
	const Kvpool__RequestItem *r = item;
	struct lookup l = item_lookup(r);
	json_t *o = json_object();

	report_u64(o, "lookup", r->number);
	report_seconds(o, "ago_seconds", r->ago_ns);
	report_u64(o, "session", r->session);
	report_text(o, "client", r->client);
	report_u64(o, "namespace", r->ns);
	report_text(o, "model", r->namespace_);
	lookup_members(&l, o);
	return o;
}

/* It is words, not a table. */
const struct listing_kind requests_listing = { .noun = "lookup",
					       .nouns = "lookups",
					       .schema = "kvpool.lookups/1",
					       .op = OP_REQUESTS,
					       .json = item_json };

static void print_item(const Kvpool__RequestItem *r)
{
	_cleanup_free_ char *client = cell_clean(r->client), *ns = cell_clean(r->namespace_);
	time_t when = time(NULL) - (time_t)(r->ago_ns / NSEC_PER_SEC);
	struct lookup l = item_lookup(r);
	struct tm tm;
	char clock[16];

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&when, &tm));
	printf("lookup %" PRIu64 "   %s   %s   namespace %s   %s tokens asked\n", r->number, clock,
	       client && *client ? client : "-", ns && *ns ? ns : "-",
	       units_count(r->asked_tokens).text);
	lookup_print(&l, stdout);
}

static void take_page(const struct ctl *ctl, const Kvpool__RequestsReply *r, json_t *items)
{
	for (size_t i = 0; i < r->n_items; i++)
		if (items)
			json_array_append_new(items, item_json(r->items[i]));
		else if (!ctl->opt.quiet)
			print_item(r->items[i]);
}

/* Page by page, until there are as many as were asked for. */
static enum ctl_exit take_pages(const struct ctl *ctl, struct admin *a, uint64_t session,
				json_t *items, uint64_t *ret_n)
{
	Kvpool__Requests request = KVPOOL__REQUESTS__INIT;
	uint64_t want = ctl->opt.limit ? ctl->opt.limit : 1, n = 0;

	request.session = session;
	request.misses = ctl->opt.misses;
	while (n < want) {
		const Kvpool__RequestsReply *r;
		const void *reply;
		enum ctl_exit rc;

		request.limit = (uint32_t)(want - n);
		rc = admin_call(a, OP_REQUESTS, &request.base, &reply);
		if (rc)
			return rc;
		r = reply;
		take_page(ctl, r, items);
		n += r->n_items;
		if (!r->next || (request.before && r->next >= request.before) || !r->n_items)
			break;
		request.before = r->next;
	}
	*ret_n = n;
	return EXIT_OK;
}

static enum ctl_exit find_session(struct admin *a, const char *client, uint64_t *ret)
{
	struct object o = { 0 };
	enum ctl_exit rc;

	if (!client)
		return EXIT_OK;
	rc = objects_find(a, OBJECTS_CLIENT, client, &o);
	if (!rc)
		*ret = object_number(&o, "session");
	object_free(&o);
	return rc;
}

static enum ctl_exit tell(const struct ctl *ctl, json_t *items, uint64_t n)
{
	json_t *o;

	if (!items) {
		if (!n && !ctl->opt.quiet)
			puts("No lookup is remembered.");
		return EXIT_OK;
	}
	o = report_new(requests_listing.schema);
	report_add(o, requests_listing.nouns, items);
	return report_print(ctl, o);
}

enum ctl_exit requests_print(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	json_t *items = report_wanted(ctl) ? json_array() : NULL;
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	uint64_t session = 0, n = 0;

	if (!rc)
		rc = find_session(&a, ctl->opt.client, &session);
	if (!rc)
		rc = take_pages(ctl, &a, session, items, &n);
	if (!rc)
		return tell(ctl, items, n);
	json_decref(items);
	return rc;
}
