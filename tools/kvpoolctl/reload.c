/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/verb.h"

static json_t *names_json(char **names, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *name = cell_clean(names[i]);

		json_array_append_new(list, name ? json_string(name) : json_null());
	}
	return list;
}

static void print_names(const char *title, char **names, size_t n)
{
	printf("%s", title);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *name = cell_clean(names[i]);

		printf("%s %s", i ? "," : "", name ? name : "-");
	}
	putchar('\n');
}

static enum ctl_exit tell(const struct ctl *ctl, const Kvpool__ReloadReply *r)
{
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.reload/1");
		report_add(o, "changed", names_json(r->changed, r->n_changed));
		report_add(o, "restart", names_json(r->restart, r->n_restart));
		return report_print(ctl, o);
	}
	if (ctl->opt.quiet)
		return EXIT_OK;
	if (r->n_changed)
		print_names("changed:", r->changed, r->n_changed);
	if (r->n_restart)
		print_names("a restart is needed for:", r->restart, r->n_restart);
	if (!r->n_changed && !r->n_restart)
		puts("nothing changed");
	return EXIT_OK;
}

enum ctl_exit verb_reload(const struct ctl *ctl)
{
	Kvpool__Reload request = KVPOOL__RELOAD__INIT;
	_cleanup_(admin_close) struct admin a = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const void *reply;

	if (!rc)
		rc = admin_call(&a, OP_RELOAD, &request.base, &reply);
	return rc ? rc : tell(ctl, reply);
}
