/* SPDX-License-Identifier: Apache-2.0 */
/* Owners: quarantine, time-outs, the two steps of a session's end, who is charged for what. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

#define N 6u

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
	fixture_keys(7, FIXTURE_RUN, keys);
	return 0;
}

static int teardown(void **state)
{
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static uint64_t quarantined(void)
{
	return fixture_stats(&f).quarantined_bytes / 4096;
}

/* F5: the key can be had again at once, in another slot. */
static void a_dead_writer_s_keys_are_free_at_once(void **state)
{
	struct pool_grant old[N];

	fixture_reserve(&f, &a, ns, NULL, keys, N);
	for (uint32_t i = 0; i < N; i++)
		old[i] = f.grant[i];
	pool_owner_end(f.p, &a, f.now);
	assert_int_equal(quarantined(), N);
	assert_int_equal(a.n_quarantine, N);
	assert_int_equal(a.n_reserved, 0);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, N), N);
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t j = 0; j < N; j++) {
			assert_true(f.grant[i].slot != old[j].slot);
			assert_true(f.grant[i].desc != old[j].desc);
		}
	fixture_commit(&f, &b, N);
	assert_int_equal(pool_present(f.p, ns, keys, N), N);
}

static void quarantine_lasts_until_the_writer_is_gone(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, N);
	pool_owner_end(f.p, &a, f.now);
	fixture_pass(&f, 3600 * NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), UINT64_MAX);
	assert_int_equal(quarantined(), N);
	pool_owner_gone(f.p, &a, f.now);
	assert_int_equal(fixture_tick(&f), f.now + fixture_config.quarantine_ns);
	fixture_pass(&f, fixture_config.quarantine_ns - 1);
	fixture_tick(&f);
	assert_int_equal(quarantined(), N);
	fixture_pass(&f, 1);
	assert_int_equal(fixture_tick(&f), UINT64_MAX);
	assert_int_equal(quarantined(), 0);
	assert_int_equal(fixture_stats(&f).quarantined, N);
}

static void both_steps_can_be_told_twice(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, N);
	pool_owner_end(f.p, &a, f.now);
	pool_owner_end(f.p, &a, f.now);
	assert_int_equal(quarantined(), N);
	pool_owner_gone(f.p, &a, f.now);
	fixture_pass(&f, NSEC_PER_SEC / 2);
	pool_owner_gone(f.p, &a, f.now);
	fixture_pass(&f, NSEC_PER_SEC / 2);
	fixture_tick(&f);
	assert_int_equal(quarantined(), 0);
}

static void gone_without_end_ends(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, N);
	pool_owner_gone(f.p, &a, f.now);
	assert_int_equal(a.n_reserved, 0);
	assert_int_equal(a.n_quarantine, 0);
	assert_int_equal(a.reserved_bytes, 0);
	assert_int_equal(quarantined(), N);
}

/* What is left belongs to the pool: the owner's memory may go. */
static void an_owner_s_memory_may_go(void **state)
{
	struct pool_owner *o = malloc(sizeof(*o));

	pool_owner_init(o, 9);
	fixture_publish(&f, o, ns, keys, N);
	fixture_reserve(&f, o, ns, &keys[N - 1], &keys[N], N);
	pool_owner_gone(f.p, o, f.now);
	free(o);
	fixture_audit(&f);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(quarantined(), 0);
	assert_int_equal(pool_present(f.p, ns, keys, N), N);
	pool_flush(f.p, ns, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 });
}

static void commit_after_the_end_is_stale(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	pool_owner_end(f.p, &a, f.now);
	assert_int_equal(pool_commit(f.p, &a, f.grant[0].desc, f.grant[0].gen, 0, f.now),
			 VERDICT_STALE);
}

/* F9 */
static void a_reservation_times_out_into_quarantine(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 2);
	fixture_pass(&f, fixture_config.reservation_ns - 1);
	assert_int_equal(fixture_tick(&f), f.now + 1);
	assert_int_equal(a.n_reserved, 2);
	fixture_reserve(&f, &a, ns, &keys[1], &keys[2], 2);
	fixture_pass(&f, 1);
	fixture_tick(&f);
	/* Those below are too young, but can't be committed without them. */
	assert_int_equal(a.n_reserved, 0);
	assert_int_equal(a.n_quarantine, 4);
	assert_int_equal(a.reserved_bytes, 4 * 4096);
	assert_int_equal(fixture_stats(&f).reservations_timed_out, 4);
	assert_int_equal(pool_commit(f.p, &a, f.grant[0].desc, f.grant[0].gen, 0, f.now),
			 VERDICT_STALE);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 1), 1);
}

static void each_reservation_has_its_own_time(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	fixture_reserve(&f, &b, ns, NULL, &keys[10], 1);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	fixture_reserve(&f, &a, ns, NULL, &keys[20], 1);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), f.now + 10 * NSEC_PER_SEC);
	assert_int_equal(a.n_reserved, 1);
	assert_int_equal(b.n_reserved, 1);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), f.now + 10 * NSEC_PER_SEC);
	assert_int_equal(b.n_reserved, 0);
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), UINT64_MAX);
	assert_int_equal(a.n_reserved, 0);
}

/* They may change at any time, and count for what is reserved already. */
static void other_timeouts(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	assert_int_equal(fixture_tick(&f), f.now + fixture_config.reservation_ns);
	pool_set_timeouts(f.p, NSEC_PER_SEC, 5 * NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), f.now + NSEC_PER_SEC);
	pool_set_timeouts(f.p, 10 * NSEC_PER_SEC, 5 * NSEC_PER_SEC);
	fixture_pass(&f, NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), f.now + 9 * NSEC_PER_SEC);
	assert_int_equal(a.n_reserved, 1);
	pool_owner_gone(f.p, &a, f.now);
	assert_int_equal(fixture_tick(&f), f.now + 5 * NSEC_PER_SEC);
	assert_int_equal(quarantined(), 1);
	fixture_pass(&f, 5 * NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(quarantined(), 0);
}

/* The writer lives and says that it has stopped. */
static void abort_ends_quarantine_at_once(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 2);
	fixture_pass(&f, fixture_config.reservation_ns);
	fixture_tick(&f);
	assert_int_equal(quarantined(), 2);
	assert_int_equal(pool_abort(f.p, &b, f.grant[0].desc, f.grant[0].gen), VERDICT_NOT_OWNER);
	assert_int_equal(pool_abort(f.p, &a, f.grant[0].desc, f.grant[0].gen), VERDICT_FREED);
	assert_int_equal(quarantined(), 1); /* each for itself: they hang nowhere */
	assert_int_equal(pool_abort(f.p, &a, f.grant[1].desc, f.grant[1].gen), VERDICT_FREED);
	assert_int_equal(quarantined(), 0);
	assert_int_equal(a.reserved_bytes, 0);
	assert_int_equal(pool_abort(f.p, &a, f.grant[1].desc, f.grant[1].gen), VERDICT_STALE);
}

static void quarantine_counts_against_the_quota(void **state)
{
	f.p->cfg.owner_reserved_bytes = 4 * 4096;
	fixture_reserve(&f, &a, ns, NULL, keys, 3);
	fixture_pass(&f, fixture_config.reservation_ns);
	fixture_tick(&f);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, &keys[10], 3), 1);
	assert_int_equal(f.full, FULL_QUOTA);
}

/* A writer that was taken for dead may still write: its slots come after every other. */
static void slots_out_of_quarantine_go_last(void **state)
{
	uint32_t slots = (uint32_t)(fixture_config.pool_bytes / 4096);
	uint32_t old[N];

	fixture_reserve(&f, &a, ns, NULL, keys, N);
	for (uint32_t i = 0; i < N; i++)
		old[i] = f.grant[i].slot;
	pool_owner_gone(f.p, &a, f.now);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	/* One extent has 16 slots; ten were never used. */
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, &keys[10], 10), 10);
	for (uint32_t i = 0; i < 10; i++)
		for (uint32_t j = 0; j < N; j++)
			assert_true(f.grant[i].slot != old[j]);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, &keys[30], N), N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t found = 0;

		for (uint32_t j = 0; j < N; j++)
			found += f.grant[j].slot == old[i];
		assert_int_equal(found, 1);
	}
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, &keys[40], slots), slots - 16);
}

static void cached_blocks_are_counted_while_they_are_there(void **state)
{
	struct pool_flushed flushed = { .freed_blocks = 0 };

	fixture_publish(&f, &a, ns, keys, N);
	fixture_publish(&f, &b, ns, keys, N + 2);
	assert_int_equal(a.cached_blocks, N);
	assert_int_equal(b.cached_blocks, 2);
	assert_int_equal(b.cached_bytes, 2 * 4096);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	assert_int_equal(a.cached_blocks, 0);
	assert_int_equal(b.cached_bytes, 0);
}

static void many_owners(void **state)
{
	static struct pool_owner many[1000];

	for (uint32_t i = 0; i < 1000; i++) {
		pool_owner_init(&many[i], 100 + i);
		assert_int_equal(fixture_reserve(&f, &many[i], ns, NULL, &keys[i], 1), 1);
	}
	for (uint32_t i = 0; i < 1000; i += 2)
		pool_owner_gone(f.p, &many[i], f.now);
	fixture_audit(&f);
	assert_int_equal(quarantined(), 500);
	for (uint32_t i = 1; i < 1000; i += 2)
		pool_owner_gone(f.p, &many[i], f.now);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(quarantined(), 0);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_dead_writer_s_keys_are_free_at_once),
		TEST(quarantine_lasts_until_the_writer_is_gone),
		TEST(both_steps_can_be_told_twice),
		TEST(gone_without_end_ends),
		TEST(an_owner_s_memory_may_go),
		TEST(commit_after_the_end_is_stale),
		TEST(a_reservation_times_out_into_quarantine),
		TEST(each_reservation_has_its_own_time),
		TEST(other_timeouts),
		TEST(abort_ends_quarantine_at_once),
		TEST(quarantine_counts_against_the_quota),
		TEST(slots_out_of_quarantine_go_last),
		TEST(cached_blocks_are_counted_while_they_are_there),
		TEST(many_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
