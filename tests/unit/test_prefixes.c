/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the most used prefixes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "daemon/prefixes.h"

static struct prefixes t;

static int setup(void **state)
{
	prefixes_init(&t);
	return 0;
}

/* Every entry is found, and none is lighter than the one above it in the heap. */
static int teardown(void **state)
{
	for (uint32_t i = 0; i < t.n; i++) {
		const struct prefix *e = &t.entry[i];

		assert_ptr_equal(prefixes_find(&t, e->desc, e->gen), e);
		assert_int_equal(t.heap[e->place], i);
		if (e->place)
			assert_true(t.entry[t.heap[(e->place - 1) / 2]].weight <= e->weight);
		assert_true(e->hits && e->hits <= e->weight);
	}
	return 0;
}

static void hit(uint32_t desc, uint64_t session, uint64_t now)
{
	prefixes_hit(&t, desc, desc * 3 + 1, 7, session, 16, now);
}

static const struct prefix *find(uint32_t desc)
{
	return prefixes_find(&t, desc, desc * 3 + 1);
}

static void hits_tokens_readers_and_times(void **state)
{
	assert_null(find(5));
	assert_int_equal(prefixes_readers(NULL), 0);
	hit(5, 1, 100);
	hit(5, 1, 200);
	hit(5, 2, 150);
	assert_int_equal(find(5)->hits, 3);
	assert_int_equal(find(5)->hit_tokens, 48);
	assert_int_equal(find(5)->first, 100);
	assert_int_equal(find(5)->used, 200);
	assert_int_equal(find(5)->ns, 7);
	assert_int_equal(prefixes_readers(find(5)), 2);
	/* The same number again, for another block. */
	assert_null(prefixes_find(&t, 5, 99));
}

static void what_is_used_often_stays(void **state)
{
	uint32_t there = 0;

	for (uint32_t d = 0; d < 100; d++)
		for (uint32_t k = 0; k < 300; k++)
			hit(d, k, k);
	/* Fifty times as many that come once, more than the table holds. */
	for (uint32_t i = 0; i < 50 * PREFIXES_MAX; i++)
		hit(1000 + i, 1, 1000 + i);
	assert_int_equal(t.n, PREFIXES_MAX);
	for (uint32_t d = 0; d < 100; d++)
		there += find(d) && find(d)->hits == 300;
	assert_int_equal(there, 100);
	/* A late one that is used often comes in as well. */
	for (uint32_t k = 0; k < 300; k++) {
		hit(500, k, 1);
		hit(100000 + k, 1, 1);
	}
	assert_non_null(find(500));
	assert_true(find(500)->hits >= 290);
}

static int is_even(const void *ctx, const struct prefix *e)
{
	return e->desc % 2 == 0;
}

static void a_sweep_takes_out_what_is_gone(void **state)
{
	for (uint32_t d = 0; d < PREFIXES_MAX; d++)
		for (uint64_t k = 0; k <= mix64(d) % 7; k++)
			hit(d, k, k);
	prefixes_sweep(&t, is_even, NULL);
	assert_int_equal(t.n, PREFIXES_MAX / 2);
	for (uint32_t d = 0; d < PREFIXES_MAX; d++)
		assert_int_equal(find(d) != NULL, d % 2 == 0);
	assert_int_equal(teardown(state), 0);
	hit(1, 1, 1);
	assert_int_equal(find(1)->hits, 1);
}

static void it_asks_for_a_sweep_when_it_has_turned_over(void **state)
{
	for (uint32_t d = 0; d < 2 * PREFIXES_MAX - 1; d++)
		hit(d, 1, 1);
	assert_false(prefixes_wants_sweep(&t));
	hit(1u << 20, 1, 1);
	assert_true(prefixes_wants_sweep(&t));
	prefixes_sweep(&t, is_even, NULL);
	assert_false(prefixes_wants_sweep(&t));
}

static void any_order(void **state)
{
	uint64_t seed = 1;

	for (uint32_t i = 0; i < 200000; i++) {
		uint64_t r = mix64(seed++);

		if (r % 5000 == 0)
			prefixes_sweep(&t, is_even, NULL);
		/* A few often, many seldom. */
		hit((uint32_t)(r % (r & 1u << 20 ? 50 : 5000)), r >> 40, i);
		if (r % 1000 == 0)
			teardown(state);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(hits_tokens_readers_and_times),
		TEST(what_is_used_often_stays),
		TEST(a_sweep_takes_out_what_is_gone),
		TEST(it_asks_for_a_sweep_when_it_has_turned_over),
		TEST(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
