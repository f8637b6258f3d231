/* SPDX-License-Identifier: Apache-2.0 */
/* Operators' pins: what they keep, what they cost, how they end. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

#define SLOTS 1024u /* of the whole pool, for blocks of 4 KiB */

static struct fixture f;
static struct pool_owner a;
static struct block_key keys[FIXTURE_RUN];
static struct pool_pinned last;
static uint32_t ns;

static int setup(void **state)
{
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	ns = fixture_ns(&f, "model", 1, 4096);
	return 0;
}

static int teardown(void **state)
{
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

/* The block at the end of the first n of chain number seed. */
static uint32_t block_of(uint64_t seed, uint32_t n)
{
	fixture_keys(seed, n, keys);
	return fixture_find(&f, &keys[n - 1]);
}

static int pin_block(uint32_t d, uint64_t ttl_ns, uint32_t priority, const char *label)
{
	const struct pool_pin_wish wish = { ttl_ns, priority, label };

	return pool_pin(f.p, d, block_gen(f.p, d), &wish, f.now, &last);
}

static int pin_chain(uint64_t seed, uint32_t n)
{
	return pin_block(block_of(seed, n), 0, 50, "");
}

/* Chains of that length, from number first on, a second apart, until the pool was filled. */
static void fill(uint64_t first, uint32_t len)
{
	for (uint32_t i = 0; i < SLOTS / len; i++) {
		fixture_pass(&f, NSEC_PER_SEC);
		fixture_chain(&f, &a, ns, first + i, len);
	}
}

static uint64_t pinned_bytes(void)
{
	return fixture_stats(&f).pinned_bytes;
}

static void a_pin_keeps_its_prefix(void **state)
{
	fixture_chain(&f, &a, ns, 1, 64);
	assert_int_equal(pin_chain(1, 40), 0);
	assert_int_equal(last.pin.number, 1);
	assert_int_equal(last.pin.blocks, 40);
	assert_int_equal(last.wanted, 40);
	assert_int_equal(last.added_bytes, 40 * 4096);
	fill(100, 64);
	fill(200, 64);
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 40);
	assert_int_equal(fixture_stats(&f).pins, 1);
	/* What an operator keeps is read by nobody. */
	assert_int_equal(fixture_stats(&f).leased_bytes, 0);
}

static void what_is_taken_back_goes(void **state)
{
	uint64_t bytes;

	fixture_chain(&f, &a, ns, 1, 64);
	assert_int_equal(pin_chain(1, 64), 0);
	assert_int_equal(pool_unpin(f.p, 2, &bytes), -ENOENT);
	assert_int_equal(pool_unpin(f.p, 1, &bytes), 0);
	assert_int_equal(bytes, 64 * 4096);
	assert_int_equal(pool_unpin(f.p, 1, &bytes), -ENOENT);
	assert_int_equal(pinned_bytes(), 0);
	fill(100, 64);
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 0);
	assert_int_equal(f.n_pins_ended, 0); /* nobody need be told */
}

static void a_shared_block_counts_once(void **state)
{
	struct block_key run[20];
	uint64_t bytes;

	fixture_keys(1, 10, run);
	fixture_keys(2, 10, &run[10]);
	fixture_publish(&f, &a, ns, run, 20);
	fixture_keys(3, 10, &run[10]);
	fixture_publish(&f, &a, ns, run, 20);
	assert_int_equal(pin_block(block_of(2, 10), 0, 50, "two"), 0);
	assert_int_equal(last.added_bytes, 20 * 4096);
	assert_int_equal(pin_block(block_of(3, 10), 0, 50, "three"), 0);
	assert_int_equal(last.added_bytes, 10 * 4096);
	assert_int_equal(pin_block(block_of(1, 5), 0, 50, "one"), 0);
	assert_int_equal(last.added_bytes, 0);
	assert_int_equal(pinned_bytes(), 30 * 4096);
	fixture_audit(&f);
	assert_int_equal(pool_unpin(f.p, 1, &bytes), 0);
	assert_int_equal(bytes, 10 * 4096);
	assert_int_equal(pool_unpin(f.p, 2, &bytes), 0);
	assert_int_equal(bytes, 15 * 4096);
	assert_int_equal(pinned_bytes(), 5 * 4096);
}

static void the_same_again_is_renewed(void **state)
{
	fixture_chain(&f, &a, ns, 1, 8);
	assert_int_equal(pin_block(block_of(1, 8), NSEC_PER_SEC, 50, "same"), 0);
	fixture_pass(&f, NSEC_PER_SEC / 2);
	assert_int_equal(pin_block(block_of(1, 8), NSEC_PER_SEC, 60, "same"), 0);
	assert_int_equal(last.pin.number, 1);
	assert_int_equal(last.added_bytes, 0);
	assert_int_equal(pin_block(block_of(1, 8), 0, 60, "other"), 0);
	assert_int_equal(last.pin.number, 2);
	fixture_pass(&f, NSEC_PER_SEC / 2);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).pins, 2);
	fixture_pass(&f, NSEC_PER_SEC / 2);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).pins, 1);
	assert_int_equal(f.pin_ended.number, 1);
	assert_int_equal(f.pin_ended.priority, 60);
}

static void the_budget_cuts_a_pin_short(void **state)
{
	assert_int_equal(fixture_stats(&f).pin_budget, SLOTS * 4096 * 20 / 100);
	pool_set_pin_budget(f.p, 50 * 4096);
	fixture_chain(&f, &a, ns, 1, 40);
	fixture_chain(&f, &a, ns, 2, 40);
	assert_int_equal(pin_chain(1, 40), 0);
	assert_int_equal(pin_chain(2, 40), 0);
	assert_int_equal(last.wanted, 40);
	assert_int_equal(last.pin.blocks, 10);
	assert_int_equal(last.pin.desc, block_of(2, 10));
	assert_int_equal(last.added_bytes, 10 * 4096);
	/* Nothing is left: not a block of another chain, all of what is held anyway. */
	fixture_chain(&f, &a, ns, 3, 4);
	assert_int_equal(pin_chain(3, 4), -EDQUOT);
	assert_int_equal(pin_block(block_of(2, 40), 0, 50, "again"), 0);
	assert_int_equal(last.pin.blocks, 10);
	assert_int_equal(last.added_bytes, 0);
	pool_set_pin_budget(f.p, 60 * 4096);
	assert_int_equal(pin_block(block_of(2, 40), 0, 50, "again"), 0);
	assert_int_equal(last.pin.blocks, 20);
}

static void a_smaller_budget_ends_the_least(void **state)
{
	fixture_chain(&f, &a, ns, 1, 10);
	fixture_chain(&f, &a, ns, 2, 10);
	fixture_chain(&f, &a, ns, 3, 10);
	assert_int_equal(pin_block(block_of(1, 10), 0, 40, "low"), 0);
	assert_int_equal(pin_block(block_of(2, 10), 0, 60, "old"), 0);
	assert_int_equal(pin_block(block_of(3, 10), 0, 60, "young"), 0);
	pool_set_pin_budget(f.p, 29 * 4096);
	assert_int_equal(f.n_pins_ended, 1);
	assert_string_equal(f.pin_ended.label, "low");
	assert_int_equal(f.pin_ended_why, PIN_END_BUDGET);
	pool_set_pin_budget(f.p, 10 * 4096);
	assert_int_equal(f.n_pins_ended, 2);
	assert_string_equal(f.pin_ended.label, "young");
	pool_set_pin_budget(f.p, 0);
	assert_int_equal(f.n_pins_ended, 3);
	assert_int_equal(pinned_bytes(), 0);
	assert_int_equal(pin_chain(1, 10), -EDQUOT);
}

static void a_pin_ends_with_its_time(void **state)
{
	fixture_chain(&f, &a, ns, 1, 10);
	fixture_chain(&f, &a, ns, 2, 10);
	fixture_pass(&f, fixture_config.reservation_ns);
	fixture_tick(&f); /* no reservation is left to look after */
	assert_int_equal(pin_block(block_of(1, 10), 2 * NSEC_PER_SEC, 50, ""), 0);
	assert_int_equal(pin_block(block_of(2, 10), 0, 50, ""), 0);
	assert_int_equal(fixture_tick(&f), f.now + 2 * NSEC_PER_SEC);
	fixture_pass(&f, 2 * NSEC_PER_SEC - 1);
	fixture_tick(&f);
	assert_int_equal(f.n_pins_ended, 0);
	fixture_pass(&f, 1);
	assert_int_equal(fixture_tick(&f), UINT64_MAX);
	assert_int_equal(f.n_pins_ended, 1);
	assert_int_equal(f.pin_ended_why, PIN_END_TTL);
	assert_int_equal(fixture_stats(&f).pins, 1);
}

/* The loop is not kept by all of them at once. */
static void many_pins_end_in_steps(void **state)
{
	char label[POOL_PIN_LABEL + 1];
	uint32_t d, left;

	fixture_chain(&f, &a, ns, 1, 200);
	d = block_of(1, 200);
	for (uint32_t i = 0; i < 500; i++) {
		snprintf(label, sizeof(label), "%u", i);
		assert_int_equal(pin_block(d, NSEC_PER_SEC, 50, label), 0);
	}
	fixture_pass(&f, NSEC_PER_SEC);
	assert_int_equal(pool_tick(f.p, f.now) <= f.now, 1);
	left = fixture_stats(&f).pins;
	assert_in_range(left, 1, 499);
	fixture_audit(&f);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).pins, 0);
	assert_int_equal(f.n_pins_ended, 500);
	assert_int_equal(pinned_bytes(), 0);
}

static void a_flush_ends_pins(void **state)
{
	struct pool_flushed dry = { .freed_blocks = 0 }, done = { .freed_blocks = 0 };
	uint32_t other = fixture_ns(&f, "other", 1, 4096);

	fixture_chain(&f, &a, ns, 1, 10);
	fixture_chain(&f, &a, other, 2, 10);
	assert_int_equal(pin_chain(1, 10), 0);
	assert_int_equal(pin_chain(1, 5), 0);
	assert_int_equal(pin_chain(2, 10), 0);
	assert_int_equal(pool_flush(f.p, ns, 1, f.now, &dry), 0);
	assert_int_equal(dry.dropped_pins, 2);
	assert_int_equal(dry.freed_blocks, 10);
	assert_int_equal(f.n_pins_ended, 0);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &done), 0);
	assert_int_equal(done.dropped_pins, 2);
	assert_int_equal(done.freed_blocks, 10);
	assert_int_equal(f.n_pins_ended, 2);
	assert_int_equal(f.pin_ended_why, PIN_END_FLUSHED);
	assert_int_equal(pinned_bytes(), 10 * 4096);
}

/* Pins of blocks that a flush has not come to yet are as good as others until then. */
static void a_pin_during_a_flush_ends_with_it(void **state)
{
	struct pool_flushed done = { .freed_blocks = 0 };

	f.p->flush_step = 16;
	fixture_chain(&f, &a, ns, 1, 20);
	fixture_chain(&f, &a, ns, 2, 20);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &done), 1);
	for (uint64_t i = 1; i <= 2; i++)
		if (fixture_cached(&f, ns, i, 20) >= 4)
			assert_int_equal(pin_chain(i, 4), 0);
	fixture_audit(&f);
	while (pool_flush(f.p, ns, 0, f.now, &done) == 1)
		fixture_audit(&f);
	assert_int_equal(fixture_stats(&f).pins, 0);
	assert_int_equal(done.dropped_pins, f.n_pins_ended);
	assert_true(f.n_pins_ended >= 1);
}

static void wrong_bytes_end_the_pins_below(void **state)
{
	uint64_t offset, bytes;
	uint32_t crc, d;

	fixture_chain(&f, &a, ns, 1, 10);
	assert_int_equal(pin_block(block_of(1, 10), 0, 50, "deep"), 0);
	assert_int_equal(pin_block(block_of(1, 3), 0, 50, "shallow"), 0);
	d = block_of(1, 5);
	assert_int_equal(pool_pin_for_verify(f.p, d, block_gen(f.p, d), &offset, &bytes, &crc), 0);
	assert_int_equal(pool_verify_done(f.p, d, block_gen(f.p, d), 1, f.now), 1);
	assert_int_equal(f.n_pins_ended, 1);
	assert_string_equal(f.pin_ended.label, "deep");
	assert_int_equal(pinned_bytes(), 3 * 4096);
}

/* A pool that is pinned by readers and operators serves nothing more, and breaks nothing. */
static void pins_of_both_kinds_fill_a_pool(void **state)
{
	pool_set_pin_budget(f.p, SLOTS * 4096);
	fill(1, 256);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(pin_chain(i, 256), 0);
	fixture_pin(&f, 0, 0, block_of(1, 256));
	fixture_keys(50, 10, keys);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 10), 0);
	assert_int_equal(f.full, FULL_POOL);
	pool_set_pin_budget(f.p, 768 * 4096);
	assert_string_equal(f.pin_ended.label, "");
	assert_int_equal(f.pin_ended.number, 4);
	fixture_chain(&f, &a, ns, 51, 10);
	fixture_unpin(&f, 0, 0);
	assert_int_equal(fixture_cached(&f, ns, 1, 256), 256);
}

static void no_extent_goes_from_under_a_pin(void **state)
{
	uint32_t other = fixture_ns(&f, "other", 1, 8192);

	pool_set_pin_budget(f.p, SLOTS * 4096);
	fill(1, 64);
	for (uint64_t i = 1; i <= 16; i++)
		assert_int_equal(pin_chain(i, 1), 0);
	fixture_pass(&f, 3600 * NSEC_PER_SEC);
	fixture_chain(&f, &a, other, 500, 8);
	for (uint64_t i = 1; i <= 16; i++)
		assert_true(fixture_cached(&f, ns, i, 1) == 1);
	assert_int_equal(fixture_stats(&f).pins, 16);
}

static void a_smaller_pool_keeps_what_is_pinned(void **state)
{
	struct pool_resized r;

	pool_set_pin_budget(f.p, SLOTS * 4096);
	fill(1, 64);
	assert_int_equal(pin_chain(1, 64), 0);
	assert_int_equal(pin_chain(9, 20), 0);
	fixture_pass(&f, 3600 * NSEC_PER_SEC);
	assert_int_equal(pool_resize(f.p, FIXTURE_GRANULE, 0, f.now, &r), 0);
	for (uint32_t i = 0; i < 20; i++) {
		fixture_tick(&f);
		fixture_punched(&f);
		fixture_pass(&f, NSEC_PER_SEC);
	}
	assert_int_equal(fixture_cached(&f, ns, 1, 64), 64);
	assert_in_range(fixture_cached(&f, ns, 9, 64), 20, 63);
	assert_int_equal(fixture_cached(&f, ns, 2, 64), 0);
	assert_int_equal(fixture_stats(&f).pins, 2);
}

static void there_are_so_many_pins_at_most(void **state)
{
	char label[POOL_PIN_LABEL + 1];
	uint64_t bytes;
	uint32_t d;

	fixture_chain(&f, &a, ns, 1, 4);
	d = block_of(1, 4);
	for (uint32_t i = 0; i < POOL_PINS_MAX; i++) {
		snprintf(label, sizeof(label), "%u", i);
		assert_int_equal(pin_block(d, 0, 50, label), 0);
	}
	assert_int_equal(pin_block(d, 0, 50, "one more"), -ENOSPC);
	assert_int_equal(pool_unpin(f.p, 500, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(pin_block(d, 0, 50, "one more"), 0);
	assert_int_equal(last.pin.number, POOL_PINS_MAX + 1);
	assert_int_equal(pool_pin_next(f.p, 499)->number, 501);
	assert_null(pool_pin_next(f.p, POOL_PINS_MAX + 1));
}

static void only_cached_blocks_can_be_pinned(void **state)
{
	const struct pool_pin_wish wish = { 0, 50, "" };
	uint32_t d;

	fixture_keys(1, 4, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 4);
	d = f.grant[0].desc;
	assert_int_equal(pool_pin(f.p, d, f.grant[0].gen, &wish, f.now, &last), -ENOENT);
	fixture_commit(&f, &a, 4);
	assert_int_equal(pool_pin(f.p, d, f.grant[0].gen + 1, &wish, f.now, &last), -ENOENT);
	assert_int_equal(pool_pin(f.p, DESC_NONE, 1, &wish, f.now, &last), -ENOENT);
	assert_int_equal(pool_pin(f.p, d, f.grant[0].gen, &wish, f.now, &last), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_pin_keeps_its_prefix),
		TEST(what_is_taken_back_goes),
		TEST(a_shared_block_counts_once),
		TEST(the_same_again_is_renewed),
		TEST(the_budget_cuts_a_pin_short),
		TEST(a_smaller_budget_ends_the_least),
		TEST(a_pin_ends_with_its_time),
		TEST(many_pins_end_in_steps),
		TEST(a_flush_ends_pins),
		TEST(a_pin_during_a_flush_ends_with_it),
		TEST(wrong_bytes_end_the_pins_below),
		TEST(pins_of_both_kinds_fill_a_pool),
		TEST(no_extent_goes_from_under_a_pin),
		TEST(a_smaller_pool_keeps_what_is_pinned),
		TEST(there_are_so_many_pins_at_most),
		TEST(only_cached_blocks_can_be_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
