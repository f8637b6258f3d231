/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: opened by descriptor, found again, told apart, closed when the table is full. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/evictor.h"
#include "tests/pool/fixture.h"

static struct fixture f;
static struct pool_owner a;
static uint8_t bytes[NSDESC_MAX_BYTES];
static struct nsdesc_values v;
static uint32_t ns, near;
static int created;

static int setup(void **state)
{
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	ns = near = 99;
	created = 99;
	return 0;
}

static int teardown(void **state)
{
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static int open_ns(const char *model, uint8_t salt, uint64_t block_bytes)
{
	size_t n = fixture_desc(model, salt, block_bytes, bytes, &v);

	return pool_ns_open(f.p, bytes, n, &v, f.now, &ns, &created, &near);
}

static void equal_descriptors_are_one_namespace(void **state)
{
	uint32_t first;

	assert_int_equal(open_ns("m", 1, 4096), 0);
	assert_int_equal(created, 1);
	assert_int_equal(near, NS_NONE);
	first = ns;
	assert_int_equal(open_ns("m", 1, 4096), 0);
	assert_int_equal(created, 0);
	assert_int_equal(near, NS_NONE);
	assert_int_equal(ns, first);
	assert_int_equal(fixture_stats(&f).namespaces, 1);
}

static void the_nearest_of_the_same_model_is_named(void **state)
{
	uint32_t other_size;

	assert_int_equal(open_ns("other", 1, 4096), 0);
	assert_int_equal(open_ns("m", 1, 8192), 0);
	assert_int_equal(near, NS_NONE);
	other_size = ns;
	assert_int_equal(open_ns("m", 2, 4096), 0); /* salt and size differ */
	assert_int_equal(near, other_size);
	assert_int_equal(open_ns("m", 3, 8192), 0); /* salt alone */
	assert_int_equal(near, other_size);
}

static void what_clients_see(void **state)
{
	const struct ns_entry *e;
	uint8_t seed[KEY_BYTES];
	const uint8_t *desc;
	size_t n;

	n = fixture_desc("m", 1, 5000, bytes, &v);
	nsdesc_seed(bytes, n, seed);
	assert_int_equal(open_ns("m", 1, 5000), 0);
	e = &pool_control(f.p)->ns[ns];
	assert_int_equal(e->state, NS_OPEN);
	assert_int_equal(e->block_tokens, 16);
	assert_int_equal(e->block_bytes, 5000);
	assert_int_equal(e->stride, 8192);
	assert_memory_equal(e->seed, seed, sizeof(seed));
	desc = pool_ns_desc(f.p, ns, &n);
	assert_memory_equal(desc, bytes, n);
	assert_null(pool_ns_desc(f.p, 3, &n));
	assert_null(pool_ns_desc(f.p, 4, &n));
}

static void other_group_rules_are_refused(void **state)
{
	size_t n = fixture_desc("m", 1, 4096, bytes, &v);

	v.group_rule = GROUP_TRAILING;
	assert_int_equal(pool_ns_open(f.p, bytes, n, &v, f.now, &ns, &created, &near), -EOPNOTSUPP);
	v.group_rule = GROUP_LAST;
	assert_int_equal(pool_ns_open(f.p, bytes, n, &v, f.now, &ns, &created, &near), -EOPNOTSUPP);
	assert_int_equal(ns, 99);
}

static void four_blocks_must_fit(void **state)
{
	assert_int_equal(open_ns("m", 1, 16 * FIXTURE_GRANULE + 1), -EFBIG);
	assert_int_equal(ns, 99); /* nothing is written on failure */
	assert_int_equal(created, 99);
	assert_int_equal(open_ns("m", 1, 16 * FIXTURE_GRANULE), 0);
	pool_ns_hold(f.p, ns);
	fixture_chain(&f, &a, ns, 1, 4);
	assert_int_equal(fixture_stats(&f).free_bytes, 0);
}

static void a_full_table_reuses_the_empty_unused_one_of_long_ago(void **state)
{
	struct pool_ns_stats s;
	uint32_t first, second, third;

	first = fixture_ns(&f, "m", 1, 4096);
	fixture_pass(&f, 1);
	second = fixture_ns(&f, "m", 2, 4096);
	fixture_pass(&f, 1);
	third = fixture_ns(&f, "m", 3, 4096);
	fixture_ns(&f, "m", 4, 4096);
	assert_int_equal(open_ns("m", 5, 4096), -ENOSPC);
	fixture_chain(&f, &a, first, 1, 3);
	pool_ns_drop(f.p, first);
	assert_int_equal(open_ns("m", 5, 4096), -ENOSPC); /* not empty */
	pool_ns_drop(f.p, third);
	pool_ns_drop(f.p, second);
	assert_int_equal(open_ns("m", 5, 8192), 0);
	assert_int_equal(ns, second);
	assert_int_equal(created, 1);
	assert_int_equal(pool_ns_get_stats(f.p, ns, &s), 0);
	assert_int_equal(s.block_bytes, 8192);
	assert_int_equal(fixture_cached(&f, first, 1, 3), 3);
}

static void blocks_in_quarantine_keep_a_namespace(void **state)
{
	struct block_key key;
	uint32_t first = fixture_ns(&f, "m", 1, 4096);

	for (uint8_t i = 2; i <= 4; i++)
		fixture_ns(&f, "m", i, 4096);
	fixture_keys(1, 1, &key);
	fixture_reserve(&f, &a, first, NULL, &key, 1);
	pool_ns_drop(f.p, first);
	pool_owner_gone(f.p, &a, f.now);
	assert_int_equal(open_ns("m", 5, 4096), -ENOSPC);
	fixture_pass(&f, NSEC_PER_SEC);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).handed_bytes, 0); /* and its memory went */
	assert_int_equal(open_ns("m", 5, 4096), 0);
	assert_int_equal(ns, first);
}

static void the_last_holder_of_an_empty_one_gives_its_memory_back(void **state)
{
	struct block_key keys[3];

	ns = fixture_ns(&f, "m", 1, 4096);
	pool_ns_hold(f.p, ns);
	fixture_keys(1, 3, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 3);
	pool_abort(f.p, &a, f.grant[0].desc, f.grant[0].gen);
	pool_ns_drop(f.p, ns);
	assert_int_equal(fixture_stats(&f).handed_bytes, FIXTURE_GRANULE);
	pool_ns_drop(f.p, ns);
	assert_int_equal(fixture_stats(&f).handed_bytes, 0);
	assert_int_equal(f.n_punch, 1);
}

/* Whichever way the last block goes. */
static void an_unused_one_gives_its_memory_back(void **state)
{
	struct block_key keys[8];
	uint32_t other, n;

	ns = fixture_ns(&f, "m", 1, 4096);
	other = fixture_ns(&f, "m", 2, 4096);
	fixture_keys(1, 8, keys);
	n = fixture_reserve(&f, &a, ns, NULL, keys, 8);
	pool_ns_drop(f.p, ns);
	for (uint32_t i = n; i-- > 0;)
		assert_int_equal(pool_abort(f.p, &a, f.grant[i].desc, f.grant[i].gen), VERDICT_FREED);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).handed_bytes, 0);

	pool_ns_hold(f.p, ns);
	fixture_chain(&f, &a, ns, 1, 8);
	pool_ns_drop(f.p, ns);
	assert_int_equal(evictor_run(f.p, namespace_get(f.p, ns), 8, f.now), 8);
	fixture_tick(&f);
	assert_int_equal(fixture_stats(&f).handed_bytes, 0);
	pool_ns_drop(f.p, other);
}

static void numbers_of_a_namespace(void **state)
{
	struct block_key keys[8];
	struct pool_ns_stats s;
	uint32_t scans;

	ns = fixture_ns(&f, "some model", 1, 5000);
	fixture_keys(1, 8, keys);
	fixture_publish(&f, &a, ns, keys, 5);
	fixture_reserve(&f, &a, ns, &keys[4], &keys[5], 3);
	fixture_pin(&f, 0, 0, fixture_find(&f, &keys[1]));
	pool_touch(f.p, ns, DESC_NONE, 100, 40, f.now + 5);
	pool_count_leased(f.p);
	scans = f.scans;
	assert_int_equal(pool_ns_get_stats(f.p, ns, &s), 0);
	assert_int_equal(f.scans, scans); /* one scan does for a list of them */
	assert_string_equal(s.model, "some model");
	assert_int_equal(s.block_tokens, 16);
	assert_int_equal(s.block_bytes, 5000);
	assert_int_equal(s.blocks, 5);
	assert_int_equal(s.leased_blocks, 2);
	assert_int_equal(s.writing_blocks, 3);
	assert_int_equal(s.extents, 1);
	assert_int_equal(s.extent_bytes, FIXTURE_GRANULE);
	assert_int_equal(s.lookups, 1);
	assert_int_equal(s.asked_tokens, 100);
	assert_int_equal(s.hit_tokens, 40);
	assert_int_equal(s.used, f.now + 5);
	assert_int_equal(pool_ns_get_stats(f.p, 2, &s), -ENOENT);
}

static void retired(void **state)
{
	assert_int_equal(pool_control(f.p)->head->state, CONTROL_ACTIVE);
	assert_int_equal(pool_epoch(f.p), 1);
	pool_retire(f.p);
	assert_int_equal(pool_control(f.p)->head->state, CONTROL_RETIRED);
	pool_control(f.p)->head->state = CONTROL_ACTIVE; /* for the audit */
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(equal_descriptors_are_one_namespace),
		TEST(the_nearest_of_the_same_model_is_named),
		TEST(what_clients_see),
		TEST(other_group_rules_are_refused),
		TEST(four_blocks_must_fit),
		TEST(a_full_table_reuses_the_empty_unused_one_of_long_ago),
		TEST(blocks_in_quarantine_keep_a_namespace),
		TEST(the_last_holder_of_an_empty_one_gives_its_memory_back),
		TEST(an_unused_one_gives_its_memory_back),
		TEST(numbers_of_a_namespace),
		TEST(retired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
