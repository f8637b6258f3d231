/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as kvpoolctl writes them. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "tools/kvpoolctl/units.h"

static void test_bytes(void **state)
{
	assert_string_equal(units_bytes(0, 0).text, "0 B");
	assert_string_equal(units_bytes(1023, 0).text, "1023 B");
	assert_string_equal(units_bytes(1024, 0).text, "1.0 KiB");
	assert_string_equal(units_bytes(1536, 0).text, "1.5 KiB");
	assert_string_equal(units_bytes(GIB(8), 0).text, "8.0 GiB");
	assert_string_equal(units_bytes(6871947673, 0).text, "6.4 GiB");
	assert_string_equal(units_bytes(UINT64_MAX, 0).text, "16.0 EiB");
}

/* What would round to 1024.0 of a unit is one of the next. */
static void test_bytes_round_up(void **state)
{
	assert_string_equal(units_bytes(MIB(1) - 1, 0).text, "1.0 MiB");
	assert_string_equal(units_bytes(GIB(1) - 1, 0).text, "1.0 GiB");
	assert_string_equal(units_bytes(KIB(1023), 0).text, "1023.0 KiB");
}

static void test_bytes_exact(void **state)
{
	assert_string_equal(units_bytes(GIB(8), 1).text, "8589934592");
	assert_string_equal(units_bytes(UINT64_MAX, 1).text, "18446744073709551615");
}

static void test_bytes_of(void **state)
{
	assert_string_equal(units_bytes_of(GIB(5) / 10, GIB(8), 0).text, "0.5");
	assert_string_equal(units_bytes_of(0, GIB(8), 0).text, "0.0");
	assert_string_equal(units_bytes_of(KIB(300), GIB(8), 0).text, "300.0 KiB");
	assert_string_equal(units_bytes_of(MIB(1), GIB(8), 1).text, "1048576");
}

static void test_count(void **state)
{
	assert_string_equal(units_count(0).text, "0");
	assert_string_equal(units_count(999).text, "999");
	assert_string_equal(units_count(1000).text, "1 000");
	assert_string_equal(units_count(46592).text, "46 592");
	assert_string_equal(units_count(UINT64_MAX).text, "18 446 744 073 709 551 615");
}

static void test_round(void **state)
{
	assert_string_equal(units_round(9999).text, "9 999");
	assert_string_equal(units_round(10000).text, "10 k");
	assert_string_equal(units_round(418000).text, "418 k");
	assert_string_equal(units_round(999499).text, "999 k");
	assert_string_equal(units_round(999500).text, "1.0 M");
	assert_string_equal(units_round(1234567).text, "1.2 M");
	assert_string_equal(units_round(12345678).text, "12 M");
	assert_string_equal(units_round(UINT64_MAX).text, "18 E");
}

static void test_duration(void **state)
{
	assert_string_equal(units_duration(0).text, "0s");
	assert_string_equal(units_duration(NSEC_PER_SEC - 1).text, "0s");
	assert_string_equal(units_duration(59 * NSEC_PER_SEC).text, "59s");
	assert_string_equal(units_duration(60 * NSEC_PER_SEC).text, "1min");
	assert_string_equal(units_duration(724 * NSEC_PER_SEC).text, "12min 4s");
	assert_string_equal(units_duration(3600 * NSEC_PER_SEC).text, "1h");
	assert_string_equal(units_duration(3605 * NSEC_PER_SEC).text, "1h");
	assert_string_equal(units_duration(274320 * NSEC_PER_SEC).text, "3d 4h");
}

static void test_percent(void **state)
{
	assert_string_equal(units_percent(0, 0).text, "-");
	assert_string_equal(units_percent(0, 7).text, "0%");
	assert_string_equal(units_percent(2, 3).text, "67%");
	assert_string_equal(units_percent(7, 7).text, "100%");
	assert_string_equal(units_percent(1, 1000).text, "<1%");
	assert_string_equal(units_percent(1, 199).text, "1%");
	assert_string_equal(units_percent(999, 1000).text, ">99%");
	assert_string_equal(units_percent(994, 1000).text, "99%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	    cmocka_unit_test(test_bytes_round_up),
		cmocka_unit_test(test_bytes_exact), cmocka_unit_test(test_bytes_of),
		cmocka_unit_test(test_count),	    cmocka_unit_test(test_round),
		cmocka_unit_test(test_duration),    cmocka_unit_test(test_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
