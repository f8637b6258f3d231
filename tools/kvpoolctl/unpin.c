/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/confirm.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__UnpinReply *r)
{
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.unpin/1");
		report_u64(o, "pins", r->pins);
		report_u64(o, "bytes", r->bytes);
		return report_print(ctl, o);
	}
	if (!ctl->opt.quiet)
		printf("took back %" PRIu32 " pin%s, %s of the budget\n", r->pins,
		       r->pins == 1 ? "" : "s", units_bytes(r->bytes, ctl->opt.bytes).text);
	return EXIT_OK;
}

static enum ctl_exit find_pin(struct admin *a, const char *id, uint64_t *ret)
{
	struct object o = { 0 };
	enum ctl_exit rc = objects_find(a, OBJECTS_PIN, id, &o);

	if (!rc)
		*ret = object_number(&o, "pin");
	object_free(&o);
	return rc;
}

enum ctl_exit verb_unpin(const struct ctl *ctl)
{
	Kvpool__Unpin request = KVPOOL__UNPIN__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	const char *id = verb_arg(ctl, 1);
	enum ctl_exit rc;
	const void *reply;

	if (!!id + !!ctl->opt.label + ctl->opt.all != 1)
		return say_error(EXIT_USAGE, "\"unpin\" needs one of an ID, --label TEXT and --all "
					     "(see kvpoolctl unpin --help)");
	rc = admin_open(&ctl->opt, &a);
	if (!rc && id)
		rc = find_pin(&a, id, &request.pin);
	if (!rc && ctl->opt.all && confirm_wanted(ctl))
		rc = confirm_ask("Take back every pin");
	if (rc)
		return rc;
	if (ctl->opt.label)
		request.label = (char *)ctl->opt.label;
	request.all = ctl->opt.all;
	a.about = id ? id : ctl->opt.label;
	rc = admin_call(&a, OP_UNPIN, &request.base, &reply);
	return rc ? rc : tell(ctl, reply);
}
