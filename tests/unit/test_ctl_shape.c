/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of K/V against numbers that are known of models, and of formats. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "tools/kvpoolctl/shape.h"

static struct shape make(const char *type, uint64_t layers, uint64_t heads, uint64_t dim)
{
	const struct shape_type *t = shape_type(type);

	assert_non_null(t);
	return (struct shape){ layers, heads, layers * heads, dim, dim, t, t };
}

static uint64_t token_bytes(const struct shape *s)
{
	const char *why;
	uint64_t n;

	assert_int_equal(shape_token_bytes(s, &n, &why), 0);
	return n;
}

/* model, layers, K/V heads, head_dim, type, tokens, bytes = 2 x L x H x D x b x T */
static void test_models(void **state)
{
	static const struct {
		const char *model;
		uint64_t layers, heads, dim;
		const char *type;
		uint64_t tokens, bytes;
	} rows[] = {
		{ "llama2-70b as MHA", 80, 64, 128, "f16", 4096, 10737418240 },
		{ "llama2-70b", 80, 8, 128, "f16", 4096, 1342177280 },
		{ "llama2-70b", 80, 8, 128, "f16", 1, 327680 },
		{ "llama3.1-70b", 80, 8, 128, "bf16", 131072, 42949672960 },
		{ "llama2-7b", 32, 32, 128, "f16", 4096, 2147483648 },
		{ "llama3.1-8b", 32, 8, 128, "f16", 1, 131072 },
		{ "one layer of 512", 1, 8, 64, "f32", 3, 12288 },
		{ "falcon-7b, one head", 32, 1, 64, "f16", 2048, 16777216 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct shape s = make(rows[i].type, rows[i].layers, rows[i].heads, rows[i].dim);

		assert_int_equal(token_bytes(&s) * rows[i].tokens, rows[i].bytes);
	}
}

/* Hundredths of a bit that an element takes, with its scales, in heads of 128. */
static void test_types(void **state)
{
	static const struct {
		const char *type;
		unsigned int bits;
	} rows[] = {
		{ "f32", 3200 },  { "f16", 1600 },      { "bf16", 1600 }, { "fp8", 800 },
		{ "int8", 800 },  { "int8_head", 825 }, { "q8_0", 850 },  { "q5_1", 600 },
		{ "q5_0", 550 },  { "q4_1", 500 },      { "q4_0", 450 },  { "iq4_nl", 450 },
		{ "kivi4", 500 }, { "nvfp4", 450 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct shape s = make(rows[i].type, 32, 8, 128);

		assert_int_equal(token_bytes(&s) * 800, 2ull * 32 * 8 * 128 * rows[i].bits);
	}
	assert_null(shape_type("f17"));
}

static void test_mixed_types(void **state)
{
	struct shape s = make("q8_0", 32, 8, 128);

	s.v = shape_type("q4_0");
	assert_int_equal(token_bytes(&s), 32 * 8 * (128 / 32 * 34 + 128 / 32 * 18));
	s.head_dim_v = 64;
	assert_int_equal(token_bytes(&s), 32 * 8 * (128 / 32 * 34 + 64 / 32 * 18));
}

/* MLA: a latent of 512 and 64 elements of RoPE for each layer, V is a part of it. */
static void test_latent(void **state)
{
	struct shape s = make("bf16", 61, 1, 512 + 64);

	s.head_dim_v = 0;
	assert_int_equal(token_bytes(&s), 61 * (512 + 64) * 2);
	s.k = s.v = shape_type("int8_head");
	assert_int_equal(token_bytes(&s), 61 * (512 + 64 + 4));
}

/* ggml quantises rows of all heads: a head alone need not be a multiple of 32. */
static void test_rows(void **state)
{
	struct shape s = make("q8_0", 2, 2, 80);
	const char *why;
	uint64_t n = 42;

	assert_int_equal(token_bytes(&s), 2 * 2 * 2 * 80 / 32 * 34);
	s = make("q8_0", 2, 1, 80);
	assert_true(shape_token_bytes(&s, &n, &why) < 0);
	assert_int_equal(n, 42);
	s = make("nvfp4", 2, 1, 80);
	assert_int_equal(token_bytes(&s), 2 * 2 * 80 / 16 * 9);
}

/* Layers with different numbers of heads. */
static void test_layer_heads(void **state)
{
	struct shape s = make("f16", 3, 0, 64);

	s.layer_heads = 8 + 0 + 4;
	assert_int_equal(token_bytes(&s), 2 * 12 * 64 * 2);
}

static void test_too_large(void **state)
{
	struct shape s = make("f32", 65536, 65536, 1048576);
	const char *why;
	uint64_t n;

	assert_int_equal(token_bytes(&s), 2ull << (16 + 16 + 20 + 2));
	s.layer_heads = UINT64_MAX / 2;
	assert_true(shape_token_bytes(&s, &n, &why) < 0);
}

static void test_pool(void **state)
{
	/* Granules of 64 MiB, each an extent of 12 blocks of 5 MiB. */
	assert_int_equal(shape_pool_blocks(GIB(8), MIB(5)), 128 * 12);
	/* Of 1 MiB: extents of 20, and the last four are none. */
	assert_int_equal(shape_pool_blocks(MIB(224), MIB(5)), 11 * 4);
	/* What is no multiple of 4 KiB takes as much as the next one. */
	assert_int_equal(shape_pool_blocks(MIB(64), 4097), 8192);
	assert_int_equal(shape_pool_blocks(MIB(64), KIB(4)), 16384);
	assert_int_equal(shape_pool_blocks(KIB(3), KIB(4)), 0);
	assert_int_equal(shape_pool_blocks(MIB(64), 0), 0);
	assert_int_equal(shape_pool_blocks(MIB(64), UINT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),      cmocka_unit_test(test_types),
		cmocka_unit_test(test_mixed_types), cmocka_unit_test(test_latent),
		cmocka_unit_test(test_rows),        cmocka_unit_test(test_layer_heads),
		cmocka_unit_test(test_too_large),   cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
