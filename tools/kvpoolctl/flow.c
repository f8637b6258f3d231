/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/flow.h"

#include <stdarg.h>

#include "tools/kvpoolctl/cell.h"

#define LABEL_COLUMNS 8
#define INDENT	      (LABEL_COLUMNS + 2)
#define GAP	      2 /* blanks between two pieces */

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

void flow_end(struct flow *f)
{
	fputc('\n', f->out);
}
