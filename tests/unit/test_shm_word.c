/* SPDX-License-Identifier: Apache-2.0 */
/* The words of shm/word.h: every field comes back, and none touches its neighbour. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "shm/control.h"
#include "shm/word.h"

static void descriptor_word(void **state)
{
	static const uint64_t gens[] = { 0, 1, 0xffff, 0x10000, WORD_GEN_MAX };

	for (unsigned int g = 0; g < ARRAY_SIZE(gens); g++)
		for (unsigned int t = 0; t < 256; t += 51)
			for (int s = DESC_FREE; s <= DESC_STATE_MAX; s++) {
				uint64_t w = word_make((enum desc_state)s, t, gens[g]);

				assert_int_equal(word_state(w), s);
				assert_int_equal(word_tiers(w), t);
				assert_int_equal(word_gen(w), gens[g]);
				assert_int_equal(word_flags(w), 0);
			}
}

static void with_state_keeps_the_rest(void **state)
{
	uint64_t w = word_make(DESC_COMMITTED, 0xa5, 0x123456789abc) | 9u << WORD_FLAG_SHIFT;
	uint64_t v = word_with_state(w, DESC_EVICTING);

	assert_int_equal(word_state(v), DESC_EVICTING);
	assert_int_equal(word_flags(v), 9);
	assert_int_equal(v & ~15ull, w & ~15ull);
	assert_int_equal(word_with_state(v, DESC_COMMITTED), w);
}

static void readable_needs_state_and_tier(void **state)
{
	for (int s = DESC_FREE; s <= DESC_STATE_MAX; s++)
		for (int t = 0; t < TIER_MEMORY_MAX; t++) {
			uint64_t w = word_make((enum desc_state)s, 1u << t, 5);

			for (int want = 0; want < TIER_MEMORY_MAX; want++)
				assert_int_equal(word_readable(w, (enum tier)want),
						 s == DESC_COMMITTED && t == want);
		}
}

static void index_entry(void **state)
{
	static const uint32_t descs[] = { 0, 1, 0x7fffffff, CONTROL_BLOCKS_MAX - 1 };

	for (unsigned int i = 0; i < ARRAY_SIZE(descs); i++) {
		uint64_t e = entry_make(0xfffe, 0x123450007, descs[i]);

		assert_int_not_equal(e, 0);
		assert_int_equal(entry_tag(e), 0xfffe);
		assert_int_equal(entry_gen(e), 7);
		assert_int_equal(entry_desc(e), descs[i]);
		assert_int_not_equal(entry_make(0, 0, descs[i]), 0);
	}
	/* An entry that names nobody is out of every region's range. */
	assert_int_equal(entry_desc(UINT64_C(0xffff) << 48), DESC_NONE);
}

static void hazard_word(void **state)
{
	uint64_t h = hazard_make(CONTROL_BLOCKS_MAX - 1, TIER_DEVICE, 0xffffff);

	assert_int_equal(hazard_desc(h), CONTROL_BLOCKS_MAX - 1);
	assert_int_equal(h >> 40, 0xffffff); /* span */
	assert_int_equal(hazard_tier(h), TIER_DEVICE);
	assert_int_not_equal(hazard_make(0, TIER_HOST, 0), 0);
	assert_int_equal(hazard_desc(0), DESC_NONE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor_word),
		cmocka_unit_test(with_state_keeps_the_rest),
		cmocka_unit_test(readable_needs_state_and_tier),
		cmocka_unit_test(index_entry),
		cmocka_unit_test(hazard_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
