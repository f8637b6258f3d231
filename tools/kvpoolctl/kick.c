/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/confirm.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static enum ctl_exit tell(const struct ctl *ctl, uint64_t session, const Kvpool__KickReply *r)
{
	_cleanup_free_ char *name = cell_clean(r->name);
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.kick/1");
		report_u64(o, "session", session);
		report_text(o, "name", r->name);
		report_known(o, "pid", r->pid);
		report_u64(o, "leases", r->leases);
		return report_print(ctl, o);
	}
	if (ctl->opt.quiet)
		return EXIT_OK;
	printf("ended session %" PRIu64 " of %s (process %" PRIu32 ")\n", session,
	       name && *name ? name : "-", r->pid);
	if (r->leases)
		printf("%s prefix%s in the pool until the program lets go\n",
		       units_count(r->leases).text, r->leases == 1 ? " stays" : "es stay");
	return EXIT_OK;
}

static enum ctl_exit check_state(const struct object *o, const char *name)
{
	const char *state = object_text(o, "state");

	if (!state || strcmp(state, "draining"))
		return EXIT_OK;
	return say_error(EXIT_NO_OBJECT,
			 "the session of %s has ended already: what it reads stays until process "
			 "%" PRIu64 " lets go or ends",
			 name, object_number(o, "pid"));
}

static enum ctl_exit ask(const struct ctl *ctl, const struct object *o)
{
	_cleanup_free_ char *name = cell_clean(object_text(o, "name"));

	if (!confirm_wanted(ctl))
		return EXIT_OK;
	return confirm_ask("End session %" PRIu64 " of %s (process %" PRIu64 ", %s leased)",
			   object_number(o, "session"), name && *name ? name : "-",
			   object_number(o, "pid"),
			   units_bytes(object_number(o, "leased_bytes"), 0).text);
}

enum ctl_exit verb_kick(const struct ctl *ctl)
{
	_cleanup_(object_free) struct object o = { 0 };
	_cleanup_(admin_close) struct admin a = { 0 };
	Kvpool__Kick request = KVPOOL__KICK__INIT;
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const void *reply;

	if (!rc)
		rc = objects_find(&a, OBJECTS_CLIENT, verb_arg(ctl, 1), &o);
	if (!rc)
		rc = check_state(&o, verb_arg(ctl, 1));
	if (!rc)
		rc = ask(ctl, &o);
	if (rc)
		return rc;
	request.session = object_number(&o, "session");
	a.about = verb_arg(ctl, 1);
	rc = admin_call(&a, OP_KICK, &request.base, &reply);
	return rc ? rc : tell(ctl, request.session, reply);
}
