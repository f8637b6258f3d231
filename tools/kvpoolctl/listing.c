/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/listing.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/kvpoolctl/cell.h"
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

enum ctl_exit listing_begin(struct listing *l, const struct ctl *ctl, const char *noun,
			    const struct table_column *columns, unsigned int n)
{
	const char *bad;
	int r;

	*l = (struct listing){ .ctl = ctl, .noun = noun };
	table_init(&l->table, columns, n);
	if (ctl->opt.columns) {
		r = table_select(&l->table, ctl->opt.columns, &bad);
		if (r)
			return bad_columns(&l->table, r, bad);
	}
	if (report_wanted(ctl))
		l->items = json_array();
	return EXIT_OK;
}

void listing_free(struct listing *l)
{
	table_free(&l->table);
	json_decref(l->items);
	l->items = NULL;
}

void listing_row(struct listing *l)
{
	if (!l->no_memory && table_row(&l->table))
		l->no_memory = 1;
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

void listing_item(struct listing *l, json_t *item)
{
	json_array_append_new(l->items, item);
}

static enum ctl_exit print_json(struct listing *l, const char *schema)
{
	json_t *o = report_new(schema);
	char name[32];

	snprintf(name, sizeof(name), "%ss", l->noun);
	report_add(o, name, json_incref(l->items));
	return report_print(l->ctl, o);
}

enum ctl_exit listing_print(struct listing *l, const char *schema)
{
	const struct style *style = &l->ctl->style;
	int legend = !l->ctl->opt.no_legend;

	if (l->no_memory)
		return say_error(EXIT_FAILED, "out of memory");
	if (l->items)
		return print_json(l, schema);
	if (l->ctl->opt.quiet)
		return EXIT_OK;
	if (l->table.n_rows)
		table_print(&l->table, stdout, legend, style->width, style_ellipsis(style));
	if (legend)
		printf("%s %s%s.\n", units_count(l->table.n_rows).text, l->noun,
		       l->table.n_rows == 1 ? "" : "s");
	return EXIT_OK;
}
