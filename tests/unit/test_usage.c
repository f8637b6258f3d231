/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: records and counters of clients, honest and not, and sums that hold for both. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "daemon/usage.h"

static struct session_header head;
static struct session_map map = { .head = &head };
static struct account a;

static int setup(void **state)
{
	memset(&head, 0, sizeof(head));
	memset(&a, 0, sizeof(a));
	return 0;
}

static uint64_t sum_of(const struct usage *u)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < USAGE_REASONS; i++)
		sum += u->reasons[i];
	return sum;
}

static struct usage look(void)
{
	struct usage u;

	account_read(&a, &map, &u);
	assert_int_equal(u.hit + u.miss, u.asked);
	assert_int_equal(sum_of(&u), u.miss);
	assert_true(u.shared <= u.hit);
	return u;
}

/* As the library counts, before it leaves a record. */
static void count(uint64_t hit, uint64_t miss)
{
	head.counter[COUNTER_LOOKUPS]++;
	head.counter[COUNTER_ASKED_TOKENS] += hit + miss;
	head.counter[COUNTER_HIT_TOKENS] += hit;
	head.counter[COUNTER_MISS_TOKENS] += miss;
}

static void record(uint64_t hit, uint64_t missed, enum miss_reason why, uint64_t tail)
{
	struct lookup l = {
		.hit = hit,
		.missed = missed,
		.tail = tail,
		.why = why,
		.why_tail = MISS_PARTIAL_BLOCK,
	};

	account_book(&a, &map, &l);
}

static void an_honest_client(void **state)
{
	struct usage u;

	count(70, 30);
	record(70, 29, MISS_EVICTED, 1);
	count(0, 16);
	record(0, 0, MISS_UNKNOWN, 16);
	head.counter[COUNTER_SHARED_TOKENS] = 20;
	head.counter[COUNTER_RACED] = 1;
	u = look();
	assert_int_equal(u.lookups, 2);
	assert_int_equal(u.asked, 116);
	assert_int_equal(u.hit, 70);
	assert_int_equal(u.shared, 20);
	assert_int_equal(u.raced, 1);
	assert_int_equal(u.reasons[MISS_EVICTED], 29);
	assert_int_equal(u.reasons[MISS_PARTIAL_BLOCK], 17);
	account_settle(&a, &map);
	assert_int_equal(look().asked, 116);
	assert_int_equal(look().reasons[MISS_UNKNOWN], 0);
}

static void what_no_record_tells_is_unknown(void **state)
{
	count(100, 40);
	count(10, 5);
	record(10, 4, MISS_COLD, 1);
	/* The other record may still come. */
	assert_int_equal(look().asked, 15);
	account_settle(&a, &map);
	assert_int_equal(look().hit, 110);
	assert_int_equal(look().reasons[MISS_UNKNOWN], 40);
	assert_int_equal(look().reasons[MISS_COLD], 4);
}

/* It was on its way when others were lost: it is not counted twice. */
static void a_record_that_comes_after_all(void **state)
{
	struct lookup l = { .hit = 100, .missed = 39, .tail = 1, .why = MISS_COLD };

	count(100, 40);
	account_settle(&a, &map);
	account_book(&a, &map, &l);
	assert_int_equal(l.hit + l.missed + l.tail, 0);
	assert_int_equal(look().asked, 140);
	assert_int_equal(look().reasons[MISS_UNKNOWN], 40);
}

static void records_without_counters_do_not_count(void **state)
{
	record(1000, 1000, MISS_COLD, 1000);
	assert_int_equal(look().asked, 0);
	count(10, 20);
	record(1000, 15, MISS_COLD, 1000);
	assert_int_equal(look().hit, 10);
	assert_int_equal(look().reasons[MISS_COLD], 15);
	assert_int_equal(look().reasons[MISS_PARTIAL_BLOCK], 5);
}

static void counters_that_step_back(void **state)
{
	count(100, 40);
	record(100, 40, MISS_COLD, 0);
	memset(&head, 0, sizeof(head));
	account_settle(&a, &map);
	assert_int_equal(look().asked, 140);
	record(50, 50, MISS_COLD, 0);
	assert_int_equal(look().asked, 140);
}

static void lookups_by_message(void **state)
{
	struct lookup l = { .hit = 32, .missed = 16, .why = MISS_FLUSHED };

	account_book(&a, NULL, &l);
	assert_int_equal(look().lookups, 1);
	assert_int_equal(look().hit, 32);
	assert_int_equal(look().reasons[MISS_FLUSHED], 16);
	count(5, 6);
	record(5, 5, MISS_COLD, 1);
	assert_int_equal(look().asked, 59);
	account_settle(&a, &map);
	assert_int_equal(look().reasons[MISS_UNKNOWN], 0);
	l = (struct lookup){ .hit = UINT64_C(1) << 48, .missed = 1 };
	account_book(&a, NULL, &l);
	assert_int_equal(l.hit + l.missed, 0);
	assert_int_equal(look().asked, 59);
}

/* Garbage in counters and records, in any order. */
static void a_client_that_lies(void **state)
{
	uint64_t seed = 1;

	for (unsigned int i = 0; i < 100000; i++) {
		uint64_t r = mix64(seed++), before = look().asked;
		unsigned int shift = (unsigned int)(r >> 8 & 63);

		switch (r & 7) {
		case 0:
			account_settle(&a, &map);
			break;
		case 1:
		case 2:
			record(r >> shift, mix64(r) >> shift, MISS_COLD, mix64(~r) >> shift);
			break;
		default:
			head.counter[r >> 16 & 7] = mix64(seed++) >> shift;
			break;
		}
		assert_true(look().asked >= before);
	}
	assert_true(look().asked > 0);
}

static void sums_never_run_over(void **state)
{
	struct usage sum = { 0 }, u;

	for (unsigned int c = 0; c < COUNTER_MAX; c++)
		head.counter[c] = UINT64_MAX;
	account_settle(&a, &map);
	u = look();
	for (unsigned int i = 0; i < 100000; i++) {
		usage_add(&sum, &u);
		assert_int_equal(sum.hit + sum.miss, sum.asked);
		assert_int_equal(sum_of(&sum), sum.miss);
	}
	assert_true(sum.asked >= u.asked && sum.asked <= UINT64_C(1) << 63);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_honest_client, setup),
		cmocka_unit_test_setup(what_no_record_tells_is_unknown, setup),
		cmocka_unit_test_setup(a_record_that_comes_after_all, setup),
		cmocka_unit_test_setup(records_without_counters_do_not_count, setup),
		cmocka_unit_test_setup(counters_that_step_back, setup),
		cmocka_unit_test_setup(lookups_by_message, setup),
		cmocka_unit_test_setup(a_client_that_lies, setup),
		cmocka_unit_test_setup(sums_never_run_over, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
