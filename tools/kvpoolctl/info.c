/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/info.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/facts.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/status.h"
#include "tools/kvpoolctl/verb.h"

static const char *const sections[] = { "daemon", "pool", "counters", "reasons", "pins", "health" };

const char *info_section(unsigned int i)
{
	return i < ARRAY_SIZE(sections) ? sections[i] : NULL;
}

static int is_section(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strcmp(name, sections[i]))
			return 1;
	return 0;
}

/* The members of the status that are single values. */
static json_t *daemon_section(const json_t *status)
{
	json_t *o = json_object(), *v;
	const char *name;

	json_object_foreach((json_t *)status, name,
			    v) if (strcmp(name, "schema") && !json_is_object(v) &&
				   !json_is_array(v) && strcmp(name, "miss_tokens_by_reason"))
		json_object_set(o, name, v);
	return o;
}

/* A new reference. */
static json_t *get_section(const json_t *status, const char *name)
{
	if (!strcmp(name, "daemon"))
		return daemon_section(status);
	if (!strcmp(name, "pool"))
		return json_incref(json_array_get(json_object_get(status, "tiers"), 0));
	if (!strcmp(name, "reasons"))
		return json_incref(json_object_get(status, "miss_tokens_by_reason"));
	return json_incref(json_object_get(status, name));
}

static void print(const json_t *status, const char *only)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		json_t *section;

		if (only && strcmp(only, sections[i]))
			continue;
		section = get_section(status, sections[i]);
		if (!only)
			printf("%s# %s\n", i ? "\n" : "", sections[i]);
		if (json_is_object(section))
			facts_flat(section, "", stdout);
		json_decref(section);
	}
}

static json_t *info_json(const json_t *status, const char *only)
{
	json_t *o = report_new("kvpool.info/1");

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!only || !strcmp(only, sections[i]))
			report_add(o, sections[i], get_section(status, sections[i]));
	return o;
}

static enum ctl_exit tell(const struct ctl *ctl, const json_t *status)
{
	const char *only = verb_arg(ctl, 1);

	if (report_wanted(ctl))
		return report_print(ctl, info_json(status, only));
	if (!ctl->opt.quiet)
		print(status, only);
	return EXIT_OK;
}

enum ctl_exit verb_info(const struct ctl *ctl)
{
	Kvpool__Status request = KVPOOL__STATUS__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	const void *reply;
	enum ctl_exit rc;
	json_t *status;

	if (verb_arg(ctl, 1) && !is_section(verb_arg(ctl, 1)))
		return say_error(
			EXIT_NO_OBJECT,
			"there is no section \"%s\": daemon, pool, counters, reasons, pins "
			"and health are",
			verb_arg(ctl, 1));
	rc = admin_open(&ctl->opt, &a);
	request.raw = ctl->opt.raw;
	if (!rc)
		rc = admin_call(&a, OP_STATUS, &request.base, &reply);
	if (rc)
		return rc;
	status = status_json(reply);
	rc = tell(ctl, status);
	json_decref(status);
	return rc;
}
