/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation fails once: -ENOMEM or FULL, nothing written, nothing lost, and the next try
 * works. Linked with --wrap for the functions below.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static uint32_t fails_in;  /* that one fails; 0: none */
static int fails_from_then; /* and all that follow */

static int fails(void)
{
	if (fails_in == 1 && fails_from_then)
		return 1;
	return fails_in && !--fails_in;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

static struct fixture f;
static struct pool_owner a;
static struct block_key keys[64];

static int setup(void **state)
{
	fails_in = 0;
	fails_from_then = 0;
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	fixture_keys(1000, 64, keys);
	return 0;
}

static int teardown(void **state)
{
	fails_in = 0;
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static void a_pool(void **state)
{
	uint32_t n;

	for (n = 1; n < 100; n++) {
		struct pool *p = NULL;
		int r;

		fails_in = n;
		r = pool_new(&fixture_config, f.p->ops, &f, &p);
		if (r == 0) {
			fails_in = 0;
			pool_free(p);
			break;
		}
		assert_int_equal(r, -ENOMEM);
		assert_null(p);
	}
	assert_in_range(n, 10, 20);
}

static void a_namespace(void **state)
{
	static uint8_t bytes[NSDESC_MAX_BYTES];
	struct nsdesc_values v;
	size_t size = fixture_desc("m", 1, 4096, bytes, &v);
	uint32_t ns = 99, near = 99, n;
	int created = 99;

	for (n = 1; n < 100; n++) {
		int r;

		fails_in = n;
		r = pool_ns_open(f.p, bytes, size, &v, f.now, &ns, &created, &near);
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(ns, 99);
		fails_in = 0;
		assert_int_equal(fixture_stats(&f).namespaces, 0);
	}
	fails_in = 0;
	assert_in_range(n, 2, 4);
	assert_int_equal(created, 1);
}

/* No extent is a full pool, as far as a client can tell. */
static void an_extent(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096), n;

	fails_from_then = 1;
	for (n = 1; n < 100; n++) {
		uint32_t granted;

		fails_in = n;
		granted = fixture_reserve(&f, &a, ns, NULL, keys, 1);
		if (granted)
			break;
		fails_in = 0;
		assert_int_equal(f.verdict[0], VERDICT_FULL);
		assert_int_equal(f.full, FULL_POOL);
		fixture_audit(&f);
	}
	fails_in = 0;
	assert_int_equal(n, 3);
}

/* What a colder namespace gave and nobody could take is free memory again. */
static void an_extent_that_moves(void **state)
{
	uint32_t cold = fixture_ns(&f, "m", 1, 4096), hot = fixture_ns(&f, "m", 2, 4096);

	for (uint32_t i = 0; i < 64; i++)
		fixture_chain(&f, &a, cold, i, 16);
	fixture_pass(&f, 60 * NSEC_PER_SEC);
	fails_in = 1;
	assert_int_equal(fixture_reserve(&f, &a, hot, NULL, keys, 1), 1); /* the second try */
	fails_in = 0;
	assert_int_equal(fixture_stats(&f).extents_taken, 2);
	assert_int_equal(f.n_punch, 1);
	fixture_audit(&f);
	fixture_punched(&f);
	assert_int_equal(fixture_reserve(&f, &a, hot, &keys[0], &keys[1], 20), 20);
	assert_int_equal(fixture_stats(&f).extents_taken, 2);
}

/* Without memory to plan it nothing changes; what it does then needs none. */
static void a_resize(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096);
	struct pool_resized r = { .was_bytes = 99 };

	for (uint32_t i = 0; i < 8; i++)
		fixture_chain(&f, &a, ns, i, 16);
	fails_in = 1;
	fails_from_then = 1;
	assert_int_equal(pool_resize(f.p, 2 * FIXTURE_GRANULE, 0, f.now, &r), -ENOMEM);
	assert_int_equal(r.was_bytes, 99);
	assert_int_equal(pool_limit_bytes(f.p), fixture_config.pool_bytes);
	fails_in = 0;
	assert_int_equal(pool_resize(f.p, 2 * FIXTURE_GRANULE, 0, f.now, &r), 0);
	fails_in = 1;
	fixture_tick(&f);
	fails_in = 0;
	assert_int_equal(fixture_stats(&f).handed_bytes, 2 * FIXTURE_GRANULE);
}

/* Nor is room for one more reservation. */
static void the_map_of_reservations(void **state)
{
	uint32_t ns = fixture_ns(&f, "m", 1, 4096);
	struct block_key many[FIXTURE_RUN];
	uint32_t n;

	fixture_keys(9, 1000, many);
	n = fixture_reserve(&f, &a, ns, NULL, many, 100);
	assert_int_equal(n, 100);
	fails_in = 1;
	fails_from_then = 1;
	n = fixture_reserve(&f, &a, ns, &many[99], &many[100], 500);
	fails_in = 0;
	assert_in_range(n, 1, 499);
	assert_int_equal(f.verdict[n - 1], VERDICT_GRANTED);
	assert_int_equal(f.verdict[n], VERDICT_FULL);
	assert_int_equal(f.full, FULL_POOL);
	fixture_audit(&f);
	assert_int_equal(fixture_reserve(&f, &a, ns, &many[99 + n], &many[100 + n], 500 - n),
			 500 - n);
}

static void a_pin(void **state)
{
	const struct pool_pin_wish wish = { 0, 50, "" };
	uint32_t ns = fixture_ns(&f, "m", 1, 4096), d;
	struct pool_pinned done;

	fixture_publish(&f, &a, ns, keys, 4);
	d = fixture_find(&f, &keys[3]);
	fails_in = 1;
	assert_int_equal(pool_pin(f.p, d, block_gen(f.p, d), &wish, f.now, &done), -ENOMEM);
	fails_in = 0;
	fixture_audit(&f);
	assert_int_equal(fixture_stats(&f).pins, 0);
	assert_int_equal(pool_pin(f.p, d, block_gen(f.p, d), &wish, f.now, &done), 0);
	fixture_audit(&f);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_pool),
		TEST(a_namespace),
		TEST(an_extent),
		TEST(an_extent_that_moves),
		TEST(a_resize),
		TEST(the_map_of_reservations),
		TEST(a_pin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
