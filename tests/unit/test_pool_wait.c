/* SPDX-License-Identifier: Apache-2.0 */
/* Single flight: who waits for whose commit, and what ends the wait. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/pool/fixture.h"

#define N 4u

static struct fixture f;
static struct pool_owner a, b;
static struct pool_waiter w;
static struct block_key keys[FIXTURE_RUN];
static uint32_t ns, present;

static int setup(void **state)
{
	fixture_init(&f, &fixture_config);
	pool_owner_init(&a, 1);
	pool_owner_init(&b, 2);
	ns = fixture_ns(&f, "model", 1, 4096);
	fixture_keys(7, FIXTURE_RUN, keys);
	pool_waiter_init(&w);
	w.ns = ns;
	w.keys = keys;
	w.n_keys = N;
	present = 99;
	return 0;
}

static int teardown(void **state)
{
	fixture_audit(&f);
	fixture_fini(&f);
	return 0;
}

static void start(void)
{
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, N), N);
	assert_int_equal(pool_wait(f.p, &w, &present), 1);
	pool_wake(f.p);
	assert_int_equal(f.n_woken, 0);
}

static void commit(uint32_t i)
{
	assert_int_equal(pool_commit(f.p, &a, f.grant[i].desc, f.grant[i].gen, 0, f.now),
			 VERDICT_COMMITTED);
	pool_wake(f.p);
}

static void expect_woken(uint32_t n)
{
	assert_int_equal(f.n_woken, 1);
	assert_ptr_equal(f.woken, &w);
	assert_int_equal(f.woken_present, n);
	pool_wake(f.p);
	assert_int_equal(f.n_woken, 1);
}

static void nothing_to_wait_for(void **state)
{
	assert_int_equal(pool_wait(f.p, &w, &present), 0);
	assert_int_equal(present, 0);
	fixture_publish(&f, &a, ns, keys, 2);
	assert_int_equal(pool_wait(f.p, &w, &present), 0);
	assert_int_equal(present, 2);
	w.n_keys = 2;
	assert_int_equal(pool_wait(f.p, &w, &present), 0);
	assert_int_equal(present, 2);
	w.n_keys = 0;
	assert_int_equal(pool_wait(f.p, &w, &present), 0);
	assert_int_equal(present, 0);
	assert_true(list_empty(&w.link));
}

static void woken_when_all_is_there(void **state)
{
	start();
	for (uint32_t i = 0; i < N - 1; i++) {
		commit(i);
		assert_int_equal(f.n_woken, 0);
	}
	commit(N - 1);
	expect_woken(N);
}

static void woken_by_abort(void **state)
{
	start();
	commit(0);
	assert_int_equal(pool_abort(f.p, &a, f.grant[1].desc, f.grant[1].gen), VERDICT_FREED);
	pool_wake(f.p);
	expect_woken(1);
}

static void woken_by_the_writer_s_death(void **state)
{
	start();
	commit(0);
	commit(1);
	pool_owner_end(f.p, &a, f.now);
	pool_wake(f.p);
	expect_woken(2);
}

static void woken_by_flush(void **state)
{
	struct pool_flushed flushed = { .freed_blocks = 0 };

	start();
	commit(0);
	assert_int_equal(pool_flush(f.p, ns, 0, f.now, &flushed), 0);
	assert_int_equal(flushed.voided_blocks, N - 1);
	pool_wake(f.p);
	expect_woken(0);
}

static void woken_by_time_out(void **state)
{
	start();
	fixture_pass(&f, fixture_config.reservation_ns);
	fixture_tick(&f);
	expect_woken(0);
}

/* The next one that writes the same key is waited for, too. */
static void a_second_writer_is_waited_for(void **state)
{
	start();
	pool_owner_end(f.p, &a, f.now);
	assert_int_equal(fixture_reserve(&f, &b, ns, NULL, keys, N), N);
	pool_wake(f.p);
	assert_int_equal(f.n_woken, 0);
	fixture_commit(&f, &b, N);
	pool_wake(f.p);
	expect_woken(N);
}

static void a_wait_ends_where_nobody_writes(void **state)
{
	assert_int_equal(fixture_reserve(&f, &a, ns, NULL, keys, 2), 2);
	assert_int_equal(pool_wait(f.p, &w, &present), 1);
	commit(0);
	assert_int_equal(f.n_woken, 0);
	commit(1);
	expect_woken(2);
}

static void cancelled_twice(void **state)
{
	start();
	pool_wait_cancel(&w);
	pool_wait_cancel(&w);
	pool_owner_end(f.p, &a, f.now);
	pool_wake(f.p);
	assert_int_equal(f.n_woken, 0);
}

static void many_waiters(void **state)
{
	static struct pool_waiter many[100];

	start();
	for (uint32_t i = 0; i < 100; i++) {
		pool_waiter_init(&many[i]);
		many[i].ns = ns;
		many[i].keys = keys;
		many[i].n_keys = 1 + i % N;
		assert_int_equal(pool_wait(f.p, &many[i], &present), 1);
	}
	for (uint32_t i = 0; i < N; i++) {
		commit(i);
		assert_int_equal(f.n_woken, 25 * (i + 1) + (i == N - 1));
	}
}

static void present_counts_committed_ones_from_the_first_on(void **state)
{
	fixture_publish(&f, &a, ns, keys, 3);
	assert_int_equal(pool_present(f.p, ns, keys, N), 3);
	assert_int_equal(pool_present(f.p, ns, keys, 2), 2);
	assert_int_equal(pool_present(f.p, ns, &keys[3], 1), 0);
	assert_int_equal(pool_present(f.p, 3, keys, N), 0);
	assert_int_equal(fixture_reserve(&f, &a, ns, &keys[2], &keys[3], 1), 1);
	assert_int_equal(pool_present(f.p, ns, keys, N), 3);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nothing_to_wait_for),
		TEST(woken_when_all_is_there),
		TEST(woken_by_abort),
		TEST(woken_by_the_writer_s_death),
		TEST(woken_by_flush),
		TEST(woken_by_time_out),
		TEST(a_second_writer_is_waited_for),
		TEST(a_wait_ends_where_nobody_writes),
		TEST(cancelled_twice),
		TEST(many_waiters),
		TEST(present_counts_committed_ones_from_the_first_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
