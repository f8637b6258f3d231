/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "proto/reason.h"
#include "tools/kvpoolctl/chain.h"
#include "tools/kvpoolctl/diff.h"
#include "tools/kvpoolctl/lookup.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/requests.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

static struct lookup find_lookup(const struct chain *c, size_t present,
				 const Kvpool__ExplainReply *r)
{
	struct lookup l = {
		.asked_tokens = c->tokens,
		.hit_tokens = present * c->block_tokens,
		.block_tokens = c->block_tokens,
		.tail_tokens = c->tokens - c->n * c->block_tokens,
		.reason = !c->n             ? MISS_BELOW_MIN
			  : present == c->n ? MISS_PARTIAL_BLOCK
					    : MISS_NONE,
	};

	if (!r)
		return l;
	if (present < c->n)
		l.reason = r->reason;
	l.reason_ago_ns = r->ago_ns;
	l.children = r->children;
	l.children_once = r->children_once;
	l.readers = r->readers;
	l.writer = r->writer;
	l.id = r->id;
	return l;
}

static enum ctl_exit tell(const struct ctl *ctl, const struct chain *c, const struct lookup *l)
{
	const char *model = object_text(&c->ns, "model");
	json_t *o;

	if (report_wanted(ctl)) {
		o = report_new("kvpool.explain/1");
		report_u64(o, "namespace", object_number(&c->ns, "namespace"));
		report_text(o, "model", model);
		lookup_members(l, o);
		return report_print(ctl, o);
	}
	if (ctl->opt.quiet)
		return EXIT_OK;
	printf("namespace %s   %s tokens asked\n", model, units_count(l->asked_tokens).text);
	lookup_print(l, stdout);
	return EXIT_OK;
}

static enum ctl_exit explain_tokens(const struct ctl *ctl)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	_cleanup_(chain_free) struct chain c = { 0 };
	enum ctl_exit rc = admin_open(&ctl->opt, &a);
	const Kvpool__ExplainReply *r = NULL;
	struct lookup l;
	size_t present;

	if (!rc)
		rc = chain_open(&a, &ctl->opt, &c);
	if (!rc)
		rc = chain_explain(&a, &c, &present, &r);
	if (rc)
		return rc;
	l = find_lookup(&c, present, r);
	return tell(ctl, &c, &l);
}

enum ctl_exit verb_explain(const struct ctl *ctl)
{
	const struct options *o = &ctl->opt;

	if (!!o->tokens + o->last + o->diff != 1)
		return say_error(EXIT_USAGE, "\"explain\" needs one of --tokens, --last and --diff "
					     "(see kvpoolctl explain --help)");
	if (o->diff)
		return diff_files(ctl);
	if (verb_arg(ctl, 1))
		return say_error(EXIT_USAGE,
				 "\"explain\" takes files only with --diff, \"%s\" is "
				 "one",
				 verb_arg(ctl, 1));
	return o->last ? requests_print(ctl) : explain_tokens(ctl);
}
