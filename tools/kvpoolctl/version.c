/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/version.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "client/kvpool.h"
#include "proto/kvpool.pb-c.h"
#include "shm/layout.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/verb.h"

static const char *range(uint32_t min, uint32_t max, char *buf, size_t n)
{
	if (min == max)
		snprintf(buf, n, "%" PRIu32, max);
	else
		snprintf(buf, n, "%" PRIu32 "-%" PRIu32, min, max);
	return buf;
}

static void print_line(FILE *out, const char *name, const char *version, uint32_t min, uint32_t max,
		       uint32_t layout)
{
	char protocol[32];

	fprintf(out, "%-10s %-8s protocol %s, layout %" PRIu32 "\n", name, version,
		range(min, max, protocol, sizeof(protocol)), layout);
}

void version_print(FILE *out)
{
	print_line(out, "kvpoolctl", VERSION, PROTOCOL_MIN, PROTOCOL_MAX, LAYOUT_VERSION);
	fprintf(out, "%-10s %s\n", "libkvpool", KVPOOL_VERSION);
}

static json_t *part_json(const char *version, uint32_t min, uint32_t max, uint32_t layout)
{
	json_t *o = json_object();

	report_text(o, "version", version);
	report_u64(o, "protocol_min", min);
	report_u64(o, "protocol_max", max);
	report_u64(o, "layout", layout);
	return o;
}

/* r: NULL when the daemon was not reached. */
static json_t *version_json(const Kvpool__VersionReply *r)
{
	json_t *o = report_new("kvpool.version/1");

	report_add(o, "kvpoolctl", part_json(VERSION, PROTOCOL_MIN, PROTOCOL_MAX, LAYOUT_VERSION));
	report_text(o, "libkvpool", KVPOOL_VERSION);
	report_add(o, "kvpoold",
		   r ? part_json(r->daemon, r->protocol_min, r->protocol_max, r->layout)
		     : json_null());
	return o;
}

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__VersionReply *r)
{
	_cleanup_free_ char *daemon = NULL;

	if (report_wanted(ctl))
		return report_print(ctl, version_json(r));
	if (ctl->opt.quiet)
		return EXIT_OK;
	version_print(stdout);
	if (r) {
		daemon = cell_clean(r->daemon);
		print_line(stdout, "kvpoold", daemon ? daemon : "-", r->protocol_min,
			   r->protocol_max, r->layout);
	} else {
		printf("%-10s %s\n", "kvpoold", "-");
	}
	return EXIT_OK;
}

/* What is known here is printed also when the daemon is not there; the status still says so. */
enum ctl_exit verb_version(const struct ctl *ctl)
{
	Kvpool__Version request = KVPOOL__VERSION__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a), printed;
	const void *reply = NULL;

	if (!rc)
		rc = admin_call(&a, OP_VERSION, &request.base, &reply);
	printed = tell(ctl, rc ? NULL : reply);
	return rc ? rc : printed;
}
