/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/parse.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "K", KIB(1) }, { "M", MIB(1) }, { "G", GIB(1) }, { "T", GIB(1024) },
	{ "KiB", KIB(1) }, { "MiB", MIB(1) }, { "GiB", GIB(1) }, { "TiB", GIB(1024) },
};

/* Largest first: a duration names each at most once, in this order. */
static const struct unit duration_units[] = {
	{ "d", 86400 * NSEC_PER_SEC }, { "h", 3600 * NSEC_PER_SEC }, { "m", 60 * NSEC_PER_SEC },
	{ "min", 60 * NSEC_PER_SEC }, /* as kvpoolctl prints it */
	{ "s", NSEC_PER_SEC }, { "ms", NSEC_PER_MSEC }, { "us", NSEC_PER_USEC }, { "ns", 1 },
};

static int parse_fail(const char **why, const char *text)
{
	*why = text;
	return -EINVAL;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits at the start of *text, which moves behind them. */
static int parse_number(const char **text, uint64_t *ret, const char **why)
{
	const char *t = *text;
	uint64_t n = 0;

	if (!*t)
		return parse_fail(why, "is empty where a number should be");
	if (!is_digit(*t))
		return parse_fail(why, "is no number (digits only, no sign, no blank)");
	for (; is_digit(*t); t++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*t - '0'), &n))
			return parse_fail(why, "is too large");
	*text = t;
	*ret = n;
	return 0;
}

static int parse_percent(uint64_t n, uint64_t whole, uint64_t *ret, const char **why)
{
	if (!whole)
		return parse_fail(why, "is a percentage, and there is nothing to take it of");
	if (n < 1 || n > 100)
		return parse_fail(why, "is no percentage from 1% to 100%");
	*ret = whole / 100 * n + whole % 100 * n / 100;
	return 0;
}

static const struct unit *unit_find(const struct unit *units, size_t n, const char *name,
				    size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(units[i].name) == len && !memcmp(units[i].name, name, len))
			return &units[i];
	return NULL;
}

static int parse_size_unit(const char *unit, uint64_t n, uint64_t *ret, const char **why)
{
	const struct unit *u = unit_find(size_units, ARRAY_SIZE(size_units), unit, strlen(unit));

	if (!u)
		return parse_fail(why,
				  "has no known unit (K, M, G, T, KiB, MiB, GiB, TiB or %)");
	if (__builtin_mul_overflow(n, u->factor, ret))
		return parse_fail(why, "is too large");
	return *ret ? 0 : parse_fail(why, "is no size: it must be at least one byte");
}

int parse_size(const char *text, uint64_t whole, uint64_t *ret, const char **why)
{
	uint64_t n, bytes;
	int r = parse_number(&text, &n, why);

	if (r < 0)
		return r;
	if (*text == '.' || *text == ',')
		return parse_fail(why, "is no whole number: use a smaller unit");
	if (!strcmp(text, "%"))
		r = parse_percent(n, whole, &bytes, why);
	else
		r = parse_size_unit(text, n, &bytes, why);
	if (r == 0)
		*ret = bytes;
	return r;
}

void parse_format_size(uint64_t bytes, char out[PARSE_SIZE_BYTES])
{
	static const char units[] = { '\0', 'K', 'M', 'G', 'T', '\0' };
	unsigned int i = 0;

	for (; bytes && bytes % 1024 == 0 && units[i + 1]; i++)
		bytes /= 1024;
	snprintf(out, PARSE_SIZE_BYTES, "%llu%.1s", (unsigned long long)bytes, &units[i]);
}

int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret, const char **why)
{
	uint64_t n;
	int r = parse_number(&text, &n, why);

	if (r < 0)
		return r;
	if (*text)
		return parse_fail(why, "is no number (digits only, no unit)");
	if (n < min)
		return parse_fail(why, "is too small");
	if (n > max)
		return parse_fail(why, "is too large");
	*ret = n;
	return 0;
}

/* One number and its unit; *unit is the row of the last one and only grows. */
static int parse_duration_part(const char **text, const struct unit **unit, uint64_t *sum,
			       const char **why)
{
	const struct unit *u;
	const char *name;
	uint64_t n;
	int r = parse_number(text, &n, why);

	if (r < 0)
		return r;
	name = *text;
	while (**text && !is_digit(**text))
		(*text)++;
	u = unit_find(duration_units, ARRAY_SIZE(duration_units), name, (size_t)(*text - name));
	if (!u)
		return parse_fail(why,
				  "has no unit of time that is known (d, h, m, s, ms, us or ns)");
	if (*unit && u->factor >= (*unit)->factor)
		return parse_fail(why, "has its units in another order than largest first");
	*unit = u;
	if (__builtin_mul_overflow(n, u->factor, &n) || __builtin_add_overflow(*sum, n, sum))
		return parse_fail(why, "is too large");
	return 0;
}

int parse_duration(const char *text, uint64_t *ret, const char **why)
{
	const struct unit *unit = NULL;
	uint64_t sum = 0;

	do {
		int r = parse_duration_part(&text, &unit, &sum, why);

		if (r < 0)
			return r;
	} while (*text);
	*ret = sum;
	return 0;
}
