/* SPDX-License-Identifier: Apache-2.0 */
/* Unnamed slots: reserved without keys, named at commit. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

#define N     6u
#define SLOTS (FIXTURE_GRANULE / 4096) /* of an extent */

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

/* Unnamed slots for o, into f.verdict, f.grant and f.full. */
static uint32_t take(struct pool_owner *o, uint32_t n)
{
	int granted = pool_reserve_unnamed(f.p, o, ns, n, f.now, f.verdict, f.grant, &f.full);

	assert_true(granted >= 0);
	return (uint32_t)granted;
}

/* Names n grants keys[first], ... below keys[first - 1]. */
static void name(struct pool_owner *o, const struct pool_grant *g, uint32_t first, uint32_t n)
{
	uint32_t desc[FIXTURE_RUN], crc[FIXTURE_RUN];
	uint64_t gen[FIXTURE_RUN];
	const struct pool_names names = {
		.parent = first ? &keys[first - 1] : NULL,
		.keys = &keys[first],
		.desc = desc,
		.gen = gen,
		.crc = crc,
		.n = n,
	};

	for (uint32_t i = 0; i < n; i++) {
		desc[i] = g[i].desc;
		gen[i] = g[i].gen;
		crc[i] = i;
	}
	pool_commit_named(f.p, o, &names, f.now, f.verdict);
}

static void expect(const uint8_t *verdicts, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f.verdict[i], verdicts[i]);
}

static uint64_t unnamed(void)
{
	return fixture_stats(&f).unnamed_bytes / 4096;
}

static void they_are_in_no_index_and_charged_apart(void **state)
{
	const struct block_key none = { { 0 } };
	struct pool_ns_stats s;

	assert_int_equal(take(&a, N), N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(f.verdict[i], VERDICT_GRANTED);
	assert_int_equal(f.full, FULL_NONE);
	assert_int_equal(fixture_find(&f, &none), DESC_NONE);
	assert_int_equal(a.n_unnamed, N);
	assert_int_equal(a.unnamed_bytes, N * 4096);
	assert_int_equal(a.n_reserved, 0);
	assert_int_equal(a.reserved_bytes, 0);
	assert_int_equal(unnamed(), N);
	assert_int_equal(fixture_stats(&f).writing_bytes, N * 4096);
	assert_int_equal(pool_ns_get_stats(f.p, ns, &s), 0);
	assert_int_equal(s.unnamed_blocks, N);
	assert_int_equal(s.writing_blocks, N);
}

static void no_such_namespace(void **state)
{
	assert_int_equal(pool_reserve_unnamed(f.p, &a, 3, 1, f.now, f.verdict, f.grant, &f.full),
			 -ENOENT);
}

static void named_ones_are_found(void **state)
{
	static const uint8_t all[N] = { 6, 6, 6, 6, 6, 6 };
	struct pool_grant g[N];

	take(&a, N);
	memcpy(g, f.grant, sizeof(g));
	name(&a, g, 0, N);
	expect(all, N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(fixture_find(&f, &keys[i]), g[i].desc);
	assert_int_equal(pool_present(f.p, ns, keys, N), N);
	assert_int_equal(a.n_unnamed, 0);
	assert_int_equal(a.cached_blocks, N);
	assert_int_equal(unnamed(), 0);
	/* Once only. */
	name(&a, g, 0, 1);
	assert_int_equal(f.verdict[0], VERDICT_STALE);
	/* They are blocks like all others: below them others can be stored, and they go. */
	fixture_publish(&f, &b, ns, keys, N + 2);
	assert_int_equal(b.cached_blocks, 2);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 }),
			 0);
	assert_int_equal(a.cached_blocks, 0);
}

static void below_what_is_cached(void **state)
{
	fixture_publish(&f, &b, ns, keys, 3);
	take(&a, 2);
	name(&a, f.grant, 3, 2);
	expect((const uint8_t[]){ VERDICT_COMMITTED, VERDICT_COMMITTED }, 2);
	assert_int_equal(pool_present(f.p, ns, keys, 5), 5);
}

static void a_block_that_was_never_named_cannot_be_committed(void **state)
{
	take(&a, 1);
	assert_int_equal(pool_commit(f.p, &a, f.grant[0].desc, f.grant[0].gen, 0, f.now),
			 VERDICT_NO_PARENT);
	assert_int_equal(a.n_unnamed, 1);
}

/* The first two are another's by now: the rest goes below those. */
static void a_duplicate_stays_the_writer_s_own(void **state)
{
	struct pool_grant g[4];

	take(&a, 4);
	memcpy(g, f.grant, sizeof(g));
	fixture_publish(&f, &b, ns, keys, 2);
	name(&a, g, 0, 4);
	expect((const uint8_t[]){ VERDICT_PRESENT, VERDICT_PRESENT, VERDICT_COMMITTED,
				  VERDICT_COMMITTED },
	       4);
	assert_int_equal(a.n_unnamed, 2);
	assert_int_equal(block_parent(f.p, g[2].desc), fixture_find(&f, &keys[1]));
	assert_int_equal(fixture_stats(&f).duplicates, 2);
	assert_int_equal(pool_abort(f.p, &a, g[0].desc, g[0].gen), VERDICT_FREED);
	assert_int_equal(a.n_unnamed, 1);
	/* When the other one is gone, it can have the name after all. */
	pool_flush(f.p, ns, 0, f.now, &(struct pool_flushed){ .freed_blocks = 0 });
	name(&a, &g[1], 0, 1);
	assert_int_equal(f.verdict[0], VERDICT_COMMITTED);
}

static void a_name_that_somebody_reserved_is_busy(void **state)
{
	struct pool_grant g[3];

	take(&a, 3);
	memcpy(g, f.grant, sizeof(g));
	fixture_reserve(&f, &b, ns, NULL, &keys[0], 2);
	name(&a, g, 0, 3);
	expect((const uint8_t[]){ VERDICT_BUSY, VERDICT_BUSY, VERDICT_BUSY }, 3);
	assert_int_equal(a.n_unnamed, 3);
	pool_owner_end(f.p, &b, f.now);
	name(&a, g, 0, 3);
	expect((const uint8_t[]){ VERDICT_COMMITTED, VERDICT_COMMITTED, VERDICT_COMMITTED }, 3);
}

static void without_a_parent_it_has_no_place(void **state)
{
	struct pool_grant g[2];

	take(&a, 2);
	memcpy(g, f.grant, sizeof(g));
	name(&a, g, 3, 2);
	expect((const uint8_t[]){ VERDICT_NO_PARENT, VERDICT_NO_PARENT }, 2);
	/* Nor below one that is only reserved, its own included. */
	fixture_reserve(&f, &a, ns, NULL, keys, 3);
	name(&a, g, 3, 2);
	expect((const uint8_t[]){ VERDICT_NO_PARENT, VERDICT_NO_PARENT }, 2);
	assert_int_equal(a.n_unnamed, 2);
	fixture_commit(&f, &a, 3);
	name(&a, g, 3, 2);
	expect((const uint8_t[]){ VERDICT_COMMITTED, VERDICT_COMMITTED }, 2);
}

static void a_parent_of_another_namespace_is_none(void **state)
{
	uint32_t other = fixture_ns(&f, "other", 2, 4096);

	fixture_publish(&f, &b, other, keys, 1);
	take(&a, 1);
	name(&a, f.grant, 1, 1);
	assert_int_equal(f.verdict[0], VERDICT_NO_PARENT);
	/* And its key is as good as no place in the index. */
	name(&a, f.grant, 0, 1);
	assert_int_equal(f.verdict[0], VERDICT_FULL);
	take(&a, 3);
	name(&a, f.grant, 0, 3);
	expect((const uint8_t[]){ VERDICT_FULL, VERDICT_FULL, VERDICT_FULL }, 3);
}

/* One that is lost breaks the chain, unless its key is there from elsewhere. */
static void what_was_lost_breaks_the_chain(void **state)
{
	struct pool_grant g[3];

	take(&a, 3);
	memcpy(g, f.grant, sizeof(g));
	pool_abort(f.p, &a, g[0].desc, g[0].gen);
	name(&a, g, 0, 3);
	expect((const uint8_t[]){ VERDICT_STALE, VERDICT_NO_PARENT, VERDICT_NO_PARENT }, 3);
	fixture_publish(&f, &b, ns, keys, 1);
	name(&a, g, 0, 3);
	expect((const uint8_t[]){ VERDICT_STALE, VERDICT_COMMITTED, VERDICT_COMMITTED }, 3);
}

static void only_its_owner_names_and_frees_it(void **state)
{
	take(&a, 1);
	name(&b, f.grant, 0, 1);
	assert_int_equal(f.verdict[0], VERDICT_NOT_OWNER);
	assert_int_equal(pool_abort(f.p, &b, f.grant[0].desc, f.grant[0].gen), VERDICT_NOT_OWNER);
	assert_int_equal(pool_abort(f.p, &a, f.grant[0].desc, f.grant[0].gen), VERDICT_FREED);
	assert_int_equal(pool_abort(f.p, &a, f.grant[0].desc, f.grant[0].gen), VERDICT_STALE);
	assert_int_equal(unnamed(), 0);
}

static void a_reservation_under_that_key_may_be_among_them(void **state)
{
	struct pool_grant g[2];

	take(&a, 1);
	g[0] = f.grant[0];
	fixture_publish(&f, &b, ns, keys, 1);
	fixture_reserve(&f, &a, ns, keys, &keys[1], 1);
	g[1] = f.grant[0];
	name(&a, g, 0, 2);
	expect((const uint8_t[]){ VERDICT_PRESENT, VERDICT_COMMITTED }, 2);
	/* Under no other. */
	fixture_reserve(&f, &a, ns, &keys[1], &keys[9], 1);
	name(&a, f.grant, 2, 1);
	assert_int_equal(f.verdict[0], VERDICT_NOT_OWNER);
}

/* All buckets are taken by promises: no name is to be had until one goes. */
static void no_place_in_the_index(void **state)
{
	struct pool_grant g[2];

	take(&a, 2);
	memcpy(g, f.grant, sizeof(g));
	memset(f.p->index.claimed, BUCKET_ENTRIES, f.p->control.bucket_mask + 1);
	name(&a, g, 0, 2);
	expect((const uint8_t[]){ VERDICT_FULL, VERDICT_FULL }, 2);
	assert_int_equal(a.n_unnamed, 2);
	memset(f.p->index.claimed, 0, f.p->control.bucket_mask + 1);
	name(&a, g, 0, 2);
	expect((const uint8_t[]){ VERDICT_COMMITTED, VERDICT_COMMITTED }, 2);
}

static void a_quota_of_its_own(void **state)
{
	pool_set_owner_limits(f.p, 3 * 4096, 4 * 4096 + 100);
	assert_int_equal(take(&a, 3), 3);
	assert_int_equal(take(&a, 3), 1);
	assert_int_equal(f.full, FULL_QUOTA);
	expect((const uint8_t[]){ VERDICT_GRANTED, VERDICT_FULL, VERDICT_FULL }, 3);
	assert_int_equal(fixture_stats(&f).quota, 2);
	/* What has a key has its own, and so have others. */
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 4), 3);
	assert_int_equal(fixture_stats(&f).quota, 3);
	assert_int_equal(take(&b, 4), 4);
	/* A limit that is lowered takes nothing away. */
	pool_set_owner_limits(f.p, 0, 4096);
	assert_int_equal(a.n_unnamed, 4);
	assert_int_equal(take(&a, 1), 0);
	assert_int_equal(pool_owner_limit(f.p), fixture_config.pool_bytes + 4096);
}

static void they_do_not_time_out(void **state)
{
	take(&a, N);
	fixture_pass(&f, 24 * 3600 * NSEC_PER_SEC);
	assert_int_equal(fixture_tick(&f), UINT64_MAX);
	assert_int_equal(a.n_unnamed, N);
	name(&a, f.grant, 0, N);
	assert_int_equal(f.verdict[N - 1], VERDICT_COMMITTED);
}

static void death_sends_them_to_quarantine(void **state)
{
	struct pool_grant g;

	take(&a, N);
	g = f.grant[0];
	pool_owner_end(f.p, &a, f.now);
	assert_int_equal(unnamed(), 0);
	assert_int_equal(a.n_unnamed, 0);
	assert_int_equal(a.n_quarantine, N);
	assert_int_equal(a.reserved_bytes, N * 4096);
	assert_int_equal(fixture_stats(&f).quarantined_bytes, N * 4096);
	name(&a, &g, 0, 1);
	assert_int_equal(f.verdict[0], VERDICT_STALE);
	/* It lives, and says that it has stopped. */
	assert_int_equal(pool_abort(f.p, &a, g.desc, g.gen), VERDICT_FREED);
	pool_owner_gone(f.p, &a, f.now);
	fixture_pass(&f, fixture_config.quarantine_ns);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).quarantined_bytes, 0);
}

static void flush_does_not_concern_them(void **state)
{
	struct pool_flushed dry = { .freed_blocks = 0 }, wet = dry;

	fixture_publish(&f, &b, ns, keys, 2);
	fixture_reserve(&f, &b, ns, &keys[1], &keys[2], 1);
	take(&a, N);
	assert_int_equal(pool_flush(f.p, ns, 1, f.now, &dry), 0);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &wet), 0);
	assert_int_equal(dry.voided_blocks, 1);
	assert_int_equal(wet.voided_blocks, 1);
	assert_int_equal(a.n_unnamed, N);
	name(&a, f.grant, 0, N);
	assert_int_equal(f.verdict[N - 1], VERDICT_COMMITTED);
}

/* The writer's hazard word, stored before the commit, is its pin after it. */
static void a_word_from_before_the_commit_pins(void **state)
{
	take(&a, 1);
	fixture_pin(&f, 0, 0, f.grant[0].desc);
	name(&a, f.grant, 0, 1);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_chain(&f, &b, ns, 99, 64 * SLOTS - 1);
	fixture_pass(&f, NSEC_PER_SEC);
	/* Nothing is free: this evicts all but that. */
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, &keys[100], 64 * SLOTS), 64 * SLOTS - 1);
	assert_int_equal(f.full, FULL_POOL);
	assert_int_equal(pool_present(f.p, ns, keys, 1), 1);
	fixture_unpin(&f, 0, 0);
}

/* An extent that holds one stays, whoever wants it. */
static void their_extent_is_not_taken(void **state)
{
	uint32_t other = fixture_ns(&f, "other", 2, 4096), n;

	take(&a, 1);
	fixture_pass(&f, 24 * 3600 * NSEC_PER_SEC);
	n = fixture_reserve(&f, &b, other, NULL, keys, 64 * SLOTS);
	assert_int_equal(n, 63 * SLOTS);
	assert_int_equal(f.full, FULL_POOL);
	pool_ns_drop(f.p, ns);
	assert_int_equal(a.n_unnamed, 1);
	pool_ns_hold(f.p, ns);
}

static void room_is_made_by_eviction(void **state)
{
	fixture_chain(&f, &b, ns, 5, 64 * SLOTS);
	assert_int_equal(take(&a, 100), 100);
	assert_int_equal(fixture_cached(&f, ns, 5, 64 * SLOTS) <= 64 * SLOTS - 100, 1);
	assert_true(fixture_stats(&f).evicted >= 100);
}

static uint64_t extents_of(const struct pool_owner *o)
{
	uint64_t n, bytes;

	pool_owner_extents(f.p, o, &n, &bytes);
	assert_int_equal(bytes, n * FIXTURE_GRANULE);
	return n;
}

/* Cached blocks and unnamed ones in turn: the latter lie together all the same. */
static void they_are_laid_close_together(void **state)
{
	uint32_t first[8];

	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		fixture_publish(&f, &b, ns, &keys[i], 1);
		assert_int_equal(take(&a, 1), 1);
	}
	assert_int_equal(extents_of(&a), 2);
	/* What is given back is filled again before anything new. */
	for (uint32_t i = 0; i < 8; i++) {
		first[i] = a.unnamed.first;
		pool_abort(f.p, &a, first[i], block_gen(f.p, first[i]));
	}
	fixture_reserve(&f, &b, ns, NULL, &keys[200], 4);
	assert_int_equal(take(&a, 4), 4);
	assert_int_equal(extents_of(&a), 2);
	assert_int_equal(extents_of(&b), 1);
}

static void waiters_go_on_over_a_named_block(void **state)
{
	struct pool_waiter w;
	struct pool_grant g;
	uint32_t present;

	take(&a, 1);
	g = f.grant[0];
	fixture_reserve(&f, &b, ns, NULL, keys, 1);
	pool_waiter_init(&w);
	w.ns = ns;
	w.keys = keys;
	w.n_keys = 1;
	assert_int_equal(pool_wait(f.p, &w, &present), 1);
	/* Its writer gives up, and another one has it, in one round. */
	assert_int_equal(pool_abort(f.p, &b, f.grant[0].desc, f.grant[0].gen), VERDICT_FREED);
	name(&a, &g, 0, 1);
	pool_wake(f.p);
	assert_int_equal(f.n_woken, 1);
	assert_int_equal(f.woken_present, 1);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(they_are_in_no_index_and_charged_apart),
		TEST(no_such_namespace),
		TEST(named_ones_are_found),
		TEST(below_what_is_cached),
		TEST(a_block_that_was_never_named_cannot_be_committed),
		TEST(a_duplicate_stays_the_writer_s_own),
		TEST(a_name_that_somebody_reserved_is_busy),
		TEST(without_a_parent_it_has_no_place),
		TEST(a_parent_of_another_namespace_is_none),
		TEST(what_was_lost_breaks_the_chain),
		TEST(only_its_owner_names_and_frees_it),
		TEST(a_reservation_under_that_key_may_be_among_them),
		TEST(no_place_in_the_index),
		TEST(a_quota_of_its_own),
		TEST(they_do_not_time_out),
		TEST(death_sends_them_to_quarantine),
		TEST(flush_does_not_concern_them),
		TEST(a_word_from_before_the_commit_pins),
		TEST(their_extent_is_not_taken),
		TEST(room_is_made_by_eviction),
		TEST(they_are_laid_close_together),
		TEST(waiters_go_on_over_a_named_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
