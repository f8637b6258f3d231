/* SPDX-License-Identifier: Apache-2.0 */
/* Flush and bad bytes: whole subtrees, pinned or not. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

static struct fixture f;
static struct pool_owner a, b;
static struct block_key keys[FIXTURE_RUN];
static struct pool_flushed flushed;
static uint32_t ns;

static int start(const struct pool_config *cfg)
{
	fixture_init(&f, cfg);
	pool_owner_init(&a, 1);
	pool_owner_init(&b, 2);
	ns = fixture_ns(&f, "model", 1, 4096);
	flushed = (struct pool_flushed){ .freed_blocks = 0 };
	return 0;
}

static int setup(void **state)
{
	return start(&fixture_config);
}

static int teardown(void **state)
{
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static uint32_t block_of(uint64_t seed, uint32_t i)
{
	fixture_keys(seed, i + 1, keys);
	return fixture_find(&f, &keys[i]);
}

static void expect_flushed(uint64_t freed, uint64_t kept, uint64_t voided)
{
	assert_int_equal(flushed.freed_blocks, freed);
	assert_int_equal(flushed.freed_bytes, freed * 4096);
	assert_int_equal(flushed.kept_blocks, kept);
	assert_int_equal(flushed.voided_blocks, voided);
}

static void all_of_a_namespace_goes_and_its_memory(void **state)
{
	uint32_t other = fixture_ns(&f, "model", 2, 4096);

	for (uint32_t i = 0; i < 10; i++)
		fixture_chain(&f, &a, ns, i, 10);
	fixture_chain(&f, &a, other, 50, 10);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	expect_flushed(100, 0, 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(fixture_cached(&f, ns, i, 10), 0);
	assert_int_equal(fixture_cached(&f, other, 50, 10), 10);
	/* The other's, and one to go on with. */
	assert_int_equal(fixture_stats(&f).handed_bytes, 2 * FIXTURE_GRANULE);
	assert_int_equal(f.n_punch, 6);
	assert_int_equal(fixture_stats(&f).flushed, 100);
	fixture_punched(&f);
	fixture_chain(&f, &a, ns, 3, 10);
	assert_int_equal(fixture_cached(&f, ns, 3, 10), 10);
}

static void no_such_namespace(void **state)
{
	assert_int_equal(pool_flush(f.p, 3, 0, f.now, &flushed), -ENOENT);
	assert_int_equal(pool_flush(f.p, 3, 1, f.now, &flushed), -ENOENT);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	expect_flushed(0, 0, 0);
}

static void a_dry_run_only_counts(void **state)
{
	fixture_chain(&f, &a, ns, 1, 20);
	fixture_pin(&f, 0, 0, block_of(1, 4));
	fixture_keys(2, 3, keys);
	fixture_reserve(&f, &b, ns, NULL, keys, 3);
	assert_int_equal(pool_flush(f.p, ns, 1, f.now, &flushed), 0);
	expect_flushed(15, 5, 3);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20);
	assert_int_equal(b.n_reserved, 3);
	flushed = (struct pool_flushed){ .freed_blocks = 0 };
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	expect_flushed(15, 5, 3);
}

static void pinned_blocks_are_unlisted_and_freed_later(void **state)
{
	uint32_t d, w_desc;
	uint64_t w, next;

	fixture_chain(&f, &a, ns, 1, 20);
	d = block_of(1, 9);
	fixture_pin(&f, 0, 3, d);
	pool_flush(f.p, ns, 0, f.now, &flushed);
	expect_flushed(10, 10, 0);
	assert_false(index_probe(pool_control(f.p), &keys[0], &w_desc, &w));
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 10 * 4096);
	fixture_audit(&f);
	/* The same key lives in a new block meanwhile. */
	fixture_chain(&f, &b, ns, 1, 20);
	assert_true(block_of(1, 9) != d);
	next = fixture_tick(&f);
	assert_true(next > f.now && next < UINT64_MAX);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 10 * 4096);
	fixture_unpin(&f, 0, 3);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 0);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20);
}

/* What an earlier flush unlisted, and somebody still reads, is none of the next one's. */
static void a_flush_counts_only_what_it_met(void **state)
{
	fixture_chain(&f, &a, ns, 1, 20);
	fixture_pin(&f, 0, 3, block_of(1, 9));
	pool_flush(f.p, ns, 0, f.now, &flushed);
	expect_flushed(10, 10, 0);
	for (int dry_run = 1; dry_run >= 0; dry_run--) {
		flushed = (struct pool_flushed){ .freed_blocks = 0 };
		pool_flush(f.p, ns, dry_run, f.now, &flushed);
		expect_flushed(0, 0, 0);
	}
	/* Nor is it when it goes in that moment. */
	fixture_chain(&f, &a, ns, 1, 5);
	fixture_pin(&f, 0, 4, block_of(1, 1));
	fixture_unpin(&f, 0, 3);
	pool_flush(f.p, ns, 0, f.now, &flushed);
	expect_flushed(3, 2, 0);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 2 * 4096);
}

static void reservations_are_voided(void **state)
{
	struct pool_grant g;

	fixture_chain(&f, &a, ns, 1, 4);
	fixture_keys(1, 4, keys);
	fixture_keys(77, 3, &keys[4]);
	assert_int_equal(fixture_reserve(&f, &b, ns, &keys[3], &keys[4], 3), 3);
	g = f.grant[0];
	pool_flush(f.p, ns, 0, f.now, &flushed);
	expect_flushed(4, 0, 3);
	assert_int_equal(b.n_reserved, 0);
	assert_int_equal(b.n_quarantine, 3);
	assert_int_equal(pool_commit(f.p, &b, g.desc, g.gen, 0, f.now), VERDICT_STALE);
	assert_int_equal(pool_abort(f.p, &b, g.desc, g.gen), VERDICT_FREED);
}

static int setup_large(void **state)
{
	struct pool_config cfg = fixture_config;

	cfg.pool_bytes = MIB(512);
	cfg.granule_shift = 22;
	cfg.max_blocks = 131072;
	return start(&cfg);
}

static void publish_many(uint32_t from, uint32_t chains, uint32_t len)
{
	for (uint32_t i = 0; i < chains; i++)
		fixture_chain(&f, &a, ns, from + i, len);
}

/* More than one call's worth: in steps, leaves first, the region sound after each. */
static void a_large_flush_goes_in_steps(void **state)
{
	uint64_t blocks = 50 * 2000;
	uint32_t calls = 0;
	int more;

	publish_many(1, 50, 2000);
	do {
		more = pool_flush(f.p, ns, 0, f.now, &flushed);
		fixture_audit(&f);
		calls++;
	} while (more);
	assert_int_equal(calls, (blocks + POOL_FLUSH_STEP - 1) / POOL_FLUSH_STEP);
	expect_flushed(blocks, 0, 0);
}

static void the_tick_goes_on_with_a_flush(void **state)
{
	publish_many(1, 50, 2000);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 1);
	assert_int_equal(pool_tick(f.p, f.now), f.now);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).blocks, 0);
}

static void what_comes_during_a_flush_stays(void **state)
{
	publish_many(1, 50, 2000);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 1);
	publish_many(1000, 1, 100);
	while (pool_flush(f.p, ns, 0, f.now, &flushed))
		;
	expect_flushed(100000, 0, 0);
	assert_int_equal(fixture_cached(&f, ns, 1000, 100), 100);
}

/*
 * A pin deep down in a tree of which only a part is flushed yet: its ancestors must not be evicted.
 */
static void a_pin_holds_what_a_flush_has_not_come_to(void **state)
{
	struct block_key run[2000];
	uint32_t d;

	/* One root with everything below it. */
	fixture_keys(1, 1000, run);
	fixture_publish(&f, &a, ns, run, 1000);
	for (uint32_t i = 0; i < 40; i++) {
		fixture_keys(100 + i, 1000, &run[1000]);
		fixture_publish(&f, &a, ns, run, 2000);
	}
	fixture_keys(100, 1000, keys);
	for (uint32_t i = 0; i < 40; i++) {
		fixture_keys(100 + i, 1000, keys);
		fixture_pin(&f, i % 4, i, fixture_find(&f, &keys[999]));
	}
	fixture_keys(100, 1, keys);
	d = fixture_find(&f, &keys[0]);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 1);
	assert_int_equal(flushed.freed_blocks, 0);
	fixture_audit(&f);
	assert_true(d < f.p->cfg.max_blocks);
	while (pool_flush(f.p, ns, 0, f.now, &flushed))
		fixture_audit(&f);
	expect_flushed(0, 41000, 0);
	for (uint32_t i = 0; i < 40; i++)
		fixture_unpin(&f, i % 4, i);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 0);
}

static void pin_for_verify(uint32_t d, uint64_t *ret_gen)
{
	uint64_t offset, bytes;
	uint32_t crc;

	*ret_gen = word_gen(pool_control(f.p)->desc[d].word);
	assert_int_equal(pool_pin_for_verify(f.p, d, *ret_gen, &offset, &bytes, &crc), 0);
	assert_int_equal(offset, slot_offset(pool_control(f.p)->desc[d].slot[TIER_HOST]));
	assert_int_equal(bytes, 4096);
	assert_int_equal(crc, pool_control(f.p)->desc[d].crc);
}

static void bad_bytes_doom_a_subtree(void **state)
{
	uint64_t gen;
	uint32_t d;

	fixture_chain(&f, &a, ns, 1, 20);
	fixture_chain(&f, &a, ns, 2, 20);
	d = block_of(1, 8);
	pin_for_verify(d, &gen);
	assert_int_equal(pool_verify_done(f.p, d, gen, 1, f.now), 1);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 8);
	assert_int_equal(fixture_cached(&f, ns, 2, 20), 20);
	assert_int_equal(fixture_stats(&f).dooms, 1);
	assert_int_equal(fixture_stats(&f).flushed, 12);
}

static void good_bytes_change_nothing(void **state)
{
	uint64_t gen;
	uint32_t d;

	fixture_chain(&f, &a, ns, 1, 20);
	d = block_of(1, 8);
	pin_for_verify(d, &gen);
	assert_int_equal(pool_verify_done(f.p, d, gen, 0, f.now), 0);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20);
	/* Without a pin there is nothing to be done with. */
	assert_int_equal(pool_verify_done(f.p, d, gen, 1, f.now), 0);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20);
}

static void a_block_under_verify_is_pinned(void **state)
{
	uint64_t gen;
	uint32_t d;

	fixture_chain(&f, &a, ns, 1, 20);
	d = block_of(1, 8);
	pin_for_verify(d, &gen);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 2, 1015);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 9);
	pool_flush(f.p, ns, 0, f.now, &flushed);
	expect_flushed(1015, 9, 0);
	assert_int_equal(pool_verify_done(f.p, d, gen, 1, f.now), 0); /* doomed already */
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 0);
}

static void verify_of_what_is_not_there(void **state)
{
	uint64_t offset, bytes, gen;
	uint32_t crc, d;

	fixture_chain(&f, &a, ns, 1, 2);
	d = block_of(1, 1);
	gen = word_gen(pool_control(f.p)->desc[d].word);
	assert_int_equal(pool_pin_for_verify(f.p, d, gen + 1, &offset, &bytes, &crc), -ENOENT);
	assert_int_equal(pool_pin_for_verify(f.p, 4096, gen, &offset, &bytes, &crc), -ENOENT);
	assert_int_equal(pool_pin_for_verify(f.p, DESC_NONE, gen, &offset, &bytes, &crc), -ENOENT);
	for (uint32_t i = 0; i < POOL_VERIFY_MAX; i++)
		assert_int_equal(pool_pin_for_verify(f.p, d, gen, &offset, &bytes, &crc), 0);
	assert_int_equal(pool_pin_for_verify(f.p, d, gen, &offset, &bytes, &crc), -EBUSY);
	for (uint32_t i = 0; i < POOL_VERIFY_MAX; i++)
		assert_int_equal(pool_verify_done(f.p, d, gen, 0, f.now), 0);
	fixture_keys(9, 1, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	assert_int_equal(pool_pin_for_verify(f.p, f.grant[0].desc, f.grant[0].gen, &offset, &bytes,
					     &crc), -ENOENT);
}

/* First the tail is doomed and stays pinned, then its head: the pin holds both. */
static void a_doom_above_a_doom(void **state)
{
	uint64_t gen;
	uint32_t tail, head;

	fixture_chain(&f, &a, ns, 1, 20);
	tail = block_of(1, 15);
	head = block_of(1, 5);
	fixture_pin(&f, 0, 0, tail);
	pin_for_verify(tail, &gen);
	assert_int_equal(pool_verify_done(f.p, tail, gen, 1, f.now), 1);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 15);
	fixture_audit(&f);
	/* The doomed tail keeps its parent, however old that is. */
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_keys(2, 1010, keys);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 1010), 1008);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 15);
	pin_for_verify(head, &gen);
	assert_int_equal(pool_verify_done(f.p, head, gen, 1, f.now), 1);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 5);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 11 * 4096);
	fixture_audit(&f);
	fixture_unpin(&f, 0, 0);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 0);
	fixture_punched(&f);
	fixture_keys(2, 1024, keys);
	assert_int_equal(fixture_reserve(&f, &b, ns, &keys[1007], &keys[1008], 16), 16);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
}

static int setup_small(void **state)
{
	struct pool_config cfg = fixture_config;

	cfg.pool_bytes = 2 * FIXTURE_GRANULE; /* 32 blocks */
	return start(&cfg);
}

/* It was used when its child was. */
static void a_parent_is_as_young_as_the_child_it_lost(void **state)
{
	uint64_t gen;
	uint32_t leaf;

	fixture_chain(&f, &a, ns, 1, 5);
	leaf = block_of(1, 4);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 2, 5);
	fixture_pass(&f, NSEC_PER_SEC);
	pool_touch(f.p, ns, leaf, 80, 80, f.now);
	pin_for_verify(leaf, &gen);
	assert_int_equal(pool_verify_done(f.p, leaf, gen, 1, f.now), 1);
	fixture_chain(&f, &a, ns, 3, 23); /* all that is free */
	fixture_keys(4, 4, keys);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 4), 4);
	assert_int_equal(fixture_cached(&f, ns, 2, 5), 0);
	assert_int_equal(fixture_cached(&f, ns, 1, 5), 4);
}

/* A root that an eviction gives back in the midst of a flush does not escape it. */
static uint32_t late_pin, late_scans;

static void pin_late(struct fixture *x)
{
	/* After the look, before the mark. */
	if (++late_scans == 2)
		fixture_pin(x, 0, 0, late_pin);
}

static void what_an_eviction_gives_back_is_still_flushed(void **state)
{
	f.p->flush_step = 1;
	for (uint32_t i = 0; i < 3; i++) {
		fixture_chain(&f, &a, ns, i, 1);
		fixture_pass(&f, NSEC_PER_SEC);
	}
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 1);
	late_pin = block_of(0, 0);
	f.on_scan = pin_late;
	fixture_keys(10, 1023, keys);
	fixture_commit(&f, &b, fixture_reserve(&f, &b, ns, NULL, keys, 1023));
	f.on_scan = NULL;
	assert_int_equal(fixture_cached(&f, ns, 0, 1), 1);
	assert_int_equal(f.p->block[late_pin].lru.used, f.now);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	assert_int_equal(fixture_cached(&f, ns, 0, 1), 0);
	assert_int_equal(fixture_cached(&f, ns, 10, 1023), 1023);
}

int main(void)
{
#define TEST(t)  cmocka_unit_test_setup_teardown(t, setup, teardown)
#define LARGE(t) cmocka_unit_test_setup_teardown(t, setup_large, teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_of_a_namespace_goes_and_its_memory),
		TEST(no_such_namespace),
		TEST(a_dry_run_only_counts),
		TEST(pinned_blocks_are_unlisted_and_freed_later),
		TEST(a_flush_counts_only_what_it_met),
		TEST(reservations_are_voided),
		LARGE(a_large_flush_goes_in_steps),
		LARGE(the_tick_goes_on_with_a_flush),
		LARGE(what_comes_during_a_flush_stays),
		LARGE(a_pin_holds_what_a_flush_has_not_come_to),
		TEST(bad_bytes_doom_a_subtree),
		TEST(good_bytes_change_nothing),
		TEST(a_block_under_verify_is_pinned),
		TEST(verify_of_what_is_not_there),
		TEST(a_doom_above_a_doom),
		cmocka_unit_test_setup_teardown(a_parent_is_as_young_as_the_child_it_lost,
						setup_small, teardown),
		TEST(what_an_eviction_gives_back_is_still_flushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
