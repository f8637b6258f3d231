/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean". */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/suggest.h"

static void distance(void **state)
{
	assert_int_equal(suggest_distance("status", "status"), 0);
	assert_int_equal(suggest_distance("stauts", "status"), 1);
	assert_int_equal(suggest_distance("statu", "status"), 1);
	assert_int_equal(suggest_distance("flash", "flush"), 1);
	assert_int_equal(suggest_distance("", "ping"), 4);
	assert_true(suggest_distance("reboot", "status") >= SUGGEST_FAR);
	/* Words longer than its table are compared by their beginnings. */
	assert_int_equal(suggest_distance("0123456789012345678901234567890123456789",
					  "01234567890123456789012345678901zzzz"),
			 0);
}

static const char *best(const char *word)
{
	static const char *const words[] = { "pool_size", "pool_sizf", "numa", "ttl" };
	struct suggest s = SUGGEST_INIT(word);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		suggest_offer(&s, words[i]);
	return s.best;
}

static void nearest(void **state)
{
	assert_string_equal(best("numa"), "numa");
	assert_string_equal(best("poolsize"), "pool_size");
	assert_string_equal(best("pool_size"), "pool_size");
	/* As near as another one: the first. */
	assert_string_equal(best("pool_siz"), "pool_size");
	assert_string_equal(best("tl"), "ttl");
	assert_null(best("temperature"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance),
		cmocka_unit_test(nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
