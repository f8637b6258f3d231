/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: what goes first, what never goes, how much at a time. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/evictor.h"
#include "tests/pool/fixture.h"

#define SLOTS 1024u /* of the whole pool, for blocks of 4 KiB */

static struct fixture f;
static struct pool_owner a, b;
static struct block_key keys[FIXTURE_RUN];
static uint32_t ns;

static int setup(void **state)
{
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	pool_owner_init(&b, 2);
	ns = fixture_ns(&f, "model", 1, 4096);
	return 0;
}

static int teardown(void **state)
{
	f.on_scan = NULL;
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

/* n chains of len blocks, numbers 1 to n, each a second later than the one before. */
static void fill(uint32_t n, uint32_t len)
{
	for (uint32_t i = 1; i <= n; i++) {
		fixture_chain(&f, &a, ns, i, len);
		fixture_pass(&f, NSEC_PER_SEC);
	}
}

static uint32_t leaf_of(uint64_t seed, uint32_t len)
{
	fixture_keys(seed, len, keys);
	return fixture_find(&f, &keys[len - 1]);
}

static void what_was_used_longest_ago_goes(void **state)
{
	fill(16, 64);
	fixture_chain(&f, &a, ns, 100, 64);
	assert_int_equal(fixture_cached(&f, ns, 100, 64), 64);
	/* 64 for the chain, and 32 for the next one to come. */
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 0);
	assert_int_equal(fixture_cached(&f, ns, 2, 64), 32);
	for (uint32_t i = 3; i <= 16; i++)
		assert_int_equal(fixture_cached(&f, ns, i, 64), 64);
	assert_int_equal(fixture_stats(&f).evicted, 96);
}

/* What can't be granted evicts nobody: a run of one key, and what is behind a key that is taken. */
static void no_room_is_made_for_what_is_not_granted(void **state)
{
	struct block_key run[1000];

	fill(16, 64);
	fixture_keys(100, 1000, run);
	for (uint32_t i = 1; i < 1000; i++)
		run[i] = run[0];
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, run, 1000), 1);
	assert_int_equal(f.verdict[1], VERDICT_BUSY);
	/* With what a reservation makes beforehand for the next one. */
	assert_int_equal(fixture_stats(&f).evicted, 1 + 32);
	fixture_keys(101, 1000, run);
	run[40] = run[20];
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, run, 1000), 40);
	assert_int_equal(fixture_stats(&f).evicted, 33 + 8 + 32);
	/* One that another writes ends the run as well. */
	fixture_keys(102, 1000, run);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, &run[30], 1), 1);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, run, 1000), 30);
	assert_int_equal(fixture_stats(&f).evicted, 33 + 8 + 32);
}

static void a_touch_is_a_use_of_the_prefix(void **state)
{
	fill(16, 64);
	pool_touch(f.p, ns, leaf_of(1, 10), 160, 160, f.now); /* a part of chain 1 */
	fixture_chain(&f, &a, ns, 100, 150);
	/* Its deeper part goes before anything else, the part that was used does not. */
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 10);
	assert_int_equal(fixture_cached(&f, ns, 2, 64), 0);
}

static void a_present_run_is_a_use(void **state)
{
	fill(16, 64);
	fixture_keys(1, 64, keys);
	fixture_reserve(&f, &b, ns, NULL, keys, 64);
	fixture_pass(&f, 1);
	fixture_chain(&f, &a, ns, 100, 64);
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 64);
	assert_int_equal(fixture_cached(&f, ns, 2, 64), 0);
}

static void touches_are_not_trusted(void **state)
{
	struct pool_ns_stats s;

	fill(1, 4);
	pool_touch(f.p, 77, 0, 10, 10, f.now);
	pool_touch(f.p, ns, DESC_NONE, 10, 30, f.now);
	pool_touch(f.p, ns, 5000, 10, 5, f.now);
	pool_touch(f.p, ns, 4000, 10, 0, f.now); /* FREE */
	assert_int_equal(pool_ns_get_stats(f.p, ns, &s), 0);
	assert_int_equal(s.lookups, 3);
	assert_int_equal(s.asked_tokens, 30);
	assert_int_equal(s.hit_tokens, 15); /* never more than asked */
}

static void a_touch_of_another_namespace_moves_nothing(void **state)
{
	uint32_t other = fixture_ns(&f, "model", 2, 4096);
	uint32_t d;
	uint64_t used;

	fill(1, 4);
	d = leaf_of(1, 4);
	used = f.p->block[d].lru.used;
	pool_touch(f.p, other, d, 64, 64, f.now);
	assert_int_equal(f.p->block[d].lru.used, used);
}

static void shared_heads_outlive_their_tails(void **state)
{
	struct block_key run[20];

	fixture_keys(1, 10, keys);
	fixture_publish(&f, &a, ns, keys, 10);
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < 10; k++)
			run[k] = keys[k];
		fixture_keys(1000 + i, 10, &run[10]);
		fixture_pass(&f, NSEC_PER_SEC);
		fixture_publish(&f, &a, ns, run, 20);
	}
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 2, 900);
	/* Nearly all tails went; the head is above what is left of them, and as young as they. */
	assert_int_equal(fixture_cached(&f, ns, 1, 10), 10);
	fixture_chain(&f, &a, ns, 3, 1000);
	assert_int_equal(fixture_cached(&f, ns, 1, 10), 0);
}

static void pinned_blocks_stay_and_all_above_them(void **state)
{
	fill(16, 64);
	fixture_pin(&f, 2, 5, leaf_of(1, 40));
	fixture_chain(&f, &a, ns, 100, 200);
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 40);
	assert_int_equal(fixture_stats(&f).leased_blocks, 40);
	assert_int_equal(fixture_stats(&f).leased_bytes, 40 * 4096);
	fixture_unpin(&f, 2, 5);
	assert_int_equal(fixture_stats(&f).leased_blocks, 0);
}

/* It was pinned when it was looked at, so it was used then. */
static void a_pinned_leaf_counts_as_used_now(void **state)
{
	fill(16, 64);
	fixture_pin(&f, 0, 0, leaf_of(1, 64));
	fixture_chain(&f, &a, ns, 100, 64);
	fixture_unpin(&f, 0, 0);
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 64);
	assert_int_equal(f.p->block[leaf_of(1, 64)].lru.used, f.now);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 101, 64);
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 64);
}

/* F40 */
static void all_pinned_is_full_at_once(void **state)
{
	uint32_t scans;

	fill(16, 64);
	for (uint32_t i = 1; i <= 16; i++)
		fixture_pin(&f, i % FIXTURE_SESSIONS, i, leaf_of(i, 64));
	fixture_keys(100, 64, keys);
	scans = f.scans;
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 64), 0);
	assert_int_equal(f.full, FULL_POOL);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(f.verdict[i], VERDICT_FULL);
	assert_true(f.scans - scans <= 4);
	assert_int_equal(fixture_stats(&f).blocks, SLOTS);
}

/* A reader that pins between the look and the mark: the second snapshot finds it. */
static uint32_t late_pin;
static uint32_t late_scans;

static void pin_late(struct fixture *x)
{
	if (++late_scans == 2)
		fixture_pin(x, 1, 1, late_pin);
}

static void a_pin_between_the_snapshots_wins(void **state)
{
	fill(16, 64);
	late_pin = leaf_of(1, 50);
	late_scans = 0;
	f.on_scan = pin_late;
	fixture_chain(&f, &a, ns, 100, 64);
	f.on_scan = NULL;
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 50);
	assert_int_equal(fixture_cached(&f, ns, 100, 64), 64);
	fixture_audit(&f);
}

/* Whatever a client does with its hazard words: each call ends, and nothing pinned goes. */
static void pin_the_oldest(struct fixture *x)
{
	const struct namespace *n = namespace_get(x->p, ns);
	uint32_t d = n->lru.count ? lru_oldest(&n->lru) : n->number;

	fixture_pin(x, 3, x->scans % FIXTURE_HAZARDS, d);
}

static void a_hostile_pinner_ends_nowhere(void **state)
{
	fill(512, 2);
	f.on_scan = pin_the_oldest;
	for (uint32_t i = 0; i < 40; i++) {
		fixture_keys(1000 + i, 8, keys);
		fixture_commit(&f, &a, fixture_reserve(&f, &a, ns, NULL, keys, 8));
	}
	f.on_scan = NULL;
}

static void nonsense_in_hazard_words_is_ignored(void **state)
{
	fill(16, 64);
	store_release(&f.session[0].hazard[0], 0xffffffffull);
	store_release(&f.session[0].hazard[1], UINT64_MAX);
	store_release(&f.session[0].hazard[2], hazard_make(4096, TIER_HOST, 0));
	store_release(&f.session[0].hazard[3], hazard_make(4095, TIER_DEVICE, 3)); /* FREE */
	fixture_chain(&f, &a, ns, 100, 64);
	assert_int_equal(fixture_stats(&f).leased_blocks, 0);
}

static void the_background_keeps_some_slots_free(void **state)
{
	struct namespace *n = namespace_get(f.p, ns);

	assert_int_equal(evictor_low_water(n), 0);
	fill(15, 64);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).evicted, 0); /* it can grow */
	fill(16, 64);
	assert_int_equal(evictor_low_water(n), SLOTS / 32);
	fixture_tick(&f);
	assert_int_equal(n->extents.n_free, 64); /* a step */
	f.scans = 0;
	fixture_chain(&f, &a, ns, 100, 64);
	assert_int_equal(f.scans, 0); /* it found room */
	assert_int_equal(fixture_stats(&f).evicted, 64);
}

static void the_background_takes_little_of_a_small_namespace(void **state)
{
	uint32_t large = fixture_ns(&f, "large", 1, KIB(64));
	struct namespace *n = namespace_get(f.p, large);

	for (uint64_t c = 0; c < 64; c++)
		fixture_chain(&f, &a, large, c, 1);
	assert_int_equal(n->extents.n_slots, 64);
	fixture_tick(&f);
	assert_int_equal(n->extents.n_free, 4);
}

static void the_background_rests_when_all_is_pinned(void **state)
{
	uint64_t next;

	fill(16, 64);
	for (uint32_t i = 1; i <= 16; i++)
		fixture_pin(&f, 0, i, leaf_of(i, 64));
	next = fixture_tick(&f);
	assert_true(next > f.now && next < UINT64_MAX);
	f.scans = 0;
	fixture_tick(&f);
	assert_int_equal(f.scans, 0);
	for (uint32_t i = 1; i <= 16; i++)
		fixture_unpin(&f, 0, i);
	f.now = next;
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).evicted, 64);
}

/* The run hangs below a block whose only child is the first to go. */
static void the_tip_of_a_run_stays_though_its_children_go(void **state)
{
	fixture_chain(&f, &a, ns, 1, 2);
	fixture_pass(&f, NSEC_PER_SEC);
	fill(1022 / 14, 14);
	fixture_keys(1, 2, keys);
	fixture_keys(9999, 20, &keys[2]);
	assert_int_equal(fixture_reserve(&f, &b, ns, &keys[0], &keys[2], 20), 20);
	assert_int_equal(fixture_cached(&f, ns, 1, 2), 1);
}

/* Hundreds go in batches, each closed below. */
static void a_long_run_evicts_in_batches(void **state)
{
	fill(1, 1000);
	fixture_chain(&f, &a, ns, 2, 900);
	assert_int_equal(fixture_cached(&f, ns, 2, 900), 900);
	assert_int_equal(fixture_cached(&f, ns, 1, 1000), SLOTS - 900 - 32);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_was_used_longest_ago_goes),
		TEST(no_room_is_made_for_what_is_not_granted),
		TEST(a_touch_is_a_use_of_the_prefix),
		TEST(a_present_run_is_a_use),
		TEST(touches_are_not_trusted),
		TEST(a_touch_of_another_namespace_moves_nothing),
		TEST(shared_heads_outlive_their_tails),
		TEST(pinned_blocks_stay_and_all_above_them),
		TEST(a_pinned_leaf_counts_as_used_now),
		TEST(all_pinned_is_full_at_once),
		TEST(a_pin_between_the_snapshots_wins),
		TEST(a_hostile_pinner_ends_nowhere),
		TEST(nonsense_in_hazard_words_is_ignored),
		TEST(the_background_keeps_some_slots_free),
		TEST(the_background_takes_little_of_a_small_namespace),
		TEST(the_background_rests_when_all_is_pinned),
		TEST(the_tip_of_a_run_stays_though_its_children_go),
		TEST(a_long_run_evicts_in_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
