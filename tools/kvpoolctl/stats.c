/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__StatsResetReply *r)
{
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.stats.reset/1");
		report_seconds(o, "counted_seconds", r->counters_ns);
		return report_print(ctl, o);
	}
	if (!ctl->opt.quiet)
		printf("the counters begin at zero; they had counted for %s\n",
		       units_duration(r->counters_ns).text);
	return EXIT_OK;
}

enum ctl_exit verb_stats(const struct ctl *ctl)
{
	Kvpool__StatsReset request = KVPOOL__STATS_RESET__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	const void *reply;
	enum ctl_exit rc;

	if (strcmp(verb_arg(ctl, 1), "reset"))
		return say_error(EXIT_USAGE,
				 "\"stats\" takes only \"reset\", not \"%s\" (\"status\" "
				 "and \"info counters\" show them)",
				 verb_arg(ctl, 1));
	rc = admin_open(&ctl->opt, &a);
	if (!rc)
		rc = admin_call(&a, OP_STATS_RESET, &request.base, &reply);
	return rc ? rc : tell(ctl, reply);
}
