/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/confirm.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static enum ctl_exit call(struct admin *a, const struct options *o, int dry_run,
			  const Kvpool__FlushReply **ret)
{
	Kvpool__Flush request = KVPOOL__FLUSH__INIT;
	const void *reply;
	enum ctl_exit rc;

	if (o->namespace)
		request.namespace_ = (char *)o->namespace;
	request.dry_run = dry_run;
	a->about = o->namespace;
	rc = admin_call(a, OP_FLUSH, &request.base, &reply);
	if (!rc)
		*ret = reply;
	return rc;
}

/* Counts first, so that the question names what is at stake. */
static enum ctl_exit ask(struct admin *a, const struct ctl *ctl)
{
	const Kvpool__FlushReply *r;
	enum ctl_exit rc = call(a, &ctl->opt, 1, &r);

	if (rc)
		return rc;
	return confirm_ask("Drop %s blocks (%s) of %" PRIu32 " namespace%s",
			   units_count(r->freed_blocks + r->kept_blocks).text,
			   units_bytes(r->freed_bytes, 0).text, r->namespaces,
			   r->namespaces == 1 ? "" : "s");
}

static void print(const struct options *o, const Kvpool__FlushReply *r)
{
	printf("%s %s blocks (%s) of %" PRIu32 " namespace%s",
	       o->dry_run ? "would drop" : "dropped", units_count(r->freed_blocks).text,
	       units_bytes(r->freed_bytes, o->bytes).text, r->namespaces,
	       r->namespaces == 1 ? "" : "s");
	if (r->voided_blocks)
		printf(", %s %s reserved ones", o->dry_run ? "void" : "voided",
		       units_count(r->voided_blocks).text);
	if (r->dropped_pins)
		printf(", %s %" PRIu32 " pin%s", o->dry_run ? "unpin" : "and", r->dropped_pins,
		       r->dropped_pins == 1 ? "" : "s");
	putchar('\n');
	if (r->kept_blocks)
		printf("%s blocks are being read: %s freed when their last reader lets go\n",
		       units_count(r->kept_blocks).text,
		       o->dry_run ? "they would be" : "no longer found, and");
}

static json_t *flush_json(const struct options *o, const Kvpool__FlushReply *r)
{
	json_t *j = report_new("kvpool.flush/1");

	report_text(j, "namespace", o->namespace ? o->namespace : "");
	report_bool(j, "dry_run", o->dry_run);
	report_u64(j, "namespaces", r->namespaces);
	report_u64(j, "freed_blocks", r->freed_blocks);
	report_u64(j, "freed_bytes", r->freed_bytes);
	report_u64(j, "kept_blocks", r->kept_blocks);
	report_u64(j, "voided_blocks", r->voided_blocks);
	report_u64(j, "dropped_pins", r->dropped_pins);
	return j;
}

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__FlushReply *r)
{
	enum ctl_exit rc = EXIT_OK;

	if (report_wanted(ctl))
		rc = report_print(ctl, flush_json(&ctl->opt, r));
	else if (!ctl->opt.quiet)
		print(&ctl->opt, r);
	return rc ? rc : r->kept_blocks ? EXIT_PARTLY : EXIT_OK;
}

enum ctl_exit verb_flush(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const Kvpool__FlushReply *r;

	if (!rc && confirm_wanted(ctl))
		rc = ask(&a, ctl);
	if (!rc)
		rc = call(&a, &ctl->opt, ctl->opt.dry_run, &r);
	return rc ? rc : tell(ctl, r);
}
