/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that clients write themselves: whatever they say, the sums add up. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/usage.h"

static struct session_header head;
static struct session_map map = { .head = &head };

static struct usage read_with(uint64_t asked, uint64_t hit, uint64_t shared)
{
	struct usage u;

	memset(&head, 0, sizeof(head));
	head.counter[COUNTER_LOOKUPS] = 3;
	head.counter[COUNTER_RACED] = 1;
	head.counter[COUNTER_ASKED_TOKENS] = asked;
	head.counter[COUNTER_HIT_TOKENS] = hit;
	head.counter[COUNTER_SHARED_TOKENS] = shared;
	/* Not believed. */
	head.counter[COUNTER_MISS_TOKENS] = 12345;
	usage_read(&map, &u);
	assert_int_equal(u.hit + u.miss, u.asked);
	assert_true(u.shared <= u.hit);
	return u;
}

static void honest(void **state)
{
	struct usage u = read_with(100, 70, 20);

	assert_int_equal(u.asked, 100);
	assert_int_equal(u.hit, 70);
	assert_int_equal(u.miss, 30);
	assert_int_equal(u.shared, 20);
	assert_int_equal(u.lookups, 3);
	assert_int_equal(u.raced, 1);
}

/* Seen between two additions of a client that counts. */
static void hit_before_asked(void **state)
{
	struct usage u = read_with(100, 130, 110);

	assert_int_equal(u.hit, 100);
	assert_int_equal(u.miss, 0);
	assert_int_equal(u.shared, 100);
}

static void hostile(void **state)
{
	read_with(0, UINT64_MAX, UINT64_MAX);
	read_with(UINT64_MAX, 0, 1);
	read_with(UINT64_MAX, UINT64_MAX, UINT64_MAX);
}

static void sums_never_run_over(void **state)
{
	struct usage sum = { 0 }, u = read_with(UINT64_MAX, UINT64_MAX - 1, 5);

	for (unsigned int i = 0; i < 100000; i++) {
		usage_add(&sum, &u);
		assert_int_equal(sum.hit + sum.miss, sum.asked);
	}
	assert_true(sum.asked >= u.asked && sum.asked <= UINT64_C(1) << 63);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest),
		cmocka_unit_test(hit_before_asked),
		cmocka_unit_test(hostile),
		cmocka_unit_test(sums_never_run_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
