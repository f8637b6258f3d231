/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "tools/kvpoolctl/cell.h"

#define ELASTIC_MIN 6u /* an elastic column is not made narrower */

void table_init(struct table *t, const struct table_column *columns, unsigned int n)
{
	*t = (struct table){ .columns = columns, .n_columns = n };
	for (unsigned int i = 0; i < n; i++)
		if (!(columns[i].flags & TABLE_EXTRA))
			t->show[t->n_show++] = i;
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_rows = 0;
}

/* The number of the column that the first n bytes of name name, n_columns when there is none. */
static unsigned int find_column(const struct table *t, const char *name, size_t n)
{
	unsigned int i;

	for (i = 0; i < t->n_columns; i++)
		if (strlen(t->columns[i].title) == n && !strncasecmp(t->columns[i].title, name, n))
			break;
	return i;
}

int table_select(struct table *t, const char *list, const char **ret_bad)
{
	unsigned int show[TABLE_COLUMNS_MAX], n_show = 0;

	if (!strcasecmp(list, "all")) {
		for (t->n_show = 0; t->n_show < t->n_columns; t->n_show++)
			t->show[t->n_show] = t->n_show;
		return 0;
	}
	for (;;) {
		size_t n = strcspn(list, ",");
		unsigned int i = find_column(t, list, n);

		if (i == t->n_columns) {
			*ret_bad = list;
			return -EINVAL;
		}
		if (n_show == TABLE_COLUMNS_MAX)
			return -E2BIG;
		show[n_show++] = i;
		if (!list[n])
			break;
		list += n + 1;
	}
	memcpy(t->show, show, sizeof(show));
	t->n_show = n_show;
	return 0;
}

int table_row(struct table *t)
{
	size_t have = t->n_rows * t->n_columns;
	char **cells = reallocarray(t->cells, have + t->n_columns, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	memset(cells + have, 0, t->n_columns * sizeof(*cells));
	t->cells = cells;
	t->n_rows++;
	return 0;
}

int table_cell(struct table *t, unsigned int column, const char *text)
{
	char **cell = &t->cells[(t->n_rows - 1) * t->n_columns + column];
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*cell);
	*cell = copy;
	return 0;
}

static const char *cell_text(const struct table *t, size_t row, unsigned int column)
{
	const char *s = t->cells[row * t->n_columns + column];

	return s && *s ? s : "-";
}

/* Takes from the widest elastic column, again and again, until the line fits or none can give. */
static void shrink(const struct table *t, size_t *widths, size_t total, size_t room)
{
	while (total > room) {
		unsigned int widest = t->n_show;

		for (unsigned int i = 0; i < t->n_show; i++)
			if (t->columns[t->show[i]].flags & TABLE_ELASTIC &&
			    widths[i] > ELASTIC_MIN &&
			    (widest == t->n_show || widths[i] > widths[widest]))
				widest = i;
		if (widest == t->n_show)
			return;
		widths[widest]--;
		total--;
	}
}

static void measure(const struct table *t, int header, size_t room, size_t *widths)
{
	size_t total = t->n_show - 1;

	for (unsigned int i = 0; i < t->n_show; i++) {
		widths[i] = header ? cell_width(t->columns[t->show[i]].title) : 1;
		for (size_t r = 0; r < t->n_rows; r++)
			widths[i] = MAX(widths[i], cell_width(cell_text(t, r, t->show[i])));
		total += widths[i];
	}
	if (room)
		shrink(t, widths, total, room);
}

static void print_pad(FILE *out, size_t n)
{
	fprintf(out, "%*s", (int)n, "");
}

/* One cell with the blanks that its neighbour needs; none at the end of a line. */
static void print_cell(const struct table *t, FILE *out, unsigned int i, const char *text,
		       const size_t *widths, const char *ellipsis)
{
	size_t width = cell_width(text), cut = width > widths[i] ? cell_width(ellipsis) : 0;
	int right = t->columns[t->show[i]].flags & TABLE_RIGHT;

	if (i)
		fputc(' ', out);
	if (right && width < widths[i])
		print_pad(out, widths[i] - width);
	fwrite(text, 1, cell_prefix(text, widths[i] - cut), out);
	if (cut)
		fputs(ellipsis, out);
	if (!right && width < widths[i] && i + 1 < t->n_show)
		print_pad(out, widths[i] - width);
}

void table_print(const struct table *t, FILE *out, int header, size_t width, const char *ellipsis)
{
	size_t widths[TABLE_COLUMNS_MAX];

	measure(t, header, width, widths);
	if (header) {
		for (unsigned int i = 0; i < t->n_show; i++)
			print_cell(t, out, i, t->columns[t->show[i]].title, widths, ellipsis);
		fputc('\n', out);
	}
	for (size_t r = 0; r < t->n_rows; r++) {
		for (unsigned int i = 0; i < t->n_show; i++)
			print_cell(t, out, i, cell_text(t, r, t->show[i]), widths, ellipsis);
		fputc('\n', out);
	}
}
