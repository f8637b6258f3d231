/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "tools/kvpoolctl/facts.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/verb.h"

static enum ctl_exit tell(const struct ctl *ctl, const struct object *found)
{
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.show/1");
		report_text(o, "kind", found->kind->noun);
		report_add(o, "object", json_incref(found->json));
		return report_print(ctl, o);
	}
	if (ctl->opt.quiet)
		return EXIT_OK;
	printf("%s\n", found->kind->noun);
	facts_print(found->json, ctl->opt.bytes, stdout);
	return EXIT_OK;
}

enum ctl_exit verb_show(const struct ctl *ctl)
{
	_cleanup_(object_free) struct object found = { 0 };
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);

	if (!rc)
		rc = objects_find(&a, OBJECTS_ALL, verb_arg(ctl, 1), &found);
	return rc ? rc : tell(ctl, &found);
}
