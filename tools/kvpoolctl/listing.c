/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/listing.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/pages.h"
#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"

#define CELL_MAX 600 /* more than any name that the protocol allows */

/* "a, b or c" would be nicer to read, but this is what --output takes. */
static void join_titles(const struct table_column *columns, unsigned int n, char *buf, size_t size)
{
	size_t at = 0;

	*buf = '\0';
	for (unsigned int i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? "," : "", columns[i].title);
}

static enum ctl_exit bad_columns(const struct table *t, int error, const char *bad)
{
	char titles[256];

	if (error == -E2BIG)
		return say_error(EXIT_USAGE, "--output names more than %u columns",
				 TABLE_COLUMNS_MAX);
	join_titles(t->columns, t->n_columns, titles, sizeof(titles));
	return say_error(
		EXIT_USAGE,
		"--output names a column \"%.*s\" that there is none of: use all, or of %s",
		(int)strcspn(bad, ","), bad, titles);
}

enum ctl_exit listing_begin(struct listing *l, const struct ctl *ctl,
			    const struct listing_kind *kind)
{
	const char *bad;
	int r;

	*l = (struct listing){ .ctl = ctl, .kind = kind };
	table_init(&l->table, kind->columns, kind->n_columns);
	if (ctl->opt.columns) {
		r = table_select(&l->table, ctl->opt.columns, &bad);
		if (r)
			return bad_columns(&l->table, r, bad);
	}
	if (report_wanted(ctl)) {
		l->items = json_array();
		l->more = json_object();
	}
	return EXIT_OK;
}

void listing_free(struct listing *l)
{
	table_free(&l->table);
	json_decref(l->items);
	json_decref(l->more);
	l->items = l->more = NULL;
}

void listing_add(void *data, const void *item)
{
	struct listing *l = data;

	if (l->items)
		json_array_append_new(l->items, l->kind->json(item));
	else if (!l->no_memory && table_row(&l->table))
		l->no_memory = 1;
	else if (!l->no_memory)
		l->kind->row(l, item);
}

void listing_cell(struct listing *l, unsigned int column, const char *format, ...)
{
	_cleanup_free_ char *clean = NULL;
	char text[CELL_MAX];
	va_list ap;

	if (l->no_memory)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	clean = cell_clean(text);
	if (!clean || table_cell(&l->table, column, clean))
		l->no_memory = 1;
}

static enum ctl_exit print_json(struct listing *l)
{
	json_t *o = report_new(l->kind->schema);

	report_add(o, l->kind->nouns, json_incref(l->items));
	json_object_update(o, l->more);
	return report_print(l->ctl, o);
}

enum ctl_exit listing_print(struct listing *l)
{
	const struct style *style = &l->ctl->style;
	const struct options *o = &l->ctl->opt;
	size_t n = l->table.n_rows;

	if (l->no_memory)
		return say_error(EXIT_FAILED, "out of memory");
	if (l->items)
		return print_json(l);
	if (o->quiet)
		return EXIT_OK;
	if (n)
		table_print(&l->table, stdout, !o->no_legend, o->full ? 0 : style->width,
			    style_ellipsis(style));
	if (!o->no_legend)
		printf("%s %s%s.\n", units_count(n).text, n == 1 ? l->kind->noun : l->kind->nouns,
		       l->note);
	return EXIT_OK;
}

enum ctl_exit listing_run(const struct ctl *ctl, const struct listing_kind *kind,
			  ProtobufCMessage *request)
{
	_cleanup_(admin_close) struct admin a = { 0 };
	_cleanup_(listing_free) struct listing l;
	enum ctl_exit rc = listing_begin(&l, ctl, kind);

	if (!rc)
		rc = admin_open(&ctl->opt, &a);
	if (!rc)
		rc = pages_each(&a, kind->op, request, listing_add, &l);
	return rc ? rc : listing_print(&l);
}
