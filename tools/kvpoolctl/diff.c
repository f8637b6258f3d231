/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/tokens.h"
#include "tools/kvpoolctl/units.h"
#include "tools/kvpoolctl/verb.h"

struct diff {
	const char *name_a, *name_b;
	struct tokens a, b;
	size_t common; /* tokens from the first on that both have */
	uint64_t block;
};

static int same(const struct diff *d)
{
	return d->common == d->a.n && d->common == d->b.n;
}

static void print_side(const char *name, const struct tokens *t, size_t at)
{
	printf("  %s: ", name);
	if (at < t->n)
		printf("%" PRIu32, t->ids[at]);
	else
		printf("ends");
	printf(" (%s tokens)\n", units_count(t->n).text);
}

static void print(const struct diff *d)
{
	uint64_t blocks = d->common / d->block;

	if (same(d)) {
		printf("equal: %s tokens\n", units_count(d->common).text);
		return;
	}
	printf("first difference at token %s, in block %s\n", units_count(d->common).text,
	       units_count(blocks).text);
	print_side(d->name_a, &d->a, d->common);
	print_side(d->name_b, &d->b, d->common);
	printf("  shared: %s tokens in %s whole blocks of %" PRIu64 "\n",
	       units_count(blocks * d->block).text, units_count(blocks).text, d->block);
}

static json_t *diff_json(const struct diff *d)
{
	json_t *o = report_new("kvpool.diff/1");

	report_bool(o, "equal", same(d));
	report_u64(o, "tokens_a", d->a.n);
	report_u64(o, "tokens_b", d->b.n);
	report_u64(o, "common_tokens", d->common);
	report_u64(o, "block_tokens", d->block);
	report_u64(o, "shared_blocks", d->common / d->block);
	if (same(d))
		report_add(o, "block", json_null());
	else
		report_u64(o, "block", d->common / d->block);
	return o;
}

enum ctl_exit diff_files(const struct ctl *ctl)
{
	_cleanup_(tokens_free) struct tokens a = { 0 };
	_cleanup_(tokens_free) struct tokens b = { 0 };
	struct diff d = { .name_a = verb_arg(ctl, 1), .name_b = verb_arg(ctl, 2) };
	enum ctl_exit rc;

	if (!d.name_b)
		return say_error(EXIT_USAGE,
				 "--diff needs two files: kvpoolctl explain --diff A B");
	if (!strcmp(d.name_a, "-") && !strcmp(d.name_b, "-"))
		return say_error(EXIT_USAGE, "--diff: only one of the files can be \"-\"");
	rc = tokens_open(d.name_a, &a);
	if (!rc)
		rc = tokens_open(d.name_b, &b);
	if (rc)
		return rc;
	d.a = a;
	d.b = b;
	d.block = ctl->opt.block;
	while (d.common < MIN(a.n, b.n) && a.ids[d.common] == b.ids[d.common])
		d.common++;
	if (report_wanted(ctl))
		return report_print(ctl, diff_json(&d));
	if (!ctl->opt.quiet)
		print(&d);
	return EXIT_OK;
}
