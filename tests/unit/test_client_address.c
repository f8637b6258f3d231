/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/address.h"

static void check(const char *option, const char *socket, const char *dir, const char *first,
		  const char *second)
{
	struct address a;

	assert_int_equal(address_choose(option, socket, dir, &a), 0);
	assert_int_equal(a.count, second ? 2 : 1);
	assert_string_equal(a.path[0], first);
	if (second)
		assert_string_equal(a.path[1], second);
}

static void test_order(void **state)
{
	check("/a", "/b", "/c", "/a", NULL);
	check(NULL, "/b", "/c", "/b", NULL);
	check(NULL, NULL, "/c", "/c/kvpool/kvpool.sock", "/run/kvpool/kvpool.sock");
	check(NULL, NULL, NULL, "/run/kvpool/kvpool.sock", NULL);
}

static void test_empty_is_not_set(void **state)
{
	check("", "/b", "/c", "/b", NULL);
	check("", "", "", "/run/kvpool/kvpool.sock", NULL);
}

static void test_length(void **state)
{
	char path[200];
	struct address a = { .count = 17 };

	memset(path, 'x', sizeof(path));
	path[107] = '\0';
	check(path, NULL, NULL, path, NULL);
	path[107] = 'x';
	path[108] = '\0';
	assert_int_equal(address_choose(path, NULL, NULL, &a), -ENAMETOOLONG);
	assert_int_equal(address_choose(NULL, path, NULL, &a), -ENAMETOOLONG);
	assert_int_equal(a.count, 17);
	/* A folder that is too long for a socket in it has none. */
	check(NULL, NULL, path, "/run/kvpool/kvpool.sock", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_empty_is_not_set),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
