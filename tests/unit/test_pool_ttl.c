/* SPDX-License-Identifier: Apache-2.0 */
/* What time does to blocks: TTL, priorities, and what clients say of the future. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/evictor.h"
#include "daemon/reclaim.h"
#include "tests/pool/fixture.h"

#define TTL (60 * NSEC_PER_SEC)

static struct fixture f;
static struct pool_owner a;
static struct block_key keys[FIXTURE_RUN];
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

static uint32_t block_of(uint64_t seed, uint32_t n)
{
	fixture_keys(seed, n, keys);
	return fixture_find(&f, &keys[n - 1]);
}

/* n chains of len blocks, numbers 1 to n, a second apart. */
static void fill(uint32_t n, uint32_t len)
{
	for (uint32_t i = 1; i <= n; i++) {
		fixture_chain(&f, &a, ns, i, len);
		fixture_pass(&f, NSEC_PER_SEC);
	}
}

static uint64_t expired(void)
{
	struct pool_ns_stats s;

	assert_int_equal(pool_ns_get_stats(f.p, ns, &s), 0);
	assert_int_equal(s.expired, fixture_stats(&f).expired);
	return s.expired;
}

static void hint(uint64_t seed, uint32_t n, uint64_t reuse_ns, uint32_t priority)
{
	const struct pool_hint h = { .reuse_ns = reuse_ns, .priority = priority };

	fixture_keys(seed, n, keys);
	assert_true(pool_hint(f.p, ns, &keys[n - 1], &h, f.now) > 0);
}

static uint32_t hint_ended(uint64_t seed, uint32_t n)
{
	const struct pool_hint h = { .ended = 1 };

	fixture_keys(seed, n, keys);
	return pool_hint(f.p, ns, &keys[n - 1], &h, f.now);
}

/* Evicts n blocks of the namespace. */
static void evict(uint32_t n)
{
	assert_int_equal(evictor_run(f.p, namespace_get(f.p, ns), n, f.now), n);
}

static void blocks_expire(void **state)
{
	fixture_chain(&f, &a, ns, 1, 20);
	fixture_pass(&f, TTL / 2);
	assert_int_equal(fixture_tick(&f), UINT64_MAX);
	pool_ns_set_policy(f.p, ns, TTL, 50);
	assert_int_equal(fixture_tick(&f), f.now + TTL / 2 + 1);
	fixture_pass(&f, TTL / 2);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20); /* not longer than that */
	fixture_pass(&f, 1);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
	assert_int_equal(expired(), 20);
	assert_int_equal(fixture_stats(&f).evicted, 20);
}

static void a_use_makes_its_prefix_young(void **state)
{
	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_chain(&f, &a, ns, 1, 20);
	fixture_pass(&f, TTL - 1);
	pool_touch(f.p, ns, block_of(1, 12), 192, 192, f.now);
	fixture_pass(&f, 2);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 12);
	assert_int_equal(expired(), 8);
	fixture_pass(&f, TTL);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
}

/* More than a batch, and another namespace that has no TTL. */
static void only_that_namespace_and_all_of_it(void **state)
{
	uint32_t other = fixture_ns(&f, "other", 1, 4096);

	fixture_chain(&f, &a, other, 900, 50);
	fill(2, 400);
	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_pass(&f, 2 * TTL);
	assert_int_equal(pool_tick(f.p, f.now), f.now); /* a batch each time */
	assert_int_equal(expired(), EVICTOR_BATCH);
	fixture_tick(&f);
	assert_int_equal(expired(), 800);
	assert_int_equal(fixture_cached(&f, other, 900, 50), 50);
}

static void readers_and_operators_keep_what_would_expire(void **state)
{
	const struct pool_pin_wish wish = { 0, 50, "" };
	struct pool_pinned pinned;
	uint32_t d;

	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_chain(&f, &a, ns, 1, 20);
	fixture_chain(&f, &a, ns, 2, 20);
	fixture_pin(&f, 0, 0, block_of(1, 15));
	d = block_of(2, 10);
	assert_int_equal(pool_pin(f.p, d, block_gen(f.p, d), &wish, f.now, &pinned), 0);
	fixture_pass(&f, 10 * TTL);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 15);
	assert_int_equal(fixture_cached(&f, ns, 2, 20), 10);
	assert_int_equal(expired(), 15);
	/* As used until then. */
	fixture_unpin(&f, 0, 0);
	fixture_pass(&f, TTL / 2);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 15);
	fixture_pass(&f, TTL);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
	assert_int_equal(fixture_cached(&f, ns, 2, 20), 10);
}

/* A pin between the two snapshots. */
static uint32_t pin_late;

static void on_scan(struct fixture *x)
{
	if (x->scans == 2)
		fixture_pin(x, 0, 0, pin_late);
}

static void a_reader_wins_against_expiry(void **state)
{
	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_chain(&f, &a, ns, 1, 20);
	pin_late = block_of(1, 7);
	fixture_pass(&f, 2 * TTL);
	f.scans = 0;
	f.on_scan = on_scan;
	fixture_tick(&f);
	f.on_scan = NULL;
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 7);
	assert_int_equal(expired(), 13);
	fixture_unpin(&f, 0, 0);
}

static void an_empty_namespace_that_nobody_uses_gives_its_memory_back(void **state)
{
	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_chain(&f, &a, ns, 1, 20);
	pool_ns_drop(f.p, ns);
	assert_true(fixture_stats(&f).handed_bytes > 0);
	fixture_pass(&f, 2 * TTL);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).handed_bytes, 0);
}

static void a_shorter_ttl_counts_at_once(void **state)
{
	fixture_chain(&f, &a, ns, 1, 20);
	pool_ns_set_policy(f.p, ns, 10 * TTL, 50);
	fixture_pass(&f, 2 * TTL);
	fixture_tick(&f);
	assert_int_equal(expired(), 0);
	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_tick(&f);
	assert_int_equal(expired(), 20);
	pool_ns_set_policy(f.p, 77, TTL, 50); /* of none: nothing */
}

static void reuse_is_a_use_to_come(void **state)
{
	fill(4, 20);
	hint(1, 20, 60 * NSEC_PER_SEC, 0);
	evict(60);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20);
	for (uint64_t i = 2; i <= 4; i++)
		assert_int_equal(fixture_cached(&f, ns, i, 20), 0);
	/* In a minute it is as good as any other that is used then. */
	fixture_pass(&f, 61 * NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 5, 20);
	evict(20);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
}

static void a_hint_reaches_an_hour_at_most(void **state)
{
	fixture_pass(&f, 1000 * NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 1, 20);
	hint(1, 20, UINT32_MAX * NSEC_PER_SEC, 99);
	assert_int_equal(f.p->block[block_of(1, 20)].lru.used, f.now + POOL_HINT_MAX);
	/* Again is not more. */
	hint(1, 20, 0, 99);
	hint(1, 20, 0, 99);
	assert_int_equal(f.p->block[block_of(1, 20)].lru.used, f.now + 49 * PRIORITY_STEP_NS);
	hint(1, 20, 5 * NSEC_PER_SEC, 1);
	assert_int_equal(f.p->block[block_of(1, 20)].lru.used,
			 f.now + 5 * NSEC_PER_SEC - 49 * PRIORITY_STEP_NS);
}

static void a_use_to_come_does_not_expire(void **state)
{
	pool_ns_set_policy(f.p, ns, TTL, 50);
	fixture_chain(&f, &a, ns, 1, 20);
	hint(1, 20, 3 * TTL, 0);
	fixture_pass(&f, 3 * TTL);
	fixture_tick(&f);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 20);
	fixture_pass(&f, TTL + 1);
	fixture_tick(&f);
	assert_int_equal(expired(), 20);
}

static void priority_counts_like_time(void **state)
{
	fill(3, 20);
	hint(1, 20, 0, 52); /* 20 s more than now */
	hint(3, 20, 0, 45); /* 50 s less */
	evict(20);
	assert_int_equal(fixture_cached(&f, ns, 3, 20), 0);
	evict(20);
	assert_int_equal(fixture_cached(&f, ns, 2, 20), 0);
	fixture_pass(&f, 19 * NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 4, 20);
	evict(20);
	assert_int_equal(fixture_cached(&f, ns, 4, 20), 0);
	fixture_pass(&f, 2 * NSEC_PER_SEC);
	fixture_chain(&f, &a, ns, 4, 20);
	evict(20);
	assert_int_equal(fixture_cached(&f, ns, 1, 20), 0);
}

/* Chain number 1 of 10 blocks, with two continuations of 10: numbers 2 and 3. */
static void fork_chain(void)
{
	struct block_key run[20];

	fixture_keys(1, 10, run);
	fixture_keys(2, 10, &run[10]);
	fixture_publish(&f, &a, ns, run, 20);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_keys(3, 10, &run[10]);
	fixture_publish(&f, &a, ns, run, 20);
	fixture_pass(&f, NSEC_PER_SEC);
}

/* A low priority is that of the whole tail that nobody else uses. */
static void a_low_priority_reaches_up_to_what_is_shared(void **state)
{
	const struct pool_hint low = { .priority = 40 };

	fork_chain();
	fixture_keys(3, 10, keys);
	assert_int_equal(pool_hint(f.p, ns, &keys[9], &low, f.now), 10);
	fixture_keys(1, 10, keys);
	assert_int_equal(pool_hint(f.p, ns, &keys[9], &low, f.now), 0);
	evict(10);
	assert_int_equal(block_of(3, 1), DESC_NONE);
	assert_int_not_equal(block_of(2, 10), DESC_NONE);
}

static void what_ended_goes_first(void **state)
{
	fill(4, 20);
	assert_int_equal(hint_ended(3, 20), 20);
	assert_int_equal(fixture_cached(&f, ns, 3, 20), 20);
	evict(20);
	assert_int_equal(fixture_cached(&f, ns, 3, 20), 0);
	assert_int_equal(hint_ended(3, 20), 0);
	assert_int_equal(hint_ended(2, 20), 20);
	pool_touch(f.p, ns, block_of(2, 20), 320, 320, f.now);
	evict(40);
	assert_int_equal(fixture_cached(&f, ns, 2, 20), 20); /* somebody came back */
}

static void an_end_stops_where_chains_part(void **state)
{
	fork_chain();
	assert_int_equal(hint_ended(1, 10), 0); /* others go on from there */
	assert_int_equal(hint_ended(3, 10), 10);
	evict(10);
	assert_int_equal(fixture_cached(&f, ns, 1, 10), 10);
	assert_int_equal(block_of(3, 1), DESC_NONE);
	assert_int_not_equal(block_of(2, 10), DESC_NONE);
}

static void an_end_stops_at_pins_and_later_uses(void **state)
{
	const struct pool_pin_wish wish = { 0, 50, "" };
	struct pool_pinned pinned;
	uint32_t d;

	fill(2, 20);
	d = block_of(1, 12);
	assert_int_equal(pool_pin(f.p, d, block_gen(f.p, d), &wish, f.now, &pinned), 0);
	assert_int_equal(hint_ended(1, 20), 8);
	assert_int_equal(hint_ended(1, 12), 0);
	pool_touch(f.p, ns, block_of(2, 5), 80, 80, f.now); /* somebody else's */
	assert_int_equal(hint_ended(2, 20), 15);
}

static void a_hint_is_for_what_is_cached_there(void **state)
{
	const struct pool_hint h = { .reuse_ns = NSEC_PER_SEC };
	uint32_t other = fixture_ns(&f, "other", 1, 4096);

	fixture_keys(1, 4, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 4);
	assert_int_equal(pool_hint(f.p, ns, &keys[3], &h, f.now), 0); /* not yet */
	fixture_commit(&f, &a, 4);
	assert_int_equal(pool_hint(f.p, ns, &keys[3], &h, f.now), 1);
	assert_int_equal(pool_hint(f.p, other, &keys[3], &h, f.now), 0);
	assert_int_equal(pool_hint(f.p, 99, &keys[3], &h, f.now), 0);
	fixture_keys(2, 4, keys);
	assert_int_equal(pool_hint(f.p, ns, &keys[3], &h, f.now), 0);
}

/* Two namespaces of which one must give an extent. */
static void a_namespace_of_high_priority_is_as_if_used_later(void **state)
{
	uint32_t other = fixture_ns(&f, "other", 1, 4096);
	struct namespace *x, *y;

	fixture_chain(&f, &a, ns, 1, 20);
	fixture_pass(&f, 30 * NSEC_PER_SEC);
	fixture_chain(&f, &a, other, 2, 20);
	x = namespace_get(f.p, ns);
	y = namespace_get(f.p, other);
	assert_ptr_equal(evictor_coldest(f.p), x);
	pool_ns_set_policy(f.p, ns, 0, 52);
	assert_ptr_equal(evictor_coldest(f.p), x);
	pool_ns_set_policy(f.p, ns, 0, 54);
	assert_ptr_equal(evictor_coldest(f.p), y);
	pool_ns_set_policy(f.p, other, 0, 99);
	assert_ptr_equal(evictor_coldest(f.p), x);
	pool_ns_set_policy(f.p, other, 0, 1000); /* no more than there is */
	assert_int_equal(y->priority, PRIORITY_MAX);
}

/* The pool full of one namespace, last used some time ago; the other one has an extent to start. */
static uint64_t taken_after(uint32_t mine, uint32_t theirs, uint64_t idle_ns)
{
	uint32_t other = fixture_ns(&f, "other", 1, 4096);

	fixture_chain(&f, &a, other, 500, 16);
	for (uint64_t i = 1; i <= 63; i++)
		fixture_chain(&f, &a, ns, i, 16);
	fixture_pass(&f, idle_ns);
	pool_ns_set_policy(f.p, ns, 0, theirs);
	pool_ns_set_policy(f.p, other, 0, mine);
	pool_touch(f.p, other, fixture_find(&f, &keys[0]), 1, 1, f.now);
	fixture_keys(500, 16, keys);
	pool_touch(f.p, other, fixture_find(&f, &keys[15]), 256, 256, f.now - 4 * NSEC_PER_SEC);
	fixture_chain(&f, &a, other, 501, 16);
	return fixture_stats(&f).extents_taken;
}

static void equals_give_what_is_long_idle(void **state)
{
	assert_int_equal(taken_after(50, 50, 60 * NSEC_PER_SEC), 1);
}

static void a_higher_one_keeps_what_is_idle(void **state)
{
	assert_int_equal(taken_after(50, 56, 60 * NSEC_PER_SEC), 0);
}

static void a_lower_one_gives_sooner(void **state)
{
	assert_int_equal(taken_after(50, 45, 5 * NSEC_PER_SEC), 1);
}

static void what_is_in_use_is_nobodys_to_take(void **state)
{
	assert_int_equal(taken_after(99, 1, RECLAIM_IDLE / 2), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(blocks_expire),
		TEST(a_use_makes_its_prefix_young),
		TEST(only_that_namespace_and_all_of_it),
		TEST(readers_and_operators_keep_what_would_expire),
		TEST(a_reader_wins_against_expiry),
		TEST(an_empty_namespace_that_nobody_uses_gives_its_memory_back),
		TEST(a_shorter_ttl_counts_at_once),
		TEST(reuse_is_a_use_to_come),
		TEST(a_hint_reaches_an_hour_at_most),
		TEST(a_use_to_come_does_not_expire),
		TEST(priority_counts_like_time),
		TEST(a_low_priority_reaches_up_to_what_is_shared),
		TEST(what_ended_goes_first),
		TEST(an_end_stops_where_chains_part),
		TEST(an_end_stops_at_pins_and_later_uses),
		TEST(a_hint_is_for_what_is_cached_there),
		TEST(a_namespace_of_high_priority_is_as_if_used_later),
		TEST(equals_give_what_is_long_idle),
		TEST(a_higher_one_keeps_what_is_idle),
		TEST(a_lower_one_gives_sooner),
		TEST(what_is_in_use_is_nobodys_to_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
