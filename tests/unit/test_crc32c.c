/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C by every variant that this processor runs, combining checksums, and the choice of a
 * variant.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "kernels/copy_ops.h"
#include "kernels/crc32c.h"
#include "tests/unit/crc32c_reference.h"

#define LONGEST 4097
#define LARGE   100000
#define ALIGN   128 /* alignments to try */

static uint8_t pattern[LARGE];

static int fill_pattern(void **state)
{
	reference_fill(pattern, sizeof(pattern), 1);
	return 0;
}

/* RFC 3720, B.4; the last one is a SCSI READ (10) command. */
static const uint8_t read_command[48] = {
	[0] = 0x01, [1] = 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14,
	[31] = 0x18, [32] = 0x28, [40] = 0x02,
};

static void check_vectors(uint32_t (*crc)(uint32_t, const void *, size_t))
{
	uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];

	memset(ones, 0xff, sizeof(ones));
	for (unsigned int i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	assert_int_equal(crc(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(crc(0, ones, 32), 0x62a8ab43);
	assert_int_equal(crc(0, up, 32), 0x46dd794e);
	assert_int_equal(crc(0, down, 32), 0x113fdb5c);
	assert_int_equal(crc(0, read_command, 48), 0xd9963a56);
	assert_int_equal(crc(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc(0, NULL, 0), 0);
	assert_int_equal(crc(0x12345678, NULL, 0), 0x12345678);
}

static void known_vectors(void **state)
{
	const struct kvp_copy_ops *ops;

	check_vectors(crc32c);
	check_vectors(reference_crc32c);
	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
		check_vectors(ops->crc);
}

/* The same bytes at every alignment in turn, so that one reference serves all variants. */
static void every_short_length(void **state)
{
	const struct kvp_copy_ops *ops;
	uint8_t moved[LONGEST + ALIGN];

	for (size_t n = 0; n <= LONGEST; n++) {
		uint32_t expected = reference_crc32c(0, pattern, n);
		size_t shift = n * 37 % ALIGN;

		memcpy(moved + shift, pattern, n);
		for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
			assert_int_equal(ops->crc(0, moved + shift, n), expected);
	}
}

static void large_lengths(void **state)
{
	const struct kvp_copy_ops *ops;
	uint64_t seed = 2;

	for (int round = 0; round < 100; round++) {
		size_t from = reference_random(&seed) % LARGE;
		size_t n = reference_random(&seed) % (LARGE - from + 1);
		uint32_t start = (uint32_t)reference_random(&seed);
		uint32_t expected = reference_crc32c(start, pattern + from, n);

		for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
			assert_int_equal(ops->crc(start, pattern + from, n), expected);
	}
}

static void in_two_parts(void **state)
{
	const struct kvp_copy_ops *ops;
	uint32_t expected = reference_crc32c(0, pattern, LONGEST);

	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++)
		for (size_t cut = 0; cut <= LONGEST; cut++) {
			uint32_t first = ops->crc(0, pattern, cut);

			assert_int_equal(ops->crc(first, pattern + cut, LONGEST - cut), expected);
		}
}

static void combining(void **state)
{
	uint32_t expected = crc32c(0, pattern, LONGEST);
	uint64_t seed = 3;

	for (size_t cut = 0; cut <= LONGEST; cut++)
		assert_int_equal(crc32c_combine(crc32c(0, pattern, cut),
						crc32c(0, pattern + cut, LONGEST - cut),
						LONGEST - cut),
				 expected);
	expected = crc32c(0, pattern, LARGE);
	for (int round = 0; round < 1000; round++) {
		size_t cut = reference_random(&seed) % (LARGE + 1);

		assert_int_equal(crc32c_combine(crc32c(0, pattern, cut),
						crc32c(0, pattern + cut, LARGE - cut), LARGE - cut),
				 expected);
	}
}

/* Lengths that nobody can check against bytes: what follows in one step follows in two. */
static void combining_huge_lengths(void **state)
{
	uint32_t crc = 0xdeadbeef;

	for (unsigned int bits = 0; bits < 63; bits++) {
		uint64_t half = (uint64_t)1 << bits;
		uint32_t twice = crc32c_combine(crc32c_combine(crc, 0, half), 0, half);

		assert_int_equal(crc32c_combine(crc, 0, 2 * half), twice);
		assert_int_not_equal(twice, crc);
	}
	assert_int_equal(crc32c_combine(crc, 0x1234, 0), crc ^ 0x1234);
}

static void names_are_found(void **state)
{
	const struct kvp_copy_ops *ops, *last = NULL;

	for (unsigned int i = 0; (ops = kvp_copy_ops_nth(i)); i++) {
		assert_ptr_equal(kvp_copy_ops_by_name(ops->name), ops);
		last = ops;
	}
	assert_ptr_equal(last, &kvp_copy_ops_portable);
	assert_ptr_equal(kvp_copy_ops_cpu(), kvp_copy_ops_nth(0));
	assert_null(kvp_copy_ops_by_name("none"));
	assert_null(kvp_copy_ops_by_name(""));
}

static void *choose(void *ret)
{
	*(const struct kvp_copy_ops **)ret = kvp_copy_ops_cpu();
	return NULL;
}

static void threads_choose_alike(void **state)
{
	const struct kvp_copy_ops *chosen[8] = { NULL };
	pthread_t threads[ARRAY_SIZE(chosen)];

	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, choose, &chosen[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_ptr_equal(chosen[i], kvp_copy_ops_cpu());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_vectors),
		cmocka_unit_test(every_short_length),
		cmocka_unit_test(large_lengths),
		cmocka_unit_test(in_two_parts),
		cmocka_unit_test(combining),
		cmocka_unit_test(combining_huge_lengths),
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(threads_choose_alike),
	};

	return cmocka_run_group_tests(tests, fill_pattern, NULL);
}
