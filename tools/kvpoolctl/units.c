/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"

static const char *const byte_units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

/* The unit in which n reads best: below 1024 of it, after rounding to a tenth. */
static unsigned int byte_unit(uint64_t n)
{
	double x = (double)n;
	unsigned int u = 0;

	while (x >= (u ? 1023.95 : 1024.0) && u + 1 < ARRAY_SIZE(byte_units)) {
		x /= 1024;
		u++;
	}
	return u;
}

static double in_unit(uint64_t n, unsigned int u)
{
	return (double)n / (double)(1ull << 10 * u);
}

static struct units exact_digits(uint64_t n)
{
	struct units s;

	snprintf(s.text, sizeof(s.text), "%" PRIu64, n);
	return s;
}

struct units units_bytes(uint64_t n, int exact)
{
	unsigned int u = byte_unit(n);
	struct units s;

	if (exact)
		return exact_digits(n);
	snprintf(s.text, sizeof(s.text), "%.*f %s", u ? 1 : 0, in_unit(n, u), byte_units[u]);
	return s;
}

struct units units_bytes_of(uint64_t part, uint64_t whole, int exact)
{
	unsigned int u = byte_unit(whole);
	struct units s;

	if (exact || (part && in_unit(part, u) < 0.05))
		return units_bytes(part, exact);
	snprintf(s.text, sizeof(s.text), "%.*f", u ? 1 : 0, in_unit(part, u));
	return s;
}

struct units units_count(uint64_t n)
{
	struct units digits = exact_digits(n), s;
	size_t len = strlen(digits.text), at = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			s.text[at++] = ' ';
		s.text[at++] = digits.text[i];
	}
	s.text[at] = '\0';
	return s;
}

struct units units_round(uint64_t n)
{
	static const char suffix[] = "kMGTPE";
	double x = (double)n;
	unsigned int u = 0;
	struct units s;

	if (n < 10000)
		return units_count(n);
	for (x /= 1000; x >= 999.5; x /= 1000)
		u++;
	snprintf(s.text, sizeof(s.text), "%.*f %c", x < 9.95 ? 1 : 0, x, suffix[u]);
	return s;
}

struct units units_duration(uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} unit[] = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
	uint64_t left = ns / NSEC_PER_SEC, n;
	unsigned int i = 0;
	struct units s;
	int at;

	while (i + 1 < ARRAY_SIZE(unit) && left < unit[i].seconds)
		i++;
	n = left / unit[i].seconds;
	left %= unit[i].seconds;
	at = snprintf(s.text, sizeof(s.text), "%" PRIu64 "%s", n, unit[i].name);
	if (i + 1 < ARRAY_SIZE(unit) && left >= unit[i + 1].seconds)
		snprintf(s.text + at, sizeof(s.text) - (size_t)at, " %" PRIu64 "%s",
			 left / unit[i + 1].seconds, unit[i + 1].name);
	return s;
}

struct units units_percent(uint64_t part, uint64_t whole)
{
	double percent = whole ? 100.0 * (double)part / (double)whole : 0;
	struct units s = { "-" };

	if (!whole)
		return s;
	if (part && percent < 0.5)
		return (struct units){ "<1%" };
	if (part < whole && percent >= 99.5)
		return (struct units){ ">99%" };
	snprintf(s.text, sizeof(s.text), "%.0f%%", percent);
	return s;
}
