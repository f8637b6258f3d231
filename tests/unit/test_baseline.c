/* SPDX-License-Identifier: Apache-2.0 */
/* Counters from some time on: what adds up before does so after. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/baseline.h"

static void check_sums(const struct usage *u)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < USAGE_REASONS; i++)
		sum += u->reasons[i];
	assert_int_equal(u->asked, u->hit + u->miss);
	assert_int_equal(u->miss, sum);
	assert_true(u->shared <= u->hit);
}

static struct usage make_usage(uint64_t hit, uint64_t cold, uint64_t evicted)
{
	struct usage u = { .lookups = 9, .hit = hit, .shared = hit / 2 };

	u.reasons[MISS_COLD] = cold;
	u.reasons[MISS_EVICTED] = evicted;
	u.miss = cold + evicted;
	u.asked = u.hit + u.miss;
	return u;
}

static void what_was_before_is_taken_away(void **state)
{
	struct baseline b = { .usage = make_usage(100, 30, 4), .touches_lost = 3 };
	struct usage u = make_usage(150, 35, 5);
	uint64_t lost = 10;

	baseline_usage(&b, &u, &lost);
	check_sums(&u);
	assert_int_equal(u.lookups, 0);
	assert_int_equal(u.hit, 50);
	assert_int_equal(u.reasons[MISS_COLD], 5);
	assert_int_equal(u.miss, 6);
	assert_int_equal(u.asked, 56);
	assert_int_equal(u.shared, 25);
	assert_int_equal(lost, 7);
}

/* A client that lies can make counters go back. */
static void counters_that_go_back_add_up(void **state)
{
	struct baseline b = { .usage = make_usage(100, 30, 4), .touches_lost = 3 };
	struct usage u = make_usage(110, 10, 7);
	uint64_t lost = 1;

	u.shared = 90;
	baseline_usage(&b, &u, &lost);
	check_sums(&u);
	assert_int_equal(u.hit, 10);
	assert_int_equal(u.miss, 3);
	assert_int_equal(u.shared, 10);
	assert_int_equal(lost, 0);
}

static void only_counters_of_the_pool(void **state)
{
	struct baseline b = { .pool = { .blocks = 5, .published = 7, .evicted = 2 } };
	struct pool_stats s = { .blocks = 8, .pinned_bytes = 4096, .published = 17, .evicted = 2 };

	baseline_pool(&b, &s);
	assert_int_equal(s.blocks, 8);
	assert_int_equal(s.pinned_bytes, 4096);
	assert_int_equal(s.published, 10);
	assert_int_equal(s.evicted, 0);
}

/* All after published count; what does not stands before it. */
static void all_counters_of_the_pool(void **state)
{
	struct baseline b;
	struct pool_stats s;

	memset(&b, 1, sizeof(b));
	memset(&s, 1, sizeof(s));
	baseline_pool(&b, &s);
	assert_int_equal(s.pin_budget, 0x0101010101010101ull);
	assert_int_equal(s.published, 0);
	assert_int_equal(s.expired, 0);
	assert_int_equal(s.dooms, 0);
}

static void reasons_of_ends(void **state)
{
	struct baseline b = { .counts = { .connects = 5, .hints = 2 } };
	struct domain_counts c = { .connects = 8, .hints = 2 };

	b.counts.ended[REASON_CRASH] = 4;
	c.ended[REASON_CRASH] = 6;
	c.ended[REASON_KICKED] = 1;
	baseline_counts(&b, &c);
	assert_int_equal(c.connects, 3);
	assert_int_equal(c.ended[REASON_CRASH], 2);
	assert_int_equal(c.ended[REASON_KICKED], 1);
	assert_int_equal(c.hints, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_before_is_taken_away),
		cmocka_unit_test(counters_that_go_back_add_up),
		cmocka_unit_test(only_counters_of_the_pool),
		cmocka_unit_test(all_counters_of_the_pool),
		cmocka_unit_test(reasons_of_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
