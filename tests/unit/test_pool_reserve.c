/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of reservations: what each key gets, and what becomes of a grant. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

#define N 8u

static struct fixture f;
static struct pool_owner a, b;
static struct block_key keys[FIXTURE_RUN];
static uint32_t ns;

static int start(const struct pool_config *cfg)
{
	fixture_init(&f, cfg);
	pool_owner_init(&a, 1);
	pool_owner_init(&b, 2);
	ns = fixture_ns(&f, "model", 1, 4096);
	fixture_keys(7, FIXTURE_RUN, keys);
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

static void expect_verdicts(uint32_t from, uint32_t to, enum proto_verdict v)
{
	for (uint32_t i = from; i < to; i++)
		assert_int_equal(f.verdict[i], v);
}

static void a_run_is_granted_as_a_chain(void **state)
{
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, N), N);
	expect_verdicts(0, N, VERDICT_GRANTED);
	assert_int_equal(f.full, FULL_NONE);
	for (uint32_t i = 0; i < N; i++) {
		const struct desc *d = &pool_control(f.p)->desc[f.grant[i].desc];

		assert_memory_equal(d->key, keys[i].w, KEY_BYTES);
		assert_int_equal(d->parent, i ? f.grant[i - 1].desc : DESC_NONE);
		assert_int_equal(d->depth, i);
		assert_int_equal(d->ns, ns);
		assert_int_equal(d->slot[TIER_HOST], f.grant[i].slot);
		assert_int_equal(word_gen(d->word), f.grant[i].gen);
		assert_int_equal(pool_control(f.p)->aux[f.grant[i].desc].writer, 1);
		for (uint32_t j = 0; j < i; j++)
			assert_true(f.grant[i].slot != f.grant[j].slot);
	}
	assert_int_equal(a.n_reserved, N);
	assert_int_equal(a.reserved_bytes, N * 4096);
}

static void no_such_namespace(void **state)
{
	assert_int_equal(pool_reserve(f.p, &a, 3, NULL, keys, N, f.now, f.verdict, f.grant,
				      &f.full), -ENOENT);
	assert_int_equal(pool_reserve(f.p, &a, 4000, NULL, keys, N, f.now, f.verdict, f.grant,
				      &f.full), -ENOENT);
}

static void present_then_granted(void **state)
{
	fixture_publish(&f, &a, ns, keys, 3);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, N), N - 3);
	expect_verdicts(0, 3, VERDICT_PRESENT);
	expect_verdicts(3, N, VERDICT_GRANTED);
	assert_int_equal(pool_control(f.p)->desc[f.grant[0].desc].parent,
			 fixture_find(&f, &keys[2]));
	assert_int_equal(fixture_stats(&f).duplicates, 3);
}

static void what_another_writes_is_busy_with_all_below(void **state)
{
	fixture_publish(&f, &a, ns, keys, 2);
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[1], &keys[2], 2), 2);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, N), 0);
	expect_verdicts(0, 2, VERDICT_PRESENT);
	expect_verdicts(2, N, VERDICT_BUSY); /* 4 to N are nobody's, but below */
	assert_int_equal(fixture_stats(&f).busy, N - 2);
}

static void asking_twice_is_busy(void **state)
{
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, N), N);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, N), 0);
	expect_verdicts(0, N, VERDICT_BUSY);
}

static void a_key_twice_in_a_run_is_busy(void **state)
{
	struct block_key run[4] = { keys[0], keys[1], keys[0], keys[2] };

	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, run, 4), 2);
	expect_verdicts(0, 2, VERDICT_GRANTED);
	expect_verdicts(2, 4, VERDICT_BUSY);
}

static void a_parent_that_is_not_there(void **state)
{
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[0], &keys[1], 3), 0);
	expect_verdicts(0, 3, VERDICT_NO_PARENT);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 1), 1);
	assert_int_equal(fixture_reserve(&f, &b, ns, &keys[0], &keys[1], 3), 0);
	expect_verdicts(0, 3, VERDICT_NO_PARENT); /* another one's, and not committed */
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[0], &keys[1], 3), 3);
	expect_verdicts(0, 3, VERDICT_GRANTED);
}

static void a_parent_of_another_namespace(void **state)
{
	uint32_t other = fixture_ns(&f, "model", 2, 8192);

	fixture_publish(&f, &a, ns, keys, 1);
	assert_int_equal(fixture_reserve(&f, &a, other, &keys[0], &keys[1], 2), 0);
	expect_verdicts(0, 2, VERDICT_NO_PARENT);
}

/* No honest client has the same key in two namespaces, and readers find one block under it. */
static void a_key_of_another_namespace(void **state)
{
	uint32_t other = fixture_ns(&f, "model", 2, 8192);

	fixture_publish(&f, &a, ns, &keys[1], 1);
	assert_int_equal(fixture_reserve(&f, &a, other, NULL, keys, 3), 1);
	expect_verdicts(0, 1, VERDICT_GRANTED);
	expect_verdicts(1, 3, VERDICT_FULL);
	assert_int_equal(f.full, FULL_INDEX);
}

static void present_below_busy_is_said(void **state)
{
	struct block_key run[3] = { keys[0], keys[5], keys[6] };

	/* A chain that is none: keys[5] is nobody's child. */
	fixture_publish(&f, &a, ns, &keys[5], 1);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 1), 1);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, run, 3), 0);
	expect_verdicts(0, 1, VERDICT_BUSY);
	expect_verdicts(1, 2, VERDICT_PRESENT);
	expect_verdicts(2, 3, VERDICT_BUSY);
}

static void commit_lists_and_counts(void **state)
{
	uint32_t d;
	uint64_t w;

	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, N), N);
	assert_false(index_probe(pool_control(f.p), &keys[0], &d, &w));
	fixture_commit(&f, &a, N);
	for (uint32_t i = 0; i < N; i++) {
		assert_true(index_probe(pool_control(f.p), &keys[i], &d, &w));
		assert_int_equal(d, f.grant[i].desc);
		assert_int_equal(word_state(w), DESC_COMMITTED);
		assert_int_equal(pool_control(f.p)->desc[d].crc, 7 * i);
	}
	assert_int_equal(a.n_reserved, 0);
	assert_int_equal(a.reserved_bytes, 0);
	assert_int_equal(a.cached_blocks, N);
	assert_int_equal(a.cached_bytes, N * 4096);
	assert_int_equal(fixture_stats(&f).published, N);
}

static enum proto_verdict commit(struct pool_owner *o, uint32_t i)
{
	return pool_commit(f.p, o, f.grant[i].desc, f.grant[i].gen, 0, f.now);
}

static void commit_wants_parents_first(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 2);
	assert_int_equal(commit(&a, 1), VERDICT_NO_PARENT);
	assert_int_equal(a.n_reserved, 2); /* it stays, and can be committed later */
	assert_int_equal(commit(&a, 0), VERDICT_COMMITTED);
	assert_int_equal(commit(&a, 1), VERDICT_COMMITTED);
}

static void commit_of_what_is_not_one_s_own(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	assert_int_equal(commit(&b, 0), VERDICT_NOT_OWNER);
	assert_int_equal(pool_commit(f.p, &a, f.grant[0].desc, f.grant[0].gen + 1, 0, f.now),
			 VERDICT_STALE);
	assert_int_equal(pool_commit(f.p, &a, 4095, 0, 0, f.now), VERDICT_STALE);
	assert_int_equal(pool_commit(f.p, &a, 4096, 0, 0, f.now), VERDICT_NOT_OWNER);
	assert_int_equal(pool_commit(f.p, &a, DESC_NONE, 0, 0, f.now), VERDICT_NOT_OWNER);
	assert_int_equal(commit(&a, 0), VERDICT_COMMITTED);
	assert_int_equal(commit(&a, 0), VERDICT_STALE); /* twice */
	assert_int_equal(commit(&b, 0), VERDICT_NOT_OWNER);
}

static void abort_frees_what_is_below(void **state)
{
	struct pool_grant g;

	fixture_publish(&f, &a, ns, keys, 1);
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[0], &keys[1], 4), 4);
	g = f.grant[1];
	assert_int_equal(pool_abort(f.p, &b, g.desc, g.gen), VERDICT_NOT_OWNER);
	assert_int_equal(pool_abort(f.p, &a, g.desc, g.gen + 1), VERDICT_STALE);
	assert_int_equal(pool_abort(f.p, &a, g.desc, g.gen), VERDICT_FREED);
	assert_int_equal(pool_abort(f.p, &a, g.desc, g.gen), VERDICT_STALE);
	assert_int_equal(a.n_reserved, 1);
	assert_int_equal(commit(&a, 3), VERDICT_STALE);
	fixture_audit(&f);
	/* The keys can be had again. */
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 5), 0);
	expect_verdicts(1, 5, VERDICT_BUSY);
	assert_int_equal(commit(&a, 0), VERDICT_COMMITTED);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, 5), 3);
}

static void abort_of_a_committed_block(void **state)
{
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	commit(&a, 0);
	assert_int_equal(pool_abort(f.p, &a, f.grant[0].desc, f.grant[0].gen), VERDICT_STALE);
	assert_int_equal(pool_present(f.p, ns, keys, 1), 1);
}

static void an_aborted_number_gets_a_new_gen(void **state)
{
	struct pool_grant g;

	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	g = f.grant[0];
	pool_abort(f.p, &a, g.desc, g.gen);
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	assert_int_equal(f.grant[0].desc, g.desc); /* last in, first out */
	assert_int_equal(f.grant[0].slot, g.slot);
	assert_int_equal(f.grant[0].gen, g.gen + 1);
}

static void full_of_reservations(void **state)
{
	uint32_t slots = (uint32_t)(fixture_config.pool_bytes / 4096);

	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, slots + 5), slots);
	expect_verdicts(0, slots, VERDICT_GRANTED);
	expect_verdicts(slots, slots + 5, VERDICT_FULL);
	assert_int_equal(f.full, FULL_POOL);
	assert_int_equal(fixture_stats(&f).full, 5);
	assert_int_equal(fixture_stats(&f).free_bytes, 0);
}

static int setup_quota(void **state)
{
	struct pool_config cfg = fixture_config;

	cfg.owner_reserved_bytes = 5 * 4096;
	return start(&cfg);
}

static void full_by_quota(void **state)
{
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, N), 5);
	expect_verdicts(0, 5, VERDICT_GRANTED);
	expect_verdicts(5, N, VERDICT_FULL);
	assert_int_equal(f.full, FULL_QUOTA);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, &keys[20], 5), 5); /* each has its own */
	fixture_commit(&f, &b, 5);
	assert_int_equal(fixture_reserve(&f, &b, ns, &keys[24], &keys[25], 5), 5);
}

static int setup_descriptors(void **state)
{
	struct pool_config cfg = fixture_config;

	cfg.max_blocks = 64;
	return start(&cfg);
}

/*
 * A few at a time: places of the index that are only promised can't be moved, and in one as small as
 * this, nearly full of them, a key may find none.
 */
static void publish_by_and_by(uint32_t n)
{
	for (uint32_t i = 4; i <= n; i += 4)
		fixture_publish(&f, &a, ns, keys, i);
}

static void full_by_descriptors(void **state)
{
	publish_by_and_by(60);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 70), 4);
	assert_int_equal(f.full, FULL_DESCRIPTORS);
	expect_verdicts(0, 60, VERDICT_PRESENT);
	expect_verdicts(60, 64, VERDICT_GRANTED);
	expect_verdicts(64, 70, VERDICT_FULL);
}

/* They are everybody's: another namespace's oldest leaves make room. */
static void descriptors_are_evicted_anywhere(void **state)
{
	uint32_t other = fixture_ns(&f, "model", 2, 4096);

	publish_by_and_by(60);
	fixture_pass(&f, NSEC_PER_SEC);
	assert_int_equal(fixture_reserve(&f, &b, other, NULL, &keys[100], 8), 8);
	assert_true(pool_present(f.p, ns, keys, 60) <= 56);
	assert_true(pool_present(f.p, ns, keys, 60) > 0);
}

/* The places of all other keys are promised away. */
static void full_by_index(void **state)
{
	uint32_t granted;

	memset(f.p->index.claimed, BUCKET_ENTRIES, f.p->control.bucket_mask + 1);
	granted = fixture_reserve(&f, &a, ns, NULL, keys, 3);
	memset(f.p->index.claimed, 0, f.p->control.bucket_mask + 1);
	assert_int_equal(granted, 0);
	assert_int_equal(f.full, FULL_INDEX);
	expect_verdicts(0, 3, VERDICT_FULL);
	assert_int_equal(f.p->n_blocks, 0); /* descriptor and slot went back */
	assert_int_equal(a.n_reserved, 0);
}

/* A long chain whose run needs more than is free must not lose its own head. */
static void a_run_never_evicts_its_own_prefix(void **state)
{
	uint32_t slots = (uint32_t)(fixture_config.pool_bytes / 4096);

	fixture_publish(&f, &a, ns, keys, slots - 4);
	fixture_pass(&f, NSEC_PER_SEC);
	/* All that is there is the run's own prefix. */
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, slots + 6), 4);
	expect_verdicts(0, slots - 4, VERDICT_PRESENT);
	expect_verdicts(slots - 4, slots, VERDICT_GRANTED);
	expect_verdicts(slots, slots + 6, VERDICT_FULL);
	assert_int_equal(f.full, FULL_POOL);
	assert_int_equal(fixture_stats(&f).evicted, 0);
}

static void a_reserved_child_keeps_its_parent(void **state)
{
	uint32_t slots = (uint32_t)(fixture_config.pool_bytes / 4096);

	fixture_publish(&f, &a, ns, keys, 3);
	fixture_pass(&f, NSEC_PER_SEC);
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[2], &keys[3], 1), 1);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, &keys[500], slots), slots - 4);
	assert_int_equal(pool_present(f.p, ns, keys, 4), 3);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_run_is_granted_as_a_chain),
		TEST(no_such_namespace),
		TEST(present_then_granted),
		TEST(what_another_writes_is_busy_with_all_below),
		TEST(asking_twice_is_busy),
		TEST(a_key_twice_in_a_run_is_busy),
		TEST(a_parent_that_is_not_there),
		TEST(a_parent_of_another_namespace),
		TEST(a_key_of_another_namespace),
		TEST(present_below_busy_is_said),
		TEST(commit_lists_and_counts),
		TEST(commit_wants_parents_first),
		TEST(commit_of_what_is_not_one_s_own),
		TEST(abort_frees_what_is_below),
		TEST(abort_of_a_committed_block),
		TEST(an_aborted_number_gets_a_new_gen),
		TEST(full_of_reservations),
		cmocka_unit_test_setup_teardown(full_by_quota, setup_quota, teardown),
		cmocka_unit_test_setup_teardown(full_by_descriptors, setup_descriptors, teardown),
		cmocka_unit_test_setup_teardown(descriptors_are_evicted_anywhere, setup_descriptors,
						teardown),
		TEST(full_by_index),
		TEST(a_run_never_evicts_its_own_prefix),
		TEST(a_reserved_child_keeps_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
