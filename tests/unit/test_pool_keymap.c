/* SPDX-License-Identifier: Apache-2.0 */
/* The map of reserved keys, against an array. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "daemon/keymap.h"

#define BLOCKS 1000u

static const struct keyhash hash = { { 0x9e3779b97f4a7c15, 12345, 0xd6e8feb86659fd93, 1 } };

static struct control c;
static struct keymap m;
static uint8_t in[BLOCKS];

static int setup(void **state)
{
	c.desc = calloc(BLOCKS, sizeof(*c.desc));
	assert_non_null(c.desc);
	assert_int_equal(keymap_init(&m, &c, &hash), 0);
	memset(in, 0, sizeof(in));
	return 0;
}

static int teardown(void **state)
{
	keymap_fini(&m);
	keymap_fini(&m); /* twice is harmless */
	free(c.desc);
	return 0;
}

static struct block_key key_of(uint32_t i)
{
	return (struct block_key){ { mix64(i), i, 3, 4 } };
}

static void add(uint32_t d)
{
	struct block_key key = key_of(d);

	memcpy(c.desc[d].key, key.w, sizeof(key));
	assert_int_equal(keymap_reserve(&m), 0);
	keymap_add(&m, &key, d, d % 3 == 0);
	in[d] = 1;
}

static void take(uint32_t d)
{
	struct block_key key = key_of(d);

	assert_int_equal(keymap_remove(&m, &key, d), d % 3 == 0);
	in[d] = 0;
}

static void check_all(void)
{
	uint64_t entries = 0, there = 0;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct block_key key = key_of(i);

		assert_int_equal(keymap_find(&m, &key), in[i] ? i : DESC_NONE);
		there += in[i];
	}
	for (uint64_t i = 0; i <= m.mask; i++)
		entries += m.entry[i] != 0;
	assert_int_equal(entries, there);
	assert_int_equal(m.used, there);
	assert_true(there <= (m.mask + 1) / 4 * 3);
}

static void empty_finds_nothing(void **state)
{
	check_all();
}

static void it_grows_and_shrinks(void **state)
{
	uint64_t small = m.mask;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		add(i);
		assert_true(m.mask == small || m.mask < 4 * (uint64_t)(i + 1));
	}
	check_all();
	for (uint32_t i = 0; i < BLOCKS; i++) {
		take(i);
		assert_true(m.mask == small || m.mask <= 8 * (m.used + 1));
	}
	check_all();
	assert_int_equal(m.mask, small);
}

static void any_order_of_calls(void **state)
{
	uint64_t h = 99;

	for (uint32_t round = 0; round < 40000; round++) {
		uint32_t d;

		h = mix64(h + round);
		d = (uint32_t)(h % BLOCKS);
		if (in[d])
			take(d);
		else
			add(d);
		if (round % 1000 == 0)
			check_all();
	}
	check_all();
}

/* All of a key counts: one word that differs makes another key, and another hash. */
static void keys_that_share_three_words(void **state)
{
	uint64_t places = 0;

	for (uint32_t i = 0; i < 200; i++) {
		struct block_key key;

		memset(c.desc[i].key, 7, sizeof(c.desc[i].key));
		c.desc[i].key[i % 4] = i;
		key = desc_key(&c, i);
		assert_int_equal(keymap_reserve(&m), 0);
		keymap_add(&m, &key, i, 0);
	}
	for (uint32_t i = 0; i < 200; i++) {
		struct block_key key = desc_key(&c, i);

		assert_int_equal(keymap_find(&m, &key), i);
	}
	for (uint64_t i = 0; i <= m.mask; i += 16) {
		int any = 0;

		for (uint64_t k = i; k < i + 16 && k <= m.mask; k++)
			any |= m.entry[k] != 0;
		places += any;
	}
	assert_true(places > 20); /* of 32: they are spread */
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(empty_finds_nothing),
		TEST(it_grows_and_shrinks),
		TEST(any_order_of_calls),
		TEST(keys_that_share_three_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
