/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "daemon/complaint.h"
#include "proto/text.h"

#define COMPLAINT_BYTES 1536u

/* A line that no memory is left for counts, so that nothing passes that is wrong. */
void complaint_add(struct complaints *c, const char *format, ...)
{
	char *line = malloc(COMPLAINT_BYTES);
	va_list ap;

	if (!c->lines)
		c->lines = calloc(COMPLAINTS_KEPT, sizeof(*c->lines));
	if (!line || !c->lines || c->n >= COMPLAINTS_KEPT) {
		free(line);
		c->n++;
		return;
	}
	va_start(ap, format);
	vsnprintf(line, COMPLAINT_BYTES, format, ap);
	va_end(ap);
	text_clean(line); /* it quotes files */
	c->lines[c->n++] = line;
}

size_t complaint_kept(const struct complaints *c)
{
	size_t n = 0;

	while (c->lines && n < MIN(c->n, COMPLAINTS_KEPT) && c->lines[n])
		n++;
	return n;
}

void complaint_summary(const struct complaints *c, char *out, size_t n)
{
	const char *first = complaint_kept(c) ? c->lines[0] : "not enough memory";

	if (c->n > 1)
		snprintf(out, n, "%s (and %zu more: kvpoold --check-config lists them)", first,
			 c->n - 1);
	else
		snprintf(out, n, "%s", first);
}

void complaint_clear(struct complaints *c)
{
	for (size_t i = 0; c->lines && i < COMPLAINTS_KEPT; i++)
		free(c->lines[i]);
	free(c->lines);
	*c = (struct complaints)COMPLAINTS_INIT;
}
