/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/flow.h"

#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/kvpoolctl/cell.h"

#define LABEL_COLUMNS 8
#define INDENT        (LABEL_COLUMNS + 2)
#define GAP           2 /* blanks between two pieces */

void flow_begin(struct flow *f, FILE *out, size_t width, const char *label)
{
	*f = (struct flow){ .out = out, .width = width };
	f->column = (size_t)fprintf(out, "%*s  ", LABEL_COLUMNS, label);
}

void flow_break(struct flow *f)
{
	f->column = (size_t)fprintf(f->out, "\n%*s", INDENT, "") - 1;
	f->pieces = 0;
}

void flow_add(struct flow *f, const char *format, ...)
{
	char piece[256];
	size_t width;
	va_list ap;

	va_start(ap, format);
	vsnprintf(piece, sizeof(piece), format, ap);
	va_end(ap);
	width = cell_width(piece);
	if (f->pieces && f->column + GAP + width > f->width)
		flow_break(f);
	if (f->pieces++)
		f->column += (size_t)fprintf(f->out, "%*s", GAP, "");
	fputs(piece, f->out);
	f->column += width;
}

void flow_clean(struct flow *f, const char *word, const char *text)
{
	_cleanup_free_ char *clean = cell_clean(text);

	flow_add(f, "%s%s", word, clean ? clean : "-");
}

void flow_end(struct flow *f)
{
	fputc('\n', f->out);
}

void flow_text(FILE *out, size_t indent, size_t width, const char *text)
{
	size_t column = 0;

	while (*(text += strspn(text, " "))) {
		size_t bytes = strcspn(text, " ");
		size_t columns = cell_width(text) - cell_width(text + bytes);

		if (column && column + 1 + columns > width) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%*s", column ? 1 : (int)indent, "");
		column += (column ? 1 : indent) + columns;
		fwrite(text, 1, bytes, out);
		text += bytes;
	}
	fputc('\n', out);
}
