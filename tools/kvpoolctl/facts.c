/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/facts.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "tools/kvpoolctl/units.h"

#define NAME_BYTES 192u

static int ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static struct units number_text(const char *name, const json_t *v, int exact)
{
	uint64_t n = (uint64_t)json_integer_value(v);
	struct units s;

	if (ends_with(name, "_seconds"))
		return units_duration((uint64_t)(json_number_value(v) * NSEC_PER_SEC));
	if (json_is_real(v)) {
		snprintf(s.text, sizeof(s.text), "%g", json_real_value(v));
		return s;
	}
	if (ends_with(name, "bytes"))
		return units_bytes(n, exact);
	/* A number that stands for something is no amount. */
	if (!strcmp(name, "pid") || !strcmp(name, "uid") || !strcmp(name, "session")) {
		snprintf(s.text, sizeof(s.text), "%" PRIu64, n);
		return s;
	}
	return units_count(n);
}

static void print_value(const char *name, const json_t *v, int exact, FILE *out)
{
	if (json_is_string(v))
		fputs(json_string_value(v), out);
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "yes" : "no", out);
	else if (json_is_number(v))
		fputs(number_text(name, v, exact).text, out);
	else
		fputc('-', out);
}

static const char *title(const char *name, char buf[NAME_BYTES])
{
	snprintf(buf, NAME_BYTES, "%s", name);
	if (ends_with(buf, "_seconds"))
		buf[strlen(buf) - strlen("_seconds")] = '\0';
	for (char *c = buf; *c; c++)
		if (*c == '_')
			*c = ' ';
	return buf;
}

void facts_print(const json_t *o, int exact, FILE *out)
{
	char buf[NAME_BYTES];
	size_t width = 0;
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)o, name, v) width = MAX(width, strlen(title(name, buf)));
	json_object_foreach((json_t *)o, name, v)
	{
		fprintf(out, "  %-*s  ", (int)width, title(name, buf));
		print_value(name, v, exact, out);
		fputc('\n', out);
	}
}

static void flat_value(const char *name, const json_t *v, FILE *out)
{
	if (json_is_string(v))
		fprintf(out, "%s:%s\n", name, json_string_value(v));
	else if (json_is_boolean(v))
		fprintf(out, "%s:%d\n", name, json_is_true(v));
	else if (json_is_integer(v))
		fprintf(out, "%s:%" JSON_INTEGER_FORMAT "\n", name, json_integer_value(v));
	else if (json_is_real(v))
		fprintf(out, "%s:%.6f\n", name, json_real_value(v));
	else
		fprintf(out, "%s:-\n", name);
}

static void flat_any(const char *prefix, const char *name, const json_t *v, FILE *out)
{
	char full[NAME_BYTES];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	if (!json_is_object(v) && !json_is_array(v)) {
		flat_value(full, v, out);
		return;
	}
	snprintf(full, sizeof(full), "%s%s.", prefix, name);
	facts_flat(v, full, out);
}

/* Depth is that of what this program builds: two. */
void facts_flat(const json_t *o, const char *prefix, FILE *out)
{
	const char *name;
	char number[24];
	size_t i;
	json_t *v;

	if (json_is_array(o)) {
		json_array_foreach((json_t *)o, i, v)
		{
			snprintf(number, sizeof(number), "%zu", i);
			flat_any(prefix, number, v, out);
		}
		return;
	}
	json_object_foreach((json_t *)o, name, v) flat_any(prefix, name, v, out);
}
