/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that move between namespaces: when, which, and when not. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/reclaim.h"
#include "tests/pool/fixture.h"

#define SLOTS  16u /* of an extent, for blocks of 4 KiB */
#define MINUTE (60 * NSEC_PER_SEC)

static struct fixture f;
static struct pool_owner a, b;
static struct block_key keys[FIXTURE_RUN];
static uint32_t cold, hot;

static int setup(void **state)
{
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	pool_owner_init(&b, 2);
	cold = fixture_ns(&f, "m", 1, 4096);
	hot = fixture_ns(&f, "m", 2, 4096);
	return 0;
}

static int teardown(void **state)
{
	f.on_scan = NULL;
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

/* Gives a namespace n whole extents, one chain each, numbers from seed on. */
static void fill(uint32_t ns, uint64_t seed, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fixture_chain(&f, &a, ns, seed + i, SLOTS);
}

static uint32_t block_of(uint64_t seed, uint32_t i)
{
	fixture_keys(seed, i + 1, keys);
	return fixture_find(&f, &keys[i]);
}

static uint32_t extents_of(uint32_t ns)
{
	struct pool_ns_stats s;

	assert_int_equal(pool_ns_get_stats(f.p, ns, &s), 0);
	return (uint32_t)s.extents;
}

/* Reserves and commits as much of a chain as there is room for. */
static uint32_t put(uint32_t ns, uint64_t seed, uint32_t n)
{
	uint32_t granted;

	fixture_keys(seed, n, keys);
	granted = fixture_reserve(&f, &b, ns, NULL, keys, n);
	fixture_commit(&f, &b, granted);
	return granted;
}

static void a_namespace_without_memory_gets_some_at_once(void **state)
{
	uint64_t gen;

	for (uint32_t i = 0; i < 64; i++) {
		fill(cold, i, 1);
		fixture_pass(&f, 1);
	}
	gen = pool_control(f.p)->granule[0].gen;
	f.populated_bytes = 0;
	assert_int_equal(put(hot, 1000, 4), 4);
	assert_int_equal(extents_of(cold), 63);
	assert_int_equal(extents_of(hot), 1);
	assert_int_equal(fixture_cached(&f, cold, 0, SLOTS), 0); /* the one used longest ago */
	assert_int_equal(fixture_cached(&f, cold, 1, SLOTS), SLOTS);
	assert_int_equal(fixture_stats(&f).extents_taken, 1);
	assert_int_equal(fixture_stats(&f).evicted, SLOTS);
	/* The pages stay as they are. */
	assert_int_equal(f.n_punch, 0);
	assert_int_equal(pool_control(f.p)->granule[0].gen, gen);
	assert_int_equal(pool_control(f.p)->granule[0].ns, hot);
	assert_int_equal(f.populated_bytes, FIXTURE_GRANULE);
}

/* A prefix is used where its deepest block is: the extent with its head must not look cold. */
static void a_head_is_as_young_as_what_is_below_it(void **state)
{
	fixture_chain(&f, &a, cold, 0, 2 * SLOTS); /* two extents */
	fixture_pass(&f, NSEC_PER_SEC);
	fill(cold, 1, 62);
	fixture_pass(&f, NSEC_PER_SEC);
	pool_touch(f.p, cold, block_of(0, 2 * SLOTS - 1), 1, 1, f.now);
	fixture_pass(&f, NSEC_PER_SEC);
	assert_int_equal(put(hot, 1000, 4), 4);
	assert_int_equal(fixture_cached(&f, cold, 0, 2 * SLOTS), 2 * SLOTS);
}

static void both_put(uint64_t seed, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		fixture_pass(&f, NSEC_PER_SEC);
		assert_int_equal(put(hot, seed + 2 * i, SLOTS), SLOTS);
		assert_int_equal(put(cold, seed + 2 * i + 1, SLOTS), SLOTS);
	}
}

/* Two that write at one pace come to rest, whatever they had at first. */
static void equally_hot_ones_leave_each_other_alone(void **state)
{
	uint64_t taken;

	fill(cold, 0, 60);
	fill(hot, 1000, 4);
	both_put(2000, 400);
	assert_true(extents_of(hot) >= 20);
	taken = fixture_stats(&f).extents_taken;
	both_put(3000, 200);
	assert_int_equal(fixture_stats(&f).extents_taken, taken);
}

static void a_much_colder_one_gives(void **state)
{
	fill(cold, 0, 60);
	fill(hot, 1000, 4);
	fixture_pass(&f, MINUTE);
	for (uint32_t i = 0; i < 4; i++)
		pool_touch(f.p, hot, block_of(1000 + i, SLOTS - 1), 1, 1, f.now);
	fixture_pass(&f, NSEC_PER_SEC);
	assert_int_equal(put(hot, 2000, 3 * SLOTS), 3 * SLOTS);
	assert_int_equal(extents_of(hot), 7);
	for (uint32_t i = 0; i < 4; i++) /* nothing of its own went */
		assert_int_equal(fixture_cached(&f, hot, 1000 + i, SLOTS), SLOTS);
}

static void one_that_is_not_much_colder_keeps_its_own(void **state)
{
	fill(cold, 0, 60);
	fixture_pass(&f, 30 * NSEC_PER_SEC);
	fill(hot, 1000, 4);
	fixture_pass(&f, 31 * NSEC_PER_SEC);
	/* 61 s against 31 s: not twice as long. */
	assert_int_equal(put(hot, 2000, SLOTS), SLOTS);
	assert_int_equal(extents_of(hot), 4);
	fixture_pass(&f, NSEC_PER_SEC);
}

/* As many namespaces as want it, and one extent: it goes round, but not fast. */
static void the_only_extent_moves_when_it_is_idle(void **state)
{
	struct pool_config cfg = fixture_config;
	uint32_t one, two;

	fixture_fini(&f);
	cfg.pool_bytes = FIXTURE_GRANULE;
	fixture_init(&f, &cfg);
	one = fixture_ns(&f, "m", 1, 4096);
	two = fixture_ns(&f, "m", 2, 4096);
	assert_int_equal(put(one, 1, 4), 4);
	assert_int_equal(put(two, 2, 4), 0);
	assert_int_equal(f.full, FULL_POOL);
	fixture_pass(&f, RECLAIM_IDLE - 1);
	assert_int_equal(put(two, 2, 4), 0);
	fixture_pass(&f, 1);
	assert_int_equal(put(two, 2, 4), 4);
	assert_int_equal(fixture_cached(&f, one, 1, 4), 0);
	assert_int_equal(put(one, 1, 4), 0);
	fixture_pass(&f, RECLAIM_IDLE);
	assert_int_equal(put(one, 1, 4), 4);
}

static void an_extent_with_a_pin_on_it_or_below_stays(void **state)
{
	fixture_chain(&f, &a, cold, 0, 2 * SLOTS);
	fixture_pass(&f, NSEC_PER_SEC);
	fill(cold, 1, 62);
	fixture_pin(&f, 0, 0, block_of(0, SLOTS + 3));
	fixture_pin(&f, 0, 1, block_of(1, 2));
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(hot, 1000, 62 * SLOTS), 61 * SLOTS);
	assert_int_equal(f.full, FULL_POOL);
	assert_int_equal(fixture_cached(&f, cold, 0, 2 * SLOTS), 2 * SLOTS);
	assert_int_equal(fixture_cached(&f, cold, 1, SLOTS), SLOTS);
	assert_int_equal(extents_of(cold), 3);
}

static void an_extent_with_a_writer_in_it_or_below_stays(void **state)
{
	struct block_key run[SLOTS];

	/* The head of chain 0 fills an extent; a child of it is being written in another one. */
	fill(cold, 0, 63);
	fixture_keys(0, SLOTS, run);
	fixture_keys(500, 1, keys);
	assert_int_equal(fixture_reserve(&f, &a, cold, &run[SLOTS - 1], keys, 1), 1);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	assert_int_equal(put(hot, 1000, 64 * SLOTS), 62 * SLOTS);
	assert_int_equal(fixture_cached(&f, cold, 0, SLOTS), SLOTS);
	assert_int_equal(extents_of(cold), 2);
	/* In quarantine it is no better, but the head is free to go. */
	pool_owner_end(f.p, &a, f.now);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	assert_int_equal(put(hot, 1000, 64 * SLOTS), SLOTS);
	assert_int_equal(fixture_cached(&f, cold, 0, SLOTS), 0);
	assert_int_equal(extents_of(cold), 1);
}

/* It is pinned, so it is read; and what is above it stays with it. */
static void an_extent_with_a_doomed_block_stays(void **state)
{
	fixture_chain(&f, &a, cold, 0, 2 * SLOTS);
	fixture_pin(&f, 0, 0, block_of(0, 2 * SLOTS - 1));
	pool_flush(f.p, cold, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 });
	assert_int_equal(fixture_stats(&f).doomed_bytes, 2 * SLOTS * 4096);
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(hot, 1000, 64 * SLOTS), 62 * SLOTS);
	fixture_audit(&f);
	assert_int_equal(extents_of(cold), 2);
}

/* What it has is in use as far as anybody can tell: that counts as hot. */
static void one_whose_own_blocks_are_all_pinned_takes(void **state)
{
	fill(hot, 1000, 4);
	fill(cold, 0, 60);
	for (uint32_t i = 0; i < 4; i++)
		fixture_pin(&f, 0, i, block_of(1000 + i, SLOTS - 1));
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(hot, 2000, SLOTS), SLOTS);
	assert_int_equal(extents_of(hot), 5);
}

static void all_pinned_is_full_at_once(void **state)
{
	f.p->reclaim_blocks = UINT32_MAX; /* who looks again and again never ends */
	fill(cold, 0, 64);
	for (uint32_t i = 0; i < 64; i++)
		fixture_pin(&f, i % 4, i / 4, block_of(i, 0));
	fixture_pass(&f, MINUTE);
	f.scans = 0;
	assert_int_equal(put(hot, 1000, 4), 0);
	assert_int_equal(f.full, FULL_POOL);
	assert_true(f.scans <= 4);
}

static uint32_t late_pin, late_scans;

static void pin_late(struct fixture *x)
{
	if (++late_scans == 2)
		fixture_pin(x, 0, 0, late_pin);
}

/* A pin between the look and the mark: that extent stays, another one goes. */
static void a_pin_between_the_snapshots_wins(void **state)
{
	for (uint32_t i = 0; i < 64; i++) {
		fill(cold, i, 1);
		fixture_pass(&f, 1);
	}
	late_pin = block_of(0, SLOTS - 1);
	late_scans = 0;
	f.on_scan = pin_late;
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(hot, 1000, 4), 4);
	f.on_scan = NULL;
	assert_int_equal(fixture_cached(&f, cold, 0, SLOTS), SLOTS);
	assert_int_equal(fixture_cached(&f, cold, 1, SLOTS), 0);
}

/* Extents of 1 granule lie side by side; a block of half a granule needs two in a row. */
static void a_window_of_neighbours(void **state)
{
	uint32_t wide = fixture_ns(&f, "m", 3, FIXTURE_GRANULE);

	for (uint32_t i = 0; i < 64; i++) {
		fill(cold, i, 1);
		fixture_pass(&f, NSEC_PER_SEC);
	}
	for (uint32_t i = 0; i < 64; i++) /* only 20 to 23 and a few that are alone stay cold */
		if ((i < 20 || i > 23) && i % 5)
			pool_touch(f.p, cold, block_of(i, SLOTS - 1), 1, 1, f.now);
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(wide, 1000, 4), 4);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(fixture_cached(&f, cold, i, SLOTS),
				 i >= 20 && i <= 23 ? 0 : SLOTS);
	assert_int_equal(fixture_stats(&f).extents_taken, 4);
	assert_int_equal(f.n_punch, 0);
}

/* Free granules that are not in a row: their neighbours are taken. */
static void fragments_are_joined(void **state)
{
	uint32_t wide = fixture_ns(&f, "m", 3, FIXTURE_GRANULE);
	uint32_t other = fixture_ns(&f, "m", 4, 4096);

	/* Every other granule is the other's, and free again then. */
	for (uint32_t i = 0; i < 32; i++) {
		fill(cold, i, 1);
		fill(other, 100 + i, 1);
	}
	pool_flush(f.p, other, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 });
	pool_ns_drop(f.p, other);
	fixture_punched(&f);
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(wide, 1000, 4), 4);
	assert_int_equal(fixture_stats(&f).extents_taken, 2);
}

/* What sticks out of the window is nobody's then. */
static void the_rest_of_a_large_extent_is_punched(void **state)
{
	uint32_t wide = fixture_ns(&f, "m", 3, FIXTURE_GRANULE);

	for (uint32_t i = 0; i < 16; i++)
		fixture_chain(&f, &a, wide, i, 4);
	fixture_pass(&f, MINUTE);
	assert_int_equal(put(hot, 1000, 4), 4);
	assert_int_equal(extents_of(wide), 15);
	assert_int_equal(f.n_punch, 1);
	assert_int_equal(f.punch[0].bytes, 3 * FIXTURE_GRANULE);
	fixture_audit(&f);
	fixture_punched(&f);
	assert_int_equal(put(hot, 1001, 60), 60);
	assert_int_equal(extents_of(wide), 15);
}

/* Each of these namespaces gets memory, however small its share. */
static void four_namespaces_share(void **state)
{
	uint32_t third = fixture_ns(&f, "m", 3, 2 * FIXTURE_GRANULE);
	uint32_t fourth = fixture_ns(&f, "m", 4, 3 * 4096);

	for (uint32_t i = 0; i < 30; i++) {
		fixture_pass(&f, NSEC_PER_SEC / 10);
		assert_int_equal(put(cold, 10000 + i, 100), 100);
		assert_int_equal(put(hot, 20000 + i, 50), 50);
		assert_int_equal(put(third, 30000 + i, 4), 4);
		assert_int_equal(put(fourth, 40000 + i, 10), 10);
		fixture_punched(&f);
		fixture_audit(&f);
	}
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_namespace_without_memory_gets_some_at_once),
		TEST(a_head_is_as_young_as_what_is_below_it),
		TEST(equally_hot_ones_leave_each_other_alone),
		TEST(a_much_colder_one_gives),
		TEST(one_that_is_not_much_colder_keeps_its_own),
		TEST(the_only_extent_moves_when_it_is_idle),
		TEST(an_extent_with_a_pin_on_it_or_below_stays),
		TEST(an_extent_with_a_writer_in_it_or_below_stays),
		TEST(an_extent_with_a_doomed_block_stays),
		TEST(one_whose_own_blocks_are_all_pinned_takes),
		TEST(all_pinned_is_full_at_once),
		TEST(a_pin_between_the_snapshots_wins),
		TEST(a_window_of_neighbours),
		TEST(fragments_are_joined),
		TEST(the_rest_of_a_large_extent_is_punched),
		TEST(four_namespaces_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
