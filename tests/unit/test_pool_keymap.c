/* SPDX-License-Identifier: Apache-2.0 */
/* The private map, against an array. */
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

static struct control c;
static struct keymap m;
static uint8_t in[BLOCKS];

static int setup(void **state)
{
	c.desc = calloc(BLOCKS, sizeof(*c.desc));
	assert_non_null(c.desc);
	assert_int_equal(keymap_init(&m, BLOCKS, &c, 12345), 0);
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
	keymap_add(&m, d);
	in[d] = 1;
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
}

static void empty_finds_nothing(void **state)
{
	check_all();
}

static void full_finds_all(void **state)
{
	assert_true(m.mask + 1 >= BLOCKS + BLOCKS / 3);
	for (uint32_t i = 0; i < BLOCKS; i++)
		add(i);
	check_all();
	for (uint32_t i = 0; i < BLOCKS; i++) {
		keymap_remove(&m, i);
		in[i] = 0;
	}
	check_all();
}

static void any_order_of_calls(void **state)
{
	uint64_t h = 99;

	for (uint32_t round = 0; round < 40000; round++) {
		uint32_t d;

		h = mix64(h + round);
		d = (uint32_t)(h % BLOCKS);
		if (in[d]) {
			keymap_remove(&m, d);
			in[d] = 0;
		} else {
			add(d);
		}
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
		memset(c.desc[i].key, 7, sizeof(c.desc[i].key));
		c.desc[i].key[i % 4] = i;
		keymap_add(&m, i);
	}
	for (uint32_t i = 0; i < 200; i++) {
		struct block_key key = desc_key(&c, i);

		assert_int_equal(keymap_find(&m, &key), i);
	}
	for (uint64_t i = 0; i <= m.mask; i += 64) {
		int any = 0;

		for (uint64_t k = i; k < i + 64 && k <= m.mask; k++)
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
		TEST(full_finds_all),
		TEST(any_order_of_calls),
		TEST(keys_that_share_three_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
