/* SPDX-License-Identifier: Apache-2.0 */
/* The last lookups of each client: rings, who loses one, and who is asked about. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/requests.h"

static struct requests r;
static struct request_ring *user[2 * REQUESTS_RINGS];
static const struct requests_query anybody = { .client = "" };

static int setup(void **state)
{
	requests_init(&r);
	return 0;
}

static int teardown(void **state)
{
	requests_fini(&r);
	for (unsigned int i = 0; i < 2 * REQUESTS_RINGS; i++)
		assert_null(user[i]);
	return 0;
}

static void add(uint32_t i, uint32_t missed, uint64_t now)
{
	struct past_lookup p = { .when = now, .asked = 100, .hit = 99 - missed, .tail = 1 };
	char name[16];

	snprintf(name, sizeof(name), "client%u", i % 3);
	requests_add(&r, &user[i], 1 + i, name, &p);
}

static uint64_t newest(struct requests_query q)
{
	const struct request_ring *ring;
	const struct past_lookup *p = requests_newest(&r, &q, &ring);

	assert_int_equal(requests_knows(&r, &q) || !p, 1);
	return p ? p->number : 0;
}

static void the_newest_first(void **state)
{
	struct requests_query q = anybody;

	assert_int_equal(newest(q), 0);
	for (uint32_t i = 0; i < 12; i++)
		add(i % 3, i % 2, i);
	for (q.before = 0; q.before != 1; q.before--) {
		uint64_t n = newest(q);

		assert_int_equal(n, q.before ? q.before - 1 : 12);
		q.before = n + 1;
	}
	q = anybody;
	q.session = 2;
	assert_int_equal(newest(q), 11);
	q.client = "client2";
	assert_int_equal(newest(q), 0);
	q.session = 0;
	assert_int_equal(newest(q), 12);
	q.before = 12;
	assert_int_equal(newest(q), 9);
	q.misses = 1;
	assert_int_equal(newest(q), 6);
	q.client = "nobody";
	assert_int_equal(newest(q), 0);
	assert_int_equal(requests_knows(&r, &q), 0);
}

static void a_ring_holds_the_last_256(void **state)
{
	struct requests_query q = anybody;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		add(0, 0, i);
	while ((q.before = newest(q)))
		n++;
	assert_int_equal(n, REQUESTS_RING);
	q.before = 1000 - REQUESTS_RING + 2;
	assert_int_equal(newest(q), 1000 - REQUESTS_RING + 1);
	q.misses = 1;
	assert_int_equal(newest(q), 0);
}

/* Who looked something up longest ago loses its ring, and gets a new one with its next lookup. */
static void memory_is_bounded(void **state)
{
	for (uint32_t i = 0; i < REQUESTS_RINGS; i++)
		add(i, 0, i);
	add(0, 0, 1000);
	assert_int_equal(r.n, REQUESTS_RINGS);
	add(REQUESTS_RINGS, 0, 1001);
	assert_int_equal(r.n, REQUESTS_RINGS);
	assert_non_null(user[0]);
	assert_null(user[1]);
	add(1, 0, 1002);
	assert_non_null(user[1]);
	assert_null(user[2]);
	assert_int_equal(r.n, REQUESTS_RINGS);
}

static void an_ended_session_is_known_for_a_while(void **state)
{
	struct requests_query q = { .session = 1, .client = "" };

	add(0, 0, 10);
	add(1, 0, 11);
	requests_end(&user[0], 100);
	requests_end(&user[0], 100); /* it has none any more */
	assert_null(user[0]);
	requests_tidy(&r, 100 + REQUESTS_KEEP_NS - 1);
	assert_int_equal(newest(q), 1);
	requests_tidy(&r, 100 + REQUESTS_KEEP_NS);
	assert_int_equal(requests_knows(&r, &q), 0);
	assert_int_equal(newest(anybody), 2);
	assert_non_null(user[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_newest_first),
		TEST(a_ring_holds_the_last_256),
		TEST(memory_is_bounded),
		TEST(an_ended_session_is_known_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
