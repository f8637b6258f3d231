/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/report.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/say.h"

#define REAL_DIGITS 12 /* microseconds of an uptime of many days */

int report_wanted(const struct ctl *ctl)
{
	return ctl->opt.json != OPTIONS_JSON_OFF;
}

json_t *report_new(const char *schema)
{
	json_t *o = json_object();

	report_text(o, "schema", schema);
	return o;
}

void report_add(json_t *o, const char *name, json_t *value)
{
	json_object_set_new(o, name, value);
}

void report_u64(json_t *o, const char *name, uint64_t n)
{
	report_add(o, name, n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n));
}

void report_bool(json_t *o, const char *name, int b)
{
	report_add(o, name, json_boolean(b));
}

void report_text(json_t *o, const char *name, const char *text)
{
	_cleanup_free_ char *clean = cell_clean(text);

	report_add(o, name, clean && *clean ? json_string(clean) : json_null());
}

void report_seconds(json_t *o, const char *name, uint64_t ns)
{
	report_add(o, name, json_real((double)ns / NSEC_PER_SEC));
}

void report_known(json_t *o, const char *name, uint64_t n)
{
	if (n)
		report_u64(o, name, n);
	else
		report_add(o, name, json_null());
}

void report_known_seconds(json_t *o, const char *name, uint64_t ns)
{
	if (ns)
		report_seconds(o, name, ns);
	else
		report_add(o, name, json_null());
}

enum ctl_exit report_print(const struct ctl *ctl, json_t *o)
{
	int pretty = ctl->opt.json == OPTIONS_JSON_PRETTY ||
		     (ctl->opt.json == OPTIONS_JSON_AUTO && ctl->style.terminal);
	size_t flags = JSON_REAL_PRECISION(REAL_DIGITS) | (pretty ? JSON_INDENT(2) : JSON_COMPACT);

	if (!o)
		return say_error(EXIT_FAILED, "out of memory");
	if (!ctl->opt.quiet) {
		json_dumpf(o, stdout, flags);
		putchar('\n');
	}
	json_decref(o);
	return EXIT_OK;
}
