/* SPDX-License-Identifier: Apache-2.0 */
/* The eviction order, against a search through all leaves. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "policy/lru.h"

#define BLOCKS 600u

static struct lru_node node[BLOCKS];
static uint32_t heap[BLOCKS];
static struct lru l;

static int setup(void **state)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		node[i] = (struct lru_node){ .used = 0, .link = LRU_NONE };
	lru_init(&l, node, sizeof(*node), heap);
	return 0;
}

static void insert_at(uint32_t block, uint64_t used)
{
	node[block].used = used;
	lru_insert(&l, block);
}

static void an_empty_heap_has_no_oldest(void **state)
{
	assert_int_equal(lru_oldest(&l), LRU_NONE);
	lru_remove(&l, 3); /* not in it */
	assert_int_equal(l.count, 0);
}

static void the_oldest_comes_first(void **state)
{
	insert_at(1, 30);
	insert_at(2, 10);
	insert_at(3, 20);
	assert_int_equal(lru_oldest(&l), 2);
	assert_int_equal(lru_oldest(&l), 2); /* it stays in */
	lru_remove(&l, 2);
	assert_int_equal(lru_oldest(&l), 3);
	lru_remove(&l, 3);
	lru_remove(&l, 3); /* twice is harmless */
	assert_int_equal(lru_oldest(&l), 1);
	lru_remove(&l, 1);
	assert_int_equal(lru_oldest(&l), LRU_NONE);
}

/* As a parent takes the place of its last child. */
static void one_takes_the_place_of_another(void **state)
{
	insert_at(1, 10);
	insert_at(2, 20);
	insert_at(3, 30);
	node[4].used = 10;
	lru_replace(&l, 1, 4);
	assert_int_equal(lru_oldest(&l), 4);
	assert_false(lru_has(&node[1]));
	node[5].used = 25; /* later than the next one */
	lru_replace(&l, 4, 5);
	assert_int_equal(lru_oldest(&l), 2);
	node[6].used = 5; /* earlier than all, in a place of the end */
	lru_replace(&l, 3, 6);
	assert_int_equal(lru_oldest(&l), 6);
	assert_int_equal(l.count, 3);
}

static void a_touch_moves_a_leaf(void **state)
{
	insert_at(1, 10);
	insert_at(2, 20);
	lru_touch(&l, 1, 30);
	assert_int_equal(lru_oldest(&l), 2);
}

static void a_touch_never_makes_older(void **state)
{
	insert_at(1, 10);
	insert_at(2, 20);
	lru_touch(&l, 2, 5);
	assert_int_equal(node[2].used, 20);
	assert_int_equal(lru_oldest(&l), 1);
}

static void a_touch_of_no_leaf_sets_its_time(void **state)
{
	insert_at(1, 10);
	lru_touch(&l, 7, 99);
	assert_int_equal(node[7].used, 99);
	assert_int_equal(l.count, 1);
	lru_insert(&l, 7);
	assert_int_equal(lru_oldest(&l), 1);
}

static void a_time_can_be_set_back(void **state)
{
	insert_at(1, 10);
	insert_at(2, 20);
	insert_at(3, 30);
	lru_set(&l, 3, 5);
	assert_int_equal(lru_oldest(&l), 3);
	lru_set(&l, 3, 40);
	assert_int_equal(lru_oldest(&l), 1);
	lru_set(&l, 7, 3); /* no leaf */
	assert_int_equal(node[7].used, 3);
	assert_int_equal(l.count, 3);
}

static uint64_t naive_oldest(void)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (lru_has(&node[i]) && node[i].used < best)
			best = node[i].used;
	return best;
}

static void any_order_of_calls(void **state)
{
	uint64_t h = 20260730;
	uint32_t in = 0;

	for (uint32_t round = 0; round < 60000; round++) {
		uint32_t b, oldest;

		h = mix64(h + round);
		b = (uint32_t)(h % BLOCKS);
		if (!lru_has(&node[b])) {
			node[b].used = h >> 40;
			lru_insert(&l, b);
			in++;
		} else if (h >> 32 & 1) {
			lru_remove(&l, b);
			in--;
		} else if (h >> 34 & 1 && !lru_has(&node[(b + 1) % BLOCKS])) {
			node[(b + 1) % BLOCKS].used = h >> 40;
			lru_replace(&l, b, (b + 1) % BLOCKS);
		} else if (h >> 33 & 1) {
			lru_set(&l, b, h >> 40);
		} else {
			lru_touch(&l, b, node[b].used + (h >> 50));
		}
		assert_int_equal(l.count, in);
		oldest = lru_oldest(&l);
		if (in)
			assert_int_equal(node[oldest].used, naive_oldest());
		else
			assert_int_equal(oldest, LRU_NONE);
	}
}

static void draining_is_sorting(void **state)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		insert_at(i, mix64(i + 1) >> 48);
	while (l.count) {
		uint32_t b = lru_oldest(&l);

		assert_true(node[b].used >= last);
		last = node[b].used;
		lru_remove(&l, b);
		assert_int_equal(node[b].link, LRU_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_heap_has_no_oldest, setup),
		cmocka_unit_test_setup(the_oldest_comes_first, setup),
		cmocka_unit_test_setup(one_takes_the_place_of_another, setup),
		cmocka_unit_test_setup(a_touch_moves_a_leaf, setup),
		cmocka_unit_test_setup(a_touch_never_makes_older, setup),
		cmocka_unit_test_setup(a_touch_of_no_leaf_sets_its_time, setup),
		cmocka_unit_test_setup(a_time_can_be_set_back, setup),
		cmocka_unit_test_setup(any_order_of_calls, setup),
		cmocka_unit_test_setup(draining_is_sorting, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
