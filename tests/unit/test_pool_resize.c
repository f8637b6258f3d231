/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that gets another size: what goes, in which order, what stays, and what it says before. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

#define SLOTS 16u /* of an extent, for blocks of 4 KiB */

static struct fixture f;
static struct pool_owner a, b;
static struct block_key keys[FIXTURE_RUN];
static uint32_t ns;

/* 16 granules at first, 64 at most. */
static struct pool_config small_at_first(void)
{
	struct pool_config cfg = fixture_config;

	cfg.max_bytes = cfg.pool_bytes;
	cfg.pool_bytes /= 4;
	return cfg;
}

/* Nothing is evicted from it but by a resize, and to make room for a reservation. */
static uint32_t space(uint8_t salt, uint64_t block_bytes)
{
	uint32_t number = fixture_ns(&f, "m", salt, block_bytes);

	f.p->namespaces[number].evict_after = UINT64_MAX;
	return number;
}

static void begin(const struct pool_config *cfg)
{
	fixture_init(&f, cfg);
	pool_owner_init(&a, 1);
	pool_owner_init(&b, 2);
	ns = space(1, 4096);
}

static int setup(void **state)
{
	struct pool_config cfg = small_at_first();

	begin(&cfg);
	return 0;
}

static int setup_fixed(void **state)
{
	struct pool_config cfg = fixture_config;

	cfg.fixed = 1;
	begin(&cfg);
	return 0;
}

static int teardown(void **state)
{
	f.on_scan = NULL;
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static struct pool_resized resize(uint32_t granules, int dry_run)
{
	struct pool_resized r = { .was_bytes = 99 };

	assert_int_equal(pool_resize(f.p, granules * FIXTURE_GRANULE, dry_run, f.now, &r), 0);
	assert_int_equal(r.now_bytes, granules * FIXTURE_GRANULE);
	return r;
}

/* Resizes, and lets it all happen that can. */
static void resize_now(uint32_t granules)
{
	resize(granules, 0);
	fixture_tick(&f);
	fixture_punched(&f);
	fixture_tick(&f);
	fixture_audit(&f);
}

static uint32_t handed(void)
{
	return (uint32_t)(fixture_stats(&f).handed_bytes / FIXTURE_GRANULE);
}

static uint32_t excess(void)
{
	return (uint32_t)(fixture_stats(&f).excess_bytes / FIXTURE_GRANULE);
}

/* n chains of an extent each, the first one used longest ago. */
static void fill(uint64_t seed, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		fixture_chain(&f, &a, ns, seed + i, SLOTS);
		fixture_pass(&f, NSEC_PER_MSEC);
	}
}

static uint32_t block_of(uint64_t seed, uint32_t i)
{
	fixture_keys(seed, i + 1, keys);
	return fixture_find(&f, &keys[i]);
}

static uint32_t put(uint32_t space, uint64_t seed, uint32_t n)
{
	uint32_t granted;

	fixture_keys(seed, n, keys);
	granted = fixture_reserve(&f, &b, space, NULL, keys, n);
	fixture_commit(&f, &b, granted);
	return granted;
}

static void the_largest_size_is_bounded(void **state)
{
	assert_int_equal(pool_max_bytes(MIB(64), 19, GIB(24)), GIB(24));
	assert_int_equal(pool_max_bytes(MIB(64), 19, GIB(24) + 5), GIB(24));
	assert_int_equal(pool_max_bytes(MIB(64), 19, 0), MIB(64));        /* unknown */
	assert_int_equal(pool_max_bytes(GIB(40), 26, GIB(24)), GIB(40));  /* more than there is */
	assert_int_equal(pool_max_bytes(MIB(8), 16, GIB(1024)), GIB(64)); /* granules */
	/* Slots have numbers of 32 bits. */
	assert_true(pool_max_bytes(GIB(64), 26, UINT64_MAX) < GIB(16 * 1024));
}

static void the_memory_has_the_largest_size(void **state)
{
	struct stat st;

	assert_int_equal(fstat(pool_memory_fd(f.p), &st), 0);
	assert_int_equal(st.st_size, fixture_config.pool_bytes);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(pool_memory_bytes(f.p), fixture_config.pool_bytes);
	assert_int_equal(pool_control(f.p)->head->pool_bytes, fixture_config.pool_bytes);
	assert_int_equal(pool_control(f.p)->head->n_granules, 64);
	assert_int_equal(pool_limit_bytes(f.p), 16 * FIXTURE_GRANULE);
	assert_int_equal(fixture_stats(&f).pool_bytes, 16 * FIXTURE_GRANULE);
}

static void the_limit_holds(void **state)
{
	fill(0, 16);
	assert_int_equal(handed(), 16);
	assert_int_equal(put(ns, 100, SLOTS), SLOTS);
	assert_int_equal(handed(), 16);
	assert_int_equal(fixture_cached(&f, ns, 0, SLOTS), 0);
}

static void growing_is_immediate(void **state)
{
	struct pool_resized r;

	fill(0, 16);
	r = resize(20, 1);
	assert_int_equal(r.was_bytes, 16 * FIXTURE_GRANULE);
	assert_int_equal(r.evict_blocks, 0);
	assert_int_equal(pool_limit_bytes(f.p), 16 * FIXTURE_GRANULE);
	resize(20, 0);
	fill(100, 4);
	assert_int_equal(handed(), 20);
	assert_int_equal(fixture_stats(&f).evicted, 0);
	fill(200, 1);
	assert_int_equal(handed(), 20);
}

static void sizes_out_of_bounds_are_refused(void **state)
{
	struct pool_resized r = { .was_bytes = 99 };
	uint32_t least_ns = 99, wide;

	assert_int_equal(pool_resize(f.p, 65 * FIXTURE_GRANULE, 0, f.now, &r), -EFBIG);
	assert_int_equal(pool_resize(f.p, UINT64_MAX, 0, f.now, &r), -EFBIG);
	assert_int_equal(pool_resize(f.p, FIXTURE_GRANULE - 1, 0, f.now, &r), -ERANGE);
	assert_int_equal(pool_resize(f.p, 0, 0, f.now, &r), -ERANGE);
	assert_int_equal(pool_resize_check(f.p, 64 * FIXTURE_GRANULE), 0);
	assert_int_equal(pool_resize_check(f.p, 64 * FIXTURE_GRANULE + 1), -EFBIG);
	assert_int_equal(pool_resize_check(f.p, FIXTURE_GRANULE), 0);
	assert_int_equal(pool_resize_check(f.p, FIXTURE_GRANULE - 1), -ERANGE);
	assert_int_equal(pool_least_bytes(f.p, &least_ns), FIXTURE_GRANULE);
	assert_int_equal(least_ns, NS_NONE);
	wide = space(2, 2 * FIXTURE_GRANULE);
	assert_int_equal(pool_least_bytes(f.p, &least_ns), 8 * FIXTURE_GRANULE);
	assert_int_equal(least_ns, wide);
	assert_int_equal(pool_resize(f.p, 8 * FIXTURE_GRANULE - 1, 0, f.now, &r), -ERANGE);
	assert_int_equal(r.was_bytes, 99);
	assert_int_equal(pool_limit_bytes(f.p), 16 * FIXTURE_GRANULE);
	pool_ns_drop(f.p, wide);
	resize(1, 0);
}

/* One that is open but in nobody's use does not keep the pool from shrinking; then it can't open.
 */
static void a_namespace_that_does_not_fit_any_more(void **state)
{
	static uint8_t bytes[NSDESC_MAX_BYTES];
	struct nsdesc_values v;
	size_t n = fixture_desc("m", 2, 2 * FIXTURE_GRANULE, bytes, &v);
	uint32_t wide = space(2, 2 * FIXTURE_GRANULE), got = 99, near;
	int created;

	assert_int_equal(put(wide, 1, 4), 4);
	pool_ns_drop(f.p, wide);
	resize_now(4);
	assert_int_equal(handed(), 0);
	assert_int_equal(pool_ns_open(f.p, bytes, n, &v, f.now, &got, &created, &near), -EFBIG);
	assert_int_equal(got, 99);
	resize(8, 0);
	assert_int_equal(pool_ns_open(f.p, bytes, n, &v, f.now, &got, &created, &near), 0);
}

static void what_was_used_longest_ago_goes(void **state)
{
	struct pool_resized r;

	fill(0, 16);
	pool_touch(f.p, ns, block_of(2, SLOTS - 1), 1, 1, f.now);
	fixture_pass(&f, 1);
	r = resize(10, 1);
	assert_int_equal(r.evict_blocks, 6 * SLOTS);
	assert_int_equal(r.stuck_bytes, 0);
	assert_int_equal(r.handed_bytes, 16 * FIXTURE_GRANULE);
	assert_int_equal(handed(), 16);
	resize_now(10);
	assert_int_equal(handed(), 10);
	assert_int_equal(excess(), 0);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(fixture_cached(&f, ns, i, SLOTS), i == 2 || i > 6 ? SLOTS : 0);
	assert_int_equal(fixture_stats(&f).evicted, 6 * SLOTS);
	assert_int_equal(fixture_stats(&f).resized, 6 * SLOTS);
}

/* The memory counts until it is punched. */
static void the_excess_is_what_is_not_punched(void **state)
{
	fill(0, 16);
	resize(12, 0);
	assert_int_equal(excess(), 4);
	fixture_tick(&f);
	assert_int_equal(handed(), 12);
	assert_int_equal(excess(), 4);
	assert_int_equal(f.n_punch, 4);
	/* Nothing is handed out meanwhile, and not then either. */
	assert_int_equal(put(ns, 100, SLOTS), SLOTS);
	fixture_punched(&f);
	assert_int_equal(excess(), 0);
	assert_int_equal(put(ns, 101, SLOTS), SLOTS);
	assert_int_equal(handed(), 12);
}

/* The head of a chain is as warm as its end, wherever they lie; and goes with what is below it. */
static void a_chain_goes_by_its_end(void **state)
{
	fixture_chain(&f, &a, ns, 0, 2 * SLOTS);
	fixture_pass(&f, NSEC_PER_MSEC);
	fill(1, 4);
	pool_touch(f.p, ns, block_of(0, 2 * SLOTS - 1), 1, 1, f.now);
	resize_now(4);
	assert_int_equal(fixture_cached(&f, ns, 0, 2 * SLOTS), 2 * SLOTS);
	assert_int_equal(fixture_cached(&f, ns, 1, SLOTS), 0);
	resize_now(1);
	assert_int_equal(handed() <= 1, 1);
	assert_int_equal(fixture_stats(&f).evicted, 6 * SLOTS - fixture_stats(&f).blocks);
}

/*
 * What many chains begin with was noted as used long ago, and much more hangs below it than one
 * step looks at: it is as warm as the warmest of them, and they do not go with it.
 */
static void a_stem_is_as_warm_as_its_branches(void **state)
{
	static struct block_key stem[SLOTS];
	uint32_t granted;

	f.p->reclaim_blocks = 2 * SLOTS;
	fixture_keys(0, SLOTS, stem);
	fixture_publish(&f, &a, ns, stem, SLOTS);
	for (uint32_t i = 1; i < 16; i++) {
		fixture_pass(&f, NSEC_PER_MSEC);
		fixture_keys(i, SLOTS, keys);
		granted = fixture_reserve(&f, &a, ns, &stem[SLOTS - 1], keys, SLOTS);
		assert_int_equal(granted, SLOTS);
		fixture_commit(&f, &a, granted);
	}
	resize_now(12);
	assert_int_equal(handed(), 12);
	assert_int_equal(fixture_cached(&f, ns, 0, SLOTS), SLOTS);
	for (uint32_t i = 1; i < 16; i++)
		assert_int_equal(fixture_cached(&f, ns, i, SLOTS), i > 4 ? SLOTS : 0);
	assert_int_equal(fixture_stats(&f).evicted, 4 * SLOTS);
}

static void under_a_pin_nothing_goes(void **state)
{
	struct pool_resized r;

	fill(0, 16);
	fixture_pin(&f, 0, 0, block_of(3, 5));
	r = resize(1, 1);
	assert_int_equal(r.stuck_bytes, 0); /* the one that stays */
	fixture_pin(&f, 1, 0, block_of(7, SLOTS - 1));
	r = resize(1, 0);
	assert_int_equal(r.stuck_bytes, FIXTURE_GRANULE);
	fixture_tick(&f);
	fixture_punched(&f);
	assert_int_equal(handed(), 2);
	assert_int_equal(fixture_cached(&f, ns, 3, SLOTS) >= 6, 1);
	assert_int_equal(fixture_cached(&f, ns, 7, SLOTS), SLOTS);
	assert_int_equal(excess(), 1);
	fixture_unpin(&f, 1, 0);
	assert_int_equal(handed(), 2);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	fixture_punched(&f);
	assert_int_equal(handed(), 1);
	assert_int_equal(excess(), 0);
	assert_int_equal(fixture_cached(&f, ns, 7, SLOTS), 0);
	assert_int_equal(fixture_cached(&f, ns, 3, SLOTS) >= 6, 1);
}

static uint32_t late_pin, late_scans;

static void pin_late(struct fixture *x)
{
	if (++late_scans == 2)
		fixture_pin(x, 0, 0, late_pin);
}

static void a_pin_between_the_snapshots_wins(void **state)
{
	fill(0, 16);
	late_pin = block_of(0, SLOTS - 1);
	late_scans = 0;
	f.on_scan = pin_late;
	resize(15, 0);
	fixture_tick(&f);
	f.on_scan = NULL;
	assert_int_equal(fixture_cached(&f, ns, 0, SLOTS), SLOTS);
	assert_int_equal(fixture_cached(&f, ns, 1, SLOTS), 0);
	assert_int_equal(handed(), 15);
}

/* Reservations and quarantine hold what they lie in; others go, and no new ones come in there. */
static void a_writer_keeps_its_extent(void **state)
{
	struct pool_grant first;
	struct pool_resized r;

	fill(0, 15);
	fixture_keys(50, SLOTS, keys);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 2), 2);
	first = f.grant[0];
	fixture_pass(&f, NSEC_PER_MSEC);
	r = resize(1, 0);
	assert_int_equal(r.stuck_bytes, 0);
	assert_int_equal(r.evict_blocks, 15 * SLOTS);
	fixture_tick(&f);
	assert_int_equal(handed(), 1);
	assert_int_equal(pool_commit(f.p, &b, first.desc, first.gen, 0, f.now), VERDICT_COMMITTED);
	fixture_audit(&f);
	assert_int_equal(fixture_cached(&f, ns, 50, 1), 1);
}

/* All have a writer: the coldest are closed, so that they come to an end. */
static void extents_full_of_writers_drain(void **state)
{
	struct pool_grant grant[4];
	uint32_t granted;

	for (uint32_t i = 0; i < 4; i++) { /* one of 16 slots is a reservation */
		fixture_chain(&f, &a, ns, i, SLOTS - 1);
		fixture_keys(100 + i, 1, keys);
		assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 1), 1);
		grant[i] = f.grant[0];
		fixture_pass(&f, NSEC_PER_MSEC);
	}
	assert_int_equal(resize(2, 0).stuck_bytes, 2 * FIXTURE_GRANULE);
	fixture_tick(&f);
	assert_int_equal(handed(), 4);
	assert_int_equal(f.p->extents.n_closed, 2);
	fixture_audit(&f);
	/* What is written now goes where it stays: there blocks make room. */
	fixture_keys(200, 8, keys);
	granted = fixture_reserve(&f, &a, ns, NULL, keys, 8);
	assert_int_equal(granted, 8);
	for (uint32_t i = 0; i < granted; i++)
		assert_false(extent_of(&f.p->extents, f.grant[i].slot)->closed);
	fixture_commit(&f, &a, granted);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pool_abort(f.p, &b, grant[i].desc, grant[i].gen), VERDICT_FREED);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(handed(), 2);
	assert_int_equal(f.p->extents.n_closed, 0);
	assert_int_equal(fixture_cached(&f, ns, 200, 8), 8);
}

/* Nothing of a namespace is evicted for slots that nobody could get. */
static void a_namespace_with_closed_extents_only(void **state)
{
	uint32_t other = space(2, 4096);

	fixture_chain(&f, &a, other, 0, SLOTS - 1);
	fixture_keys(100, 1, keys);
	assert_int_equal(fixture_reserve(&f, &b, other, NULL, keys, 1), 1);
	fixture_pass(&f, NSEC_PER_MSEC);
	fixture_chain(&f, &a, ns, 1, SLOTS - 1);
	fixture_keys(101, 1, keys);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 1), 1);
	resize(1, 0);
	fixture_tick(&f);
	assert_int_equal(f.p->extents.n_closed, 1);
	assert_int_equal(put(other, 200, 2), 0);
	assert_int_equal(f.full, FULL_POOL);
	assert_int_equal(fixture_cached(&f, other, 0, SLOTS - 1), SLOTS - 1);
	/* And it goes on when the pool is large again. */
	resize(2, 0);
	assert_int_equal(f.p->extents.n_closed, 0);
	assert_int_equal(put(other, 200, 2), 2);
}

/* An extent that takes several steps is not filled again between two of them. */
static void a_large_extent_goes_in_steps(void **state)
{
	f.p->reclaim_blocks = 5;
	fill(0, 2);
	resize(1, 0);
	assert_int_equal(pool_tick(f.p, f.now) <= f.now, 1);
	assert_int_equal(handed(), 2);
	assert_int_equal(f.p->extents.n_closed, 1);
	fixture_audit(&f);
	assert_int_equal(put(ns, 100, 4), 4);
	fixture_tick(&f);
	assert_int_equal(handed(), 1);
	assert_int_equal(fixture_cached(&f, ns, 100, 4), 4);
}

static void large_blocks_span_granules(void **state)
{
	uint32_t wide = space(2, FIXTURE_GRANULE);

	for (uint32_t i = 0; i < 4; i++) {
		fixture_chain(&f, &a, wide, i, 4);
		fixture_pass(&f, NSEC_PER_MSEC);
	}
	fixture_pin(&f, 0, 0, block_of(1, 3));
	resize_now(9);
	assert_int_equal(handed(), 8);
	assert_int_equal(fixture_cached(&f, wide, 1, 4), 4);
	assert_int_equal(fixture_cached(&f, wide, 3, 4), 4);
	resize_now(4);
	assert_int_equal(handed(), 4);
	assert_int_equal(fixture_cached(&f, wide, 1, 4), 4);
}

/* What is left lies anywhere; a namespace that needs granules in a row gets them elsewhere. */
static void scattered_memory_can_be_had(void **state)
{
	uint32_t wide = space(2, FIXTURE_GRANULE);

	fill(0, 16);
	for (uint32_t i = 0; i < 16; i += 2)
		pool_touch(f.p, ns, block_of(i, SLOTS - 1), 1, 1, f.now);
	resize_now(8);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(fixture_cached(&f, ns, i, SLOTS), i % 2 ? 0 : SLOTS);
	fixture_pass(&f, 60 * NSEC_PER_SEC);
	assert_int_equal(put(wide, 100, 4), 0);
	assert_int_equal(handed(), 4);
	fixture_punched(&f);
	assert_int_equal(put(wide, 100, 4), 4);
	assert_int_equal(handed(), 8);
}

static void several_namespaces_share_what_is_left(void **state)
{
	uint32_t other = space(2, 8192), third = space(3, 3 * 4096);

	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(put(ns, 100 + i, SLOTS), SLOTS);
		assert_int_equal(put(other, 200 + i, 8), 8);
		assert_int_equal(put(third, 300 + i, 5), 5);
		fixture_pass(&f, NSEC_PER_MSEC);
	}
	resize_now(3);
	assert_int_equal(handed(), 3);
	for (uint32_t i = 0; i < 20; i++) {
		fixture_pass(&f, 2 * NSEC_PER_SEC);
		assert_int_equal(put(ns, 1000 + i, 8), 8);
		assert_int_equal(put(other, 2000 + i, 4), 4);
		assert_int_equal(put(third, 3000 + i, 2), 2);
		fixture_tick(&f);
		fixture_punched(&f);
		fixture_audit(&f);
	}
	assert_int_equal(handed(), 3);
}

static void growing_again_ends_it(void **state)
{
	fill(0, 16);
	for (uint32_t i = 0; i < 16; i++)
		fixture_pin(&f, i % 4, i / 4, block_of(i, SLOTS - 1));
	assert_int_equal(resize(4, 0).stuck_bytes, 12 * FIXTURE_GRANULE);
	fixture_tick(&f);
	assert_int_equal(handed(), 16);
	assert_int_equal(excess(), 12);
	resize_now(64);
	for (uint32_t i = 0; i < 16; i++)
		fixture_unpin(&f, i % 4, i / 4);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(handed(), 16);
	assert_int_equal(fixture_stats(&f).evicted, 0);
	fill(100, 48);
	assert_int_equal(handed(), 64);
}

static void a_doomed_block_holds_its_extent(void **state)
{
	fill(0, 4);
	fixture_pin(&f, 0, 0, block_of(2, SLOTS - 1));
	pool_flush(f.p, ns, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 });
	fixture_punched(&f);
	fill(10, 3);
	assert_int_equal(handed(), 4);
	assert_int_equal(resize(1, 1).stuck_bytes, 0);
	resize_now(1);
	assert_int_equal(handed(), 1);
	assert_int_equal(fixture_stats(&f).doomed_bytes, SLOTS * 4096);
	fixture_unpin(&f, 0, 0);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).doomed_bytes, 0);
}

/* Memory that is there from the beginning: a punch clears it, a drop gives it back for good. */
static void a_fixed_pool_gives_back_what_is_free_first(void **state)
{
	struct pool_resized r = { .was_bytes = 99 };

	fill(0, 16);
	resize_now(32);
	assert_int_equal(f.dropped_bytes, 32 * FIXTURE_GRANULE);
	assert_int_equal(fixture_stats(&f).evicted, 0);
	assert_int_equal(handed(), 16);
	assert_int_equal(pool_most_bytes(f.p), 32 * FIXTURE_GRANULE);
	assert_int_equal(pool_resize(f.p, 33 * FIXTURE_GRANULE, 0, f.now, &r), -EFBIG);
	resize_now(8);
	assert_int_equal(f.dropped_bytes, 56 * FIXTURE_GRANULE);
	assert_int_equal(handed(), 8);
	assert_int_equal(fixture_stats(&f).evicted, 8 * SLOTS);
	fill(100, 16);
	assert_int_equal(handed(), 8);
}

static void a_fixed_pool_clears_what_it_keeps(void **state)
{
	fill(0, 16);
	pool_flush(f.p, ns, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 });
	assert_int_equal(f.n_punch, 15);
	assert_int_equal(f.dropped_bytes, 0);
	assert_int_equal(excess(), 0);
	fixture_punched(&f);
	fill(0, 16);
	assert_int_equal(handed(), 16);
	/* Above its limit, it drops as much as is too much. */
	fixture_pin(&f, 0, 0, block_of(15, SLOTS - 1));
	resize(60, 0);
	fixture_tick(&f);
	assert_int_equal(f.dropped_bytes, 4 * FIXTURE_GRANULE);
	assert_int_equal(excess(), 4);
	fixture_punched(&f);
	assert_int_equal(excess(), 0);
}

int main(void)
{
#define TEST(t)  cmocka_unit_test_setup_teardown(t, setup, teardown)
#define FIXED(t) cmocka_unit_test_setup_teardown(t, setup_fixed, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_largest_size_is_bounded),
		TEST(the_memory_has_the_largest_size),
		TEST(the_limit_holds),
		TEST(growing_is_immediate),
		TEST(sizes_out_of_bounds_are_refused),
		TEST(a_namespace_that_does_not_fit_any_more),
		TEST(what_was_used_longest_ago_goes),
		TEST(the_excess_is_what_is_not_punched),
		TEST(a_chain_goes_by_its_end),
		TEST(a_stem_is_as_warm_as_its_branches),
		TEST(under_a_pin_nothing_goes),
		TEST(a_pin_between_the_snapshots_wins),
		TEST(a_writer_keeps_its_extent),
		TEST(extents_full_of_writers_drain),
		TEST(a_namespace_with_closed_extents_only),
		TEST(a_large_extent_goes_in_steps),
		TEST(large_blocks_span_granules),
		TEST(scattered_memory_can_be_had),
		TEST(several_namespaces_share_what_is_left),
		TEST(growing_again_ends_it),
		TEST(a_doomed_block_holds_its_extent),
		FIXED(a_fixed_pool_gives_back_what_is_free_first),
		FIXED(a_fixed_pool_clears_what_it_keeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
