/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

/* Who turns debugging on tends to forget it. */
#define FOR_NS (600 * NSEC_PER_SEC)

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__LogLevelReply *r)
{
	_cleanup_free_ char *was = cell_clean(r->was), *now = cell_clean(r->now);
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.log-level/1");
		report_text(o, "was", r->was);
		report_text(o, "now", r->now);
		report_known(o, "for_seconds", r->for_s);
		return report_print(ctl, o);
	}
	if (ctl->opt.quiet)
		return EXIT_OK;
	printf("%s", now ? now : "-");
	if (was && *was && now && strcmp(was, now))
		printf(", was %s", was);
	if (r->for_s)
		printf(", for %s", units_duration(r->for_s * NSEC_PER_SEC).text);
	if (r->for_s && verb_arg(ctl, 1) && !ctl->opt.for_ns)
		printf(" (--for forever keeps it)");
	putchar('\n');
	return EXIT_OK;
}

enum ctl_exit verb_log_level(const struct ctl *ctl)
{
	Kvpool__LogLevel request = KVPOOL__LOG_LEVEL__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	const char *level = verb_arg(ctl, 1);
	uint64_t for_ns = ctl->opt.for_ns ? ctl->opt.for_ns : FOR_NS;
	enum ctl_exit rc;
	const void *reply;

	if (ctl->opt.for_ns && !level)
		return say_error(EXIT_USAGE, "--for needs a level: kvpoolctl log-level debug --for "
					     "10m");
	rc = admin_open(&ctl->opt, &a);
	if (rc)
		return rc;
	if (level) {
		request.level = (char *)level;
		if (for_ns != OPTIONS_FOREVER)
			request.for_s = (uint32_t)(for_ns / NSEC_PER_SEC);
	}
	rc = admin_call(&a, OP_LOG_LEVEL, &request.base, &reply);
	/* A level that there is none of is a mistake on the command line, not in a file. */
	if (rc == EXIT_BAD_CONFIG)
		return EXIT_USAGE;
	return rc ? rc : tell(ctl, reply);
}
