/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that went: what is remembered, for how long, and what a full ring forgets. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
#include "daemon/ghost.h"

#define BLOCKS 16384u
#define RING   2048u
#define NOW    (100 * NSEC_PER_SEC)

static const struct keyhash hash = { { 0xd6e8feb86659fd93, 4711, 0x9e3779b97f4a7c15, 5 } };

static struct ghost_ring g;

static int setup(void **state)
{
	assert_int_equal(ghost_init(&g, BLOCKS, &hash), 0);
	return 0;
}

static int teardown(void **state)
{
	ghost_fini(&g);
	ghost_fini(&g); /* twice is harmless */
	return 0;
}

static struct block_key key_of(uint64_t n)
{
	return (struct block_key){ .w = { mix64(n), mix64(~n), n, 7 } };
}

static void note(uint64_t n, enum miss_reason why, uint64_t now)
{
	struct block_key key = key_of(n);

	ghost_note(&g, &key, (uint32_t)n % 5, why, now);
}

static enum miss_reason why(uint64_t n)
{
	struct block_key key = key_of(n);
	struct ghost_found found;

	return ghost_find(&g, &key, &found) ? found.why : MISS_NONE;
}

static void its_size_follows_from_the_blocks(void **state)
{
	assert_int_equal(ghost_entries(BLOCKS), RING);
	assert_int_equal(ghost_entries(1), 1024);
	assert_int_equal(ghost_entries(1u << 20), 1u << 17);
	assert_int_equal(ghost_entries((1u << 20) - 1), 1u << 16);
	assert_int_equal(sizeof(*g.entry) * (g.mask + 1) + sizeof(*g.newest) * (g.hash_mask + 1),
			 18 * RING);
}

static void an_empty_ring_knows_nothing(void **state)
{
	struct block_key zero = { .w = { 0 } };
	struct ghost_found found = { .ns = 99 };

	for (uint64_t n = 0; n < 10000; n++)
		assert_int_equal(why(n), MISS_NONE);
	assert_int_equal(ghost_find(&g, &zero, &found), 0);
	assert_int_equal(found.ns, 99);
}

static void a_note_says_why_when_and_where(void **state)
{
	struct block_key key = key_of(13);
	struct ghost_found found;

	note(13, MISS_EXPIRED, NOW);
	note(14, MISS_FLUSHED, NOW);
	assert_int_equal(ghost_find(&g, &key, &found), 1);
	assert_int_equal(found.why, MISS_EXPIRED);
	assert_int_equal(found.ns, 3);
	assert_true(found.when <= NOW && NOW - found.when < 70 * NSEC_PER_MSEC);
	assert_int_equal(why(14), MISS_FLUSHED);
	assert_int_equal(why(15), MISS_NONE);
}

static void every_word_of_a_key_counts(void **state)
{
	struct block_key key = key_of(1);
	struct ghost_found found;

	note(1, MISS_EVICTED, NOW);
	for (unsigned int i = 0; i < KEY_WORDS; i++) {
		struct block_key other = key;

		other.w[i] ^= 1;
		assert_int_equal(ghost_find(&g, &other, &found), 0);
	}
}

static void a_large_namespace_number_is_none(void **state)
{
	struct block_key key = key_of(1);
	struct ghost_found found;

	ghost_note(&g, &key, 65535, MISS_EVICTED, NOW);
	assert_int_equal(ghost_find(&g, &key, &found), 1);
	assert_int_equal(found.ns, GHOST_NS_OTHER);
	assert_int_equal(found.why, MISS_EVICTED);
}

static void the_latest_note_of_a_key_counts(void **state)
{
	note(1, MISS_EVICTED, NOW);
	note(2, MISS_EVICTED, NOW);
	note(1, MISS_CORRUPT, NOW + NSEC_PER_SEC);
	assert_int_equal(why(1), MISS_CORRUPT);
	assert_int_equal(why(2), MISS_EVICTED);
}

static void exactly_the_oldest_is_forgotten(void **state)
{
	for (uint64_t n = 0; n < 5 * RING; n++) {
		note(n, MISS_EVICTED, NOW);
		assert_int_equal(why(n), MISS_EVICTED);
		if (n >= RING - 1)
			assert_int_equal(why(n - (RING - 1)), MISS_EVICTED);
		if (n >= RING)
			assert_int_equal(why(n - RING), MISS_NONE);
	}
	for (uint64_t n = 0; n < 5 * RING; n++)
		assert_int_equal(why(n), n < 4 * RING ? MISS_NONE : MISS_EVICTED);
}

/* Of a ring that may hold it twice, the model remembers only the latest. */
static void any_order_of_notes_and_renewals(void **state)
{
	static enum miss_reason last[8 * RING];
	static uint64_t at[8 * RING];
	uint64_t seed = 1, written = 0;

	for (uint64_t i = 0; i < 200000; i++) {
		uint64_t n = mix64(seed++) % (8 * RING);
		enum miss_reason w = MISS_COLD + 1 + (enum miss_reason)(mix64(seed++) % 9);
		struct block_key key = key_of(n);
		int there = last[n] && written - at[n] <= RING;

		if (mix64(seed++) % 4) {
			ghost_note(&g, &key, 1, w, NOW);
			at[n] = written++;
		} else {
			ghost_renew(&g, &key, 1, w, NOW);
			if (!there)
				at[n] = written++;
		}
		last[n] = w;
		n = mix64(seed++) % (8 * RING);
		assert_int_equal(why(n), last[n] && written - at[n] <= RING ? last[n] : MISS_NONE);
	}
}

static void a_renewal_costs_no_other_its_place(void **state)
{
	struct block_key key = key_of(RING - 1);

	for (uint64_t n = 0; n < RING; n++)
		note(n, MISS_EVICTED, NOW);
	for (unsigned int i = 0; i < 100; i++)
		ghost_renew(&g, &key, 1, MISS_FULL, NOW);
	assert_int_equal(why(0), MISS_EVICTED);
	assert_int_equal(why(RING - 1), MISS_FULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(its_size_follows_from_the_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_ring_knows_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_note_says_why_when_and_where, setup, teardown),
		cmocka_unit_test_setup_teardown(every_word_of_a_key_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_large_namespace_number_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(the_latest_note_of_a_key_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(exactly_the_oldest_is_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(any_order_of_notes_and_renewals, setup, teardown),
		cmocka_unit_test_setup_teardown(a_renewal_costs_no_other_its_place, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
