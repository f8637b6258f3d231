/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, counts and durations as people write them, and what is said of those that are none. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/parse.h"

struct good {
	const char *text;
	uint64_t value;
};

struct bad {
	const char *text;
	const char *says; /* a part of it */
};

#define UNTOUCHED UINT64_C(0x5ca1ab1e)

static void expect_bad(int r, uint64_t value, const char *why, const struct bad *b)
{
	if (r != -EINVAL || value != UNTOUCHED || !why || !strstr(why, b->says))
		fail_msg("\"%s\": %d, %#llx, says \"%s\", expected \"%s\"", b->text, r,
			 (unsigned long long)value, why ? why : "", b->says);
}

static void sizes(void **state)
{
	static const struct good good[] = {
		{ "1", 1 },
		{ "0001", 1 },
		{ "4096", 4096 },
		{ "16G", GIB(16) },
		{ "16GiB", GIB(16) },
		{ "3K", 3072 },
		{ "3KiB", 3072 },
		{ "5M", MIB(5) },
		{ "5MiB", MIB(5) },
		{ "2T", GIB(2048) },
		{ "2TiB", GIB(2048) },
		{ "80%", 800 },
		{ "1%", 10 },
		{ "100%", 1000 },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", UINT64_C(16777215) << 40 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const char *why = NULL;
		uint64_t n = 0;

		assert_int_equal(parse_size(good[i].text, 1000, &n, &why), 0);
		assert_int_equal(n, good[i].value);
	}
}

static void percent_of_much(void **state)
{
	const char *why;
	uint64_t n;

	assert_int_equal(parse_size("99%", UINT64_MAX, &n, &why), 0);
	assert_true(n > UINT64_MAX / 100 * 98 && n < UINT64_MAX);
	assert_int_equal(parse_size("50%", 199, &n, &why), 0);
	assert_int_equal(n, 99);
}

static void bad_sizes(void **state)
{
	static const struct bad bad[] = {
		{ "", "empty" },
		{ "G", "no number" },
		{ "-1", "no number" },
		{ "+1", "no number" },
		{ " 1", "no number" },
		{ "1 G", "unit" },
		{ "1GB", "unit" },
		{ "1g", "unit" },
		{ "1Gi", "unit" },
		{ "1GiB ", "unit" },
		{ "0x10", "unit" },
		{ "1.5G", "whole number" },
		{ "1,5G", "whole number" },
		{ "0", "at least one byte" },
		{ "0G", "at least one byte" },
		{ "0%", "percentage" },
		{ "101%", "percentage" },
		{ "5%%", "unit" },
		{ "18446744073709551616", "too large" },
		{ "16777216T", "too large" },
		{ "999999999999999999999G", "too large" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *why = NULL;
		uint64_t n = UNTOUCHED;
		int r = parse_size(bad[i].text, 1000, &n, &why);

		expect_bad(r, n, why, &bad[i]);
	}
}

static void percentage_of_nothing(void **state)
{
	static const struct bad b = { "80%", "nothing to take it of" };
	const char *why = NULL;
	uint64_t n = UNTOUCHED;
	int r = parse_size(b.text, 0, &n, &why);

	expect_bad(r, n, why, &b);
}

static void counts(void **state)
{
	const char *why;
	uint64_t n;

	assert_int_equal(parse_count("5", 5, 7, &n, &why), 0);
	assert_int_equal(n, 5);
	assert_int_equal(parse_count("7", 5, 7, &n, &why), 0);
	assert_int_equal(n, 7);
	assert_int_equal(parse_count("0", 0, 0, &n, &why), 0);
	assert_int_equal(n, 0);
}

static void bad_counts(void **state)
{
	static const struct bad bad[] = {
		{ "", "empty" },       { "4", "too small" },
		{ "8", "too large" },  { "6k", "no unit" },
		{ "6 ", "no unit" },   { "six", "no number" },
		{ "-6", "no number" }, { "99999999999999999999", "too large" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *why = NULL;
		uint64_t n = UNTOUCHED;
		int r = parse_count(bad[i].text, 5, 7, &n, &why);

		expect_bad(r, n, why, &bad[i]);
	}
}

static void durations(void **state)
{
	static const struct good good[] = {
		{ "90s", 90 * NSEC_PER_SEC },
		{ "5m", 300 * NSEC_PER_SEC },
		{ "1h30m", 5400 * NSEC_PER_SEC },
		{ "2d", 172800 * NSEC_PER_SEC },
		{ "250ms", 250 * NSEC_PER_MSEC },
		{ "7us", 7000 },
		{ "3ns", 3 },
		{ "0s", 0 },
		{ "1d2h3m4s5ms6us7ns", 93784005006007 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const char *why = NULL;
		uint64_t n = UNTOUCHED;

		assert_int_equal(parse_duration(good[i].text, &n, &why), 0);
		assert_int_equal(n, good[i].value);
	}
}

static void bad_durations(void **state)
{
	static const struct bad bad[] = {
		{ "", "empty" },
		{ "5", "unit of time" },
		{ "5x", "unit of time" },
		{ "s", "no number" },
		{ "1h 30m", "unit of time" },
		{ "30m1h", "largest first" },
		{ "1s1s", "largest first" },
		{ "1h30", "unit of time" },
		{ "-1s", "no number" },
		{ "300000d", "too large" },
		{ "18446744073709551615ns1ns", "largest first" },
		{ "18446744073s1000ms", "too large" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *why = NULL;
		uint64_t n = UNTOUCHED;
		int r = parse_duration(bad[i].text, &n, &why);

		expect_bad(r, n, why, &bad[i]);
	}
}

/* What is written is read as the same. */
static void sizes_written(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 1, "1" },
		{ 1023, "1023" },
		{ 1024, "1K" },
		{ 1536, "1536" },
		{ MIB(64), "64M" },
		{ GIB(16), "16G" },
		{ GIB(1024), "1T" },
		{ GIB(1536), "1536G" },
		{ MIB(1024 * 1024) * 1024, "1024T" },
		{ UINT64_MAX, "18446744073709551615" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[PARSE_SIZE_BYTES];
		const char *why;
		uint64_t n;

		parse_format_size(rows[i].bytes, text);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(parse_size(text, 0, &n, &why), 0);
		assert_int_equal(n, rows[i].bytes);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_written),
		cmocka_unit_test(sizes),
		cmocka_unit_test(percent_of_much),
		cmocka_unit_test(bad_sizes),
		cmocka_unit_test(percentage_of_nothing),
		cmocka_unit_test(counts),
		cmocka_unit_test(bad_counts),
		cmocka_unit_test(durations),
		cmocka_unit_test(bad_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
