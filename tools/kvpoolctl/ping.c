/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static json_t *ping_json(const struct admin *a, const Kvpool__PingReply *r, uint64_t took)
{
	json_t *o = report_new("kvpool.ping/1");

	report_text(o, "socket", admin_path(a));
	report_seconds(o, "seconds", took);
	report_seconds(o, "uptime_seconds", r->uptime_ns);
	return o;
}

enum ctl_exit verb_ping(const struct ctl *ctl)
{
	Kvpool__Ping request = KVPOOL__PING__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const Kvpool__PingReply *r;
	uint64_t sent, took;
	const void *reply;

	if (rc)
		return rc;
	sent = clock_ns();
	rc = admin_call(&a, OP_PING, &request.base, &reply);
	took = clock_ns() - sent;
	if (rc)
		return rc;
	r = reply;
	if (report_wanted(ctl))
		return report_print(ctl, ping_json(&a, r, took));
	if (!ctl->opt.quiet)
		printf("kvpoold at %s answered in %.2f ms, up %s\n", admin_path(&a),
		       (double)took / NSEC_PER_MSEC, units_duration(r->uptime_ns).text);
	return EXIT_OK;
}
