/* SPDX-License-Identifier: Apache-2.0 */
/* What the pool remembers of blocks that went, and of those that never came; ids. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/evictor.h"
#include "daemon/find_id.h"
#include "tests/pool/fixture.h"

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

/* What is remembered of block i of chain number seed. */
static enum miss_reason why(uint64_t seed, uint32_t i)
{
	struct ghost_found found;

	fixture_keys(seed, i + 1, keys);
	if (!ghost_find(&f.p->ghost, &keys[i], &found))
		return MISS_NONE;
	assert_true(found.when <= f.now);
	assert_int_equal(found.ns, ns);
	return found.why;
}

static void blocks_that_made_room_are_evicted(void **state)
{
	fixture_chain(&f, &a, ns, 1, 10);
	assert_int_equal(why(1, 9), MISS_NONE);
	assert_int_equal(evictor_run(f.p, namespace_get(f.p, ns), 3, f.now), 3);
	assert_int_equal(why(1, 6), MISS_NONE);
	assert_int_equal(why(1, 7), MISS_EVICTED);
	assert_int_equal(why(1, 9), MISS_EVICTED);
}

static void a_batch_says_itself_why_it_goes(void **state)
{
	struct namespace *x = namespace_get(f.p, ns);
	uint32_t d;

	fixture_chain(&f, &a, ns, 1, 2);
	fixture_keys(1, 2, keys);
	d = fixture_find(&f, &keys[1]);
	lru_remove(&x->lru, d);
	block_unhang(f.p, d);
	block_leaf(f.p, block_parent(f.p, d));
	assert_int_equal(evictor_take(f.p, &d, 1, MISS_RESIZED, f.now), 1);
	assert_int_equal(why(1, 1), MISS_RESIZED);
}

static void what_a_pin_saved_is_not_gone(void **state)
{
	fixture_chain(&f, &a, ns, 1, 10);
	fixture_keys(1, 10, keys);
	fixture_pin(&f, 0, 0, fixture_find(&f, &keys[9]));
	assert_int_equal(evictor_run(f.p, namespace_get(f.p, ns), 3, f.now), 0);
	assert_int_equal(why(1, 9), MISS_NONE);
}

static void a_flush_and_what_it_voids(void **state)
{
	struct pool_flushed flushed = { .freed_blocks = 0 };

	fixture_chain(&f, &a, ns, 1, 3);
	fixture_keys(2, 2, keys);
	fixture_reserve(&f, &b, ns, NULL, keys, 2);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	assert_int_equal(why(1, 0), MISS_FLUSHED);
	assert_int_equal(why(1, 2), MISS_FLUSHED);
	assert_int_equal(why(2, 1), MISS_FLUSHED);
}

static void bad_bytes_and_what_is_below(void **state)
{
	uint64_t offset, bytes, gen;
	uint32_t crc, d;

	fixture_chain(&f, &a, ns, 1, 5);
	fixture_keys(1, 5, keys);
	d = fixture_find(&f, &keys[2]);
	gen = block_gen(f.p, d);
	assert_int_equal(pool_pin_for_verify(f.p, d, gen, &offset, &bytes, &crc), 0);
	assert_int_equal(pool_verify_done(f.p, d, gen, 1, f.now), 1);
	assert_int_equal(why(1, 1), MISS_NONE);
	assert_int_equal(why(1, 2), MISS_CORRUPT);
	assert_int_equal(why(1, 4), MISS_CORRUPT);
}

static void a_writer_that_dies_or_takes_too_long(void **state)
{
	fixture_keys(1, 2, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 2);
	assert_int_equal(why(1, 0), MISS_NONE);
	pool_owner_end(f.p, &a, f.now);
	assert_int_equal(why(1, 0), MISS_WRITER_DIED);
	assert_int_equal(why(1, 1), MISS_WRITER_DIED);
	fixture_keys(2, 1, keys);
	fixture_reserve(&f, &b, ns, NULL, keys, 1);
	fixture_pass(&f, fixture_config.reservation_ns);
	fixture_tick(&f);
	assert_int_equal(why(2, 0), MISS_WRITER_DIED);
}

/* What its writer gave back never was stored, and nothing went wrong. */
static void an_abort_is_not_remembered(void **state)
{
	fixture_keys(1, 2, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 2);
	assert_int_equal(pool_abort(f.p, &a, f.grant[0].desc, f.grant[0].gen), VERDICT_FREED);
	assert_int_equal(why(1, 0), MISS_NONE);
}

static void the_first_key_that_finds_no_room(void **state)
{
	const uint32_t room = 64 * FIXTURE_GRANULE / 4096;

	fixture_keys(1, room + 10, keys);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, room + 10), room);
	assert_int_equal(f.full, FULL_POOL);
	assert_int_equal(why(1, room - 1), MISS_NONE);
	assert_int_equal(why(1, room), MISS_FULL);
	assert_int_equal(why(1, room + 1), MISS_NONE);
}

static void the_first_key_beyond_the_quota(void **state)
{
	struct pool_config cfg = fixture_config;

	cfg.owner_reserved_bytes = 4 * 4096;
	assert_int_equal(teardown(state), 0);
	start(&cfg);
	fixture_keys(1, 6, keys);
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 6), 4);
	assert_int_equal(f.full, FULL_QUOTA);
	assert_int_equal(why(1, 3), MISS_NONE);
	assert_int_equal(why(1, 4), MISS_QUOTA);
	assert_int_equal(why(1, 5), MISS_NONE);
}

static struct find_id find(uint32_t of, const char *id)
{
	struct find_id s;

	assert_int_equal(find_id_init(&s, of, id), 0);
	while (find_id_step(&s, f.p))
		;
	return s;
}

static void a_block_is_found_by_the_start_of_its_id(void **state)
{
	uint32_t other = fixture_ns(&f, "model", 2, 4096), d;
	char id[FIND_ID_DIGITS + 1];
	struct find_id s;

	fixture_chain(&f, &a, ns, 1, 100);
	fixture_keys(1, 100, keys);
	d = fixture_find(&f, &keys[42]);
	find_id_of(f.p, d, id);
	s = find(NS_NONE, id);
	assert_int_equal(s.found, 1);
	assert_int_equal(s.desc, d);
	assert_true(find_id_is_there(&s, f.p));
	assert_int_equal(find(ns, id).found, 1);
	assert_int_equal(find(other, id).found, 0);
	id[9] = '\0'; /* an odd number of digits */
	assert_int_equal(find(NS_NONE, id).desc, d);
	id[8] = id[8] == '0' ? '1' : '0';
	assert_int_equal(find(NS_NONE, id).found, 0);
	/* A hundred blocks, sixteen digits. */
	assert_int_equal(find(NS_NONE, "0").found + find(NS_NONE, "1").found > 0, 1);
	id[0] = '\0';
	assert_int_equal(find_id_init(&s, ns, id), -EINVAL);
	assert_int_equal(find_id_init(&s, ns, "xyz"), -EINVAL);
}

static void two_blocks_of_one_beginning_are_ambiguous(void **state)
{
	unsigned int several = 0;

	fixture_chain(&f, &a, ns, 1, 100);
	for (char c = '0'; c <= '9'; c++)
		several += find(ns, (char[]){ c, '\0' }).found == 2;
	assert_true(several > 0);
}

static void only_what_is_cached_is_found(void **state)
{
	struct pool_flushed flushed = { .freed_blocks = 0 };
	char id[FIND_ID_DIGITS + 1];
	struct find_id s;

	fixture_keys(1, 1, keys);
	fixture_reserve(&f, &a, ns, NULL, keys, 1);
	find_id_of(f.p, f.grant[0].desc, id);
	assert_int_equal(find(ns, id).found, 0);
	fixture_commit(&f, &a, 1);
	s = find(ns, id);
	assert_true(find_id_is_there(&s, f.p));
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	assert_false(find_id_is_there(&s, f.p));
	assert_int_equal(find(ns, id).found, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(blocks_that_made_room_are_evicted),
		TEST(a_batch_says_itself_why_it_goes),
		TEST(what_a_pin_saved_is_not_gone),
		TEST(a_flush_and_what_it_voids),
		TEST(bad_bytes_and_what_is_below),
		TEST(a_writer_that_dies_or_takes_too_long),
		TEST(an_abort_is_not_remembered),
		TEST(the_first_key_that_finds_no_room),
		TEST(the_first_key_beyond_the_quota),
		TEST(a_block_is_found_by_the_start_of_its_id),
		TEST(two_blocks_of_one_beginning_are_ambiguous),
		TEST(only_what_is_cached_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
