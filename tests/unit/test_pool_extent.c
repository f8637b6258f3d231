/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: what is handed out, in which order, what goes back and how. */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "shm/granule.h"
#include "tests/pool/fixture.h"

static struct fixture f;
static struct pool_owner a;
static struct block_key keys[FIXTURE_RUN];

static int setup(void **state)
{
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	fixture_keys(7, FIXTURE_RUN, keys);
	return 0;
}

static int teardown(void **state)
{
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static void granules_by_the_size_of_the_pool(void **state)
{
	static const struct {
		uint64_t pool;
		uint32_t shift;
	} cases[] = {
		{ 0, 16 }, { MIB(1), 16 }, { MIB(8), 16 }, { MIB(15), 16 }, { MIB(16), 17 },
		{ GIB(1), 23 }, { GIB(4) - 1, 24 }, { GIB(8), 26 }, { GIB(64), 26 },
		{ GIB(4096), 26 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(granule_shift_of(cases[i].pool), cases[i].shift);
}

static void bad_configurations_are_refused(void **state)
{
	struct pool_config cfg = fixture_config;
	struct pool *p = NULL;

	cfg.pool_bytes += 4096; /* no whole granules */
	assert_int_equal(pool_new(&cfg, f.p->ops, &f, &p), -EINVAL);
	cfg = fixture_config;
	cfg.max_blocks = 0;
	assert_int_equal(pool_new(&cfg, f.p->ops, &f, &p), -EINVAL);
	cfg.max_blocks = POOL_BLOCKS_MAX + 1;
	assert_int_equal(pool_new(&cfg, f.p->ops, &f, &p), -EINVAL);
	cfg = fixture_config;
	cfg.granule_shift = 11;
	assert_int_equal(pool_new(&cfg, f.p->ops, &f, &p), -EINVAL);
	assert_null(p);
	assert_null(pool_free(NULL));
}

static void the_regions_are_what_clients_need(void **state)
{
	struct stat st;

	assert_int_equal(fcntl(pool_control_fd(f.p), F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fcntl(pool_memory_fd(f.p), F_GETFL) & O_ACCMODE, O_RDWR);
	assert_int_equal(fstat(pool_control_fd(f.p), &st), 0);
	assert_int_equal(st.st_size, pool_control_bytes(f.p));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fstat(pool_memory_fd(f.p), &st), 0);
	assert_int_equal(st.st_size, pool_memory_bytes(f.p));
	assert_int_equal(st.st_size, fixture_config.pool_bytes);
	assert_int_equal(st.st_blocks, 0); /* sparse */
	assert_true(fcntl(pool_memory_fd(f.p), F_GET_SEALS) & F_SEAL_SEAL);
}

static void extents_are_handed_out_as_they_are_needed(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096);
	const struct granule *g = pool_control(f.p)->granule;

	assert_int_equal(fixture_stats(&f).handed_bytes, 0);
	fixture_publish(&f, &a, ns, keys, 1);
	assert_int_equal(fixture_stats(&f).handed_bytes, FIXTURE_GRANULE);
	assert_int_equal(f.populated_bytes, FIXTURE_GRANULE);
	assert_int_equal(g[0].ns, ns);
	assert_int_equal(g[0].count, 1);
	assert_int_equal(g[1].ns, NS_NONE);
	fixture_publish(&f, &a, ns, keys, 17);
	assert_int_equal(fixture_stats(&f).handed_bytes, 2 * FIXTURE_GRANULE);
	assert_int_equal(f.populated_bytes, 2 * FIXTURE_GRANULE);
}

static void large_blocks_have_extents_of_many_granules(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 3 * FIXTURE_GRANULE);
	const struct granule *g = pool_control(f.p)->granule;

	fixture_publish(&f, &a, ns, keys, 5);
	assert_int_equal(fixture_stats(&f).handed_bytes, 24 * FIXTURE_GRANULE);
	for (uint32_t i = 0; i < 24; i++) {
		assert_int_equal(g[i].ns, ns);
		assert_int_equal(g[i].first, i / 12 * 12);
		assert_int_equal(g[i].count, i % 12 ? 0 : 12);
	}
}

static void what_a_last_slot_leaves_over_counts_as_free(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 12288); /* five in 64 KiB, and 4096 bytes */

	fixture_publish(&f, &a, ns, keys, 5);
	assert_int_equal(fixture_stats(&f).handed_bytes, FIXTURE_GRANULE);
	assert_int_equal(fixture_stats(&f).free_bytes, 4096);
}

static void abort_one(uint32_t i)
{
	assert_int_equal(pool_abort(f.p, &a, f.grant[i].desc, f.grant[i].gen), VERDICT_FREED);
}

/* Each key its own chain, so that they can be freed in any order. */
static void reserve_apart(uint32_t ns, uint32_t from, uint32_t n, struct pool_grant *grants)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(fixture_reserve(&f, &a, ns, NULL, &keys[from + i], 1), 1);
		grants[i] = f.grant[0];
	}
	for (uint32_t i = 0; i < n; i++)
		f.grant[i] = grants[i];
}

static void slots_are_reused_last_in_first_out(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096);
	struct pool_grant first[20], again[3];

	reserve_apart(ns, 0, 20, first); /* one extent and four slots of the next */
	abort_one(3);
	abort_one(17); /* in the second extent */
	abort_one(5);
	reserve_apart(ns, 100, 3, again);
	assert_int_equal(again[0].slot, first[5].slot);
	assert_int_equal(again[1].slot, first[3].slot); /* same extent: warm all the same */
	assert_int_equal(again[2].slot, first[17].slot);
	assert_int_equal(again[0].desc, first[5].desc);
	assert_int_equal(again[1].desc, first[17].desc);
}

/* Before memory that was never touched, in whatever extent. */
static void freed_slots_go_before_fresh_ones(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096);
	struct pool_grant first[20], again[3];

	reserve_apart(ns, 0, 20, first);
	abort_one(2);
	reserve_apart(ns, 100, 2, again);
	assert_int_equal(again[0].slot, first[2].slot);
	assert_int_equal(again[1].slot, first[19].slot + 1);
}

static void memory_that_went_back_is_punched_first(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096), slots = 64 * 16;
	struct pool_flushed flushed = { .freed_blocks = 0 };
	uint64_t gen = pool_control(f.p)->granule[5].gen;

	fixture_publish(&f, &a, ns, keys, slots);
	pool_flush(f.p, ns, 0, f.now, &flushed);
	assert_int_equal(flushed.freed_blocks, slots);
	assert_int_equal(f.n_punch, 63);
	assert_int_equal(pool_control(f.p)->granule[5].gen, gen + 1);
	assert_int_equal(pool_control(f.p)->granule[5].ns, NS_NONE);
	/* Only what the namespace kept can be handed out meanwhile. */
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 20), 16);
	assert_int_equal(f.full, FULL_POOL);
	fixture_punched(&f);
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[15], &keys[16], 4), 4);
	assert_int_equal(pool_control(f.p)->granule[5].gen, gen + 1);
}

static void memory_is_not_punched_under_a_writer(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096);
	struct pool_flushed flushed = { .freed_blocks = 0 };

	fixture_publish(&f, &a, ns, keys, 40);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, &keys[100], 1), 1);
	pool_flush(f.p, ns, 0, f.now, &flushed);
	assert_int_equal(flushed.voided_blocks, 1);
	assert_int_equal(f.n_punch, 2);
	for (uint32_t i = 0; i < f.n_punch; i++)
		assert_true(slot_offset(f.grant[0].slot) < f.punch[i].offset ||
			    slot_offset(f.grant[0].slot) >= f.punch[i].offset + f.punch[i].bytes);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(granules_by_the_size_of_the_pool),
		TEST(bad_configurations_are_refused),
		TEST(the_regions_are_what_clients_need),
		TEST(extents_are_handed_out_as_they_are_needed),
		TEST(large_blocks_have_extents_of_many_granules),
		TEST(what_a_last_slot_leaves_over_counts_as_free),
		TEST(slots_are_reused_last_in_first_out),
		TEST(freed_slots_go_before_fresh_ones),
		TEST(memory_that_went_back_is_punched_first),
		TEST(memory_is_not_punched_under_a_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
