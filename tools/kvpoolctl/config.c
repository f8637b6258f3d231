/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/pages.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/verb.h"

enum {
	COL_KEY,
	COL_VALUE,
	COL_ORIGIN,
	COL_DEFAULT,
	COL_FILE,
	COL_RESTART,
	COL_TYPE,
	COL_CHOICES,
	COL_HELP,
	COL_MAX,
};

static const struct table_column columns[COL_MAX] = {
	[COL_KEY] = { "KEY", 0, "Section and name, as in kvpool.conf(5)" },
	[COL_VALUE] = { "VALUE", 0, "In force" },
	[COL_ORIGIN] = { "ORIGIN", TABLE_ELASTIC, "Who said so: a file and line, or what else" },
	[COL_DEFAULT] = { "DEFAULT", TABLE_EXTRA, "What it is when nobody says anything" },
	[COL_FILE] = { "FILE", TABLE_EXTRA,
		       "What the files say now and is not in force; in \"diff\"" },
	[COL_RESTART] = { "RESTART", TABLE_EXTRA,
			  "\"yes\": a change needs a restart; in \"diff\"" },
	[COL_TYPE] = { "TYPE", TABLE_EXTRA, "size, duration, count or choice" },
	[COL_CHOICES] = { "CHOICES", TABLE_EXTRA, "What may be chosen" },
	[COL_HELP] = { "HELP", TABLE_EXTRA | TABLE_ELASTIC, "What it is for" },
};

static void add_row(struct listing *l, const void *item)
{
	const Kvpool__ConfigItem *c = item;

	listing_cell(l, COL_KEY, "%s", c->key);
	listing_cell(l, COL_VALUE, "%s", c->value);
	listing_cell(l, COL_ORIGIN, "%s", c->origin);
	listing_cell(l, COL_DEFAULT, "%s", c->default_);
	listing_cell(l, COL_FILE, "%s", c->file_value);
	listing_cell(l, COL_RESTART, "%s", c->restart ? "yes" : "no");
	listing_cell(l, COL_TYPE, "%s", c->type);
	listing_cell(l, COL_CHOICES, "%s", c->choices);
	listing_cell(l, COL_HELP, "%s", c->help);
}

static json_t *item_json(const void *item)
{
	const Kvpool__ConfigItem *c = item;
	json_t *o = json_object();

	report_text(o, "key", c->key);
	report_text(o, "value", c->value);
	report_text(o, "default", c->default_);
	report_text(o, "origin", c->origin);
	report_text(o, "file_value", c->file_value);
	report_bool(o, "restart", c->restart);
	report_text(o, "type", c->type);
	report_text(o, "choices", c->choices);
	report_text(o, "help", c->help);
	return o;
}

const struct listing_kind config_listing = { "key",   "keys",    "kvpool.config/1", columns,
					     COL_MAX, OP_CONFIG, add_row,           item_json };

/* Only what somebody changed, and what the files say and is not in force. */
static void add_different(void *data, const void *item)
{
	const Kvpool__ConfigItem *c = item;

	if (strcmp(c->value, c->default_) || *c->file_value)
		listing_add(data, item);
}

/* Says so when the files can't be compared: none of what they say now is listed then. */
static enum ctl_exit say_wrong(struct admin *a)
{
	Kvpool__Config request = KVPOOL__CONFIG__INIT;
	_cleanup_free_ char *wrong = NULL;
	const void *reply;
	enum ctl_exit rc;

	request.key = (char *)"host.pool_size";
	rc = admin_call(a, OP_CONFIG, &request.base, &reply);
	if (rc)
		return rc;
	wrong = cell_clean(((const Kvpool__ConfigReply *)reply)->wrong);
	if (wrong && *wrong)
		return say_error(EXIT_OK,
				 "the files have a mistake, FILE is what they said before: %s",
				 wrong);
	return EXIT_OK;
}

static enum ctl_exit show(const struct ctl *ctl, struct admin *a)
{
	const char *what = verb_arg(ctl, 1);
	int diff = what && !strcmp(what, "diff");
	_cleanup_(listing_free) struct listing l;
	enum ctl_exit rc = listing_begin(&l, ctl, &config_listing);
	const char *bad;

	if (!rc && diff && !ctl->opt.columns)
		table_select(&l.table, "KEY,VALUE,ORIGIN,FILE,RESTART", &bad);
	if (!rc)
		rc = pages_each(a, OP_CONFIG, NULL, diff ? add_different : listing_add, &l);
	if (!rc && diff)
		rc = say_wrong(a);
	return rc ? rc : listing_print(&l);
}

static enum ctl_exit get(const struct ctl *ctl, struct admin *a)
{
	Kvpool__Config request = KVPOOL__CONFIG__INIT;
	_cleanup_free_ char *value = NULL;
	const Kvpool__ConfigReply *r;
	const void *reply;
	enum ctl_exit rc;
	json_t *o;

	request.key = (char *)verb_arg(ctl, 2);
	rc = admin_call(a, OP_CONFIG, &request.base, &reply);
	if (rc)
		return rc;
	r = reply;
	if (!r->n_items)
		return say_error(EXIT_NO_OBJECT,
				 "there is no key \"%s\" (see kvpoolctl config show)", request.key);
	if (report_wanted(ctl)) {
		o = report_new("kvpool.config.get/1");
		json_object_update_new(o, item_json(r->items[0]));
		return report_print(ctl, o);
	}
	value = cell_clean(r->items[0]->value);
	if (!ctl->opt.quiet)
		printf("%s\n", value ? value : "-");
	return EXIT_OK;
}

static enum ctl_exit tell_set(const struct ctl *ctl, const Kvpool__ConfigSetReply *r)
{
	_cleanup_free_ char *was = cell_clean(r->was), *now = cell_clean(r->now);
	const char *key = verb_arg(ctl, 2);
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.config.set/1");
		report_text(o, "key", key);
		report_text(o, "was", r->was);
		report_text(o, "now", r->now);
		return report_print(ctl, o);
	}
	if (ctl->opt.quiet)
		return EXIT_OK;
	printf("%s = %s, was %s\n", key, now && *now ? now : "-", was && *was ? was : "-");
	return EXIT_OK;
}

static enum ctl_exit set(const struct ctl *ctl, struct admin *a)
{
	Kvpool__ConfigSet request = KVPOOL__CONFIG_SET__INIT;
	const void *reply;
	enum ctl_exit rc;

	request.key = (char *)verb_arg(ctl, 2);
	if (verb_arg(ctl, 3))
		request.value = (char *)verb_arg(ctl, 3);
	else
		request.unset = 1;
	rc = admin_call(a, OP_CONFIG_SET, &request.base, &reply);
	return rc ? rc : tell_set(ctl, reply);
}

static const struct {
	const char *name;
	int n_args; /* the name among them */
	enum ctl_exit (*run)(const struct ctl *ctl, struct admin *a);
} actions[] = {
	{ "show", 1, show }, { "diff", 1, show }, { "get", 2, get },
	{ "set", 3, set },   { "unset", 2, set },
};

enum ctl_exit verb_config(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	const char *name = verb_arg(ctl, 1) ? verb_arg(ctl, 1) : "show";
	int n = MAX(ctl->opt.n_args - 1, 1);
	enum ctl_exit rc;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (!strcmp(name, actions[i].name) && n == actions[i].n_args) {
			rc = admin_open(&ctl->opt, &a);
			return rc ? rc : actions[i].run(ctl, &a);
		}
	return say_error(EXIT_USAGE, "\"config\" takes show, diff, get KEY, set KEY VALUE or unset "
				     "KEY (see kvpoolctl config --help)");
}
