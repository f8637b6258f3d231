/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes from headers of GGUF files. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/fuzz/gguf_file.h"
#include "tools/kvpoolctl/gguf.h"

static struct gguf parse(const struct gguf_file *f)
{
	const char *why = "";
	struct gguf g;

	assert_int_equal(gguf_parse(f->data, f->n, &g, &why), 0);
	return g;
}

static void expect_refused(const struct gguf_file *f, const char *part)
{
	struct gguf g = { .window = 42 };
	const char *why = NULL;

	assert_true(gguf_parse(f->data, f->n, &g, &why) < 0);
	assert_non_null(strstr(why, part));
	assert_int_equal(g.window, 42);
}

static void test_llama(void **state)
{
	struct gguf_file f = gguf_file_llama();
	struct gguf g = parse(&f);

	assert_string_equal(g.architecture, "llama");
	assert_int_equal(g.shape.layers, 32);
	assert_int_equal(g.shape.kv_heads, 8);
	assert_int_equal(g.shape.layer_heads, 32 * 8);
	assert_int_equal(g.shape.head_dim_k, 128);
	assert_int_equal(g.shape.head_dim_v, 128);
	assert_int_equal(g.window, 0);
}

static void test_lengths_and_window(void **state)
{
	struct gguf_file f = gguf_file_llama();
	struct gguf g;

	gguf_file_u32(&f, "llama.attention.key_length", 256);
	gguf_file_u32(&f, "llama.attention.value_length", 64);
	gguf_file_u32(&f, "llama.attention.sliding_window", 512);
	g = parse(&f);
	assert_int_equal(g.shape.head_dim_k, 256);
	assert_int_equal(g.shape.head_dim_v, 64);
	assert_int_equal(g.window, 512);
}

/* Without K/V heads of their own, all heads have K/V. */
static void test_every_head(void **state)
{
	struct gguf_file f;

	gguf_file_begin(&f);
	gguf_file_text(&f, "general.architecture", "gpt2");
	gguf_file_u32(&f, "gpt2.block_count", 12);
	gguf_file_u32(&f, "gpt2.embedding_length", 768);
	gguf_file_u32(&f, "gpt2.attention.head_count", 12);
	assert_int_equal(parse(&f).shape.kv_heads, 12);
	assert_int_equal(parse(&f).shape.head_dim_k, 64);
}

static void test_heads_by_layer(void **state)
{
	static const uint32_t heads[] = { 8, 0, 4 };
	struct gguf_file f;
	struct gguf g;

	gguf_file_begin(&f);
	gguf_file_text(&f, "general.architecture", "mix");
	gguf_file_u32(&f, "mix.block_count", 3);
	gguf_file_u32(&f, "mix.attention.key_length", 64);
	gguf_file_u32(&f, "mix.attention.value_length", 64);
	gguf_file_array(&f, "mix.attention.head_count_kv", heads, ARRAY_SIZE(heads));
	g = parse(&f);
	assert_int_equal(g.shape.kv_heads, 0);
	assert_int_equal(g.shape.layer_heads, 12);
	/* Heads for another number of layers than there are. */
	gguf_file_u32(&f, "mix.block_count", 4);
	expect_refused(&f, "another number of layers");
}

static void test_latent(void **state)
{
	struct gguf_file f;
	struct gguf g;

	gguf_file_begin(&f);
	gguf_file_text(&f, "general.architecture", "deepseek2");
	gguf_file_u32(&f, "deepseek2.block_count", 61);
	gguf_file_u32(&f, "deepseek2.embedding_length", 7168);
	gguf_file_u32(&f, "deepseek2.attention.head_count", 128);
	gguf_file_u32(&f, "deepseek2.attention.kv_lora_rank", 512);
	gguf_file_u32(&f, "deepseek2.rope.dimension_count", 64);
	g = parse(&f);
	assert_int_equal(g.shape.layer_heads, 61);
	assert_int_equal(g.shape.head_dim_k, 576);
	assert_int_equal(g.shape.head_dim_v, 0);
}

/* Every shorter header is refused, and nothing behind its end is read. */
static void test_cut(void **state)
{
	struct gguf_file f = gguf_file_llama();

	for (size_t n = 0; n < f.n; n++) {
		uint8_t *copy = malloc(n + 1);
		const char *why;
		struct gguf g;

		assert_non_null(copy);
		memcpy(copy, f.data, n);
		assert_true(gguf_parse(copy, n, &g, &why) < 0);
		free(copy);
	}
}

static void test_lies(void **state)
{
	static const uint64_t huge = UINT64_MAX, many = UINT64_MAX / 4 + 2;
	struct gguf_file f = gguf_file_llama();
	uint8_t array[12] = { 4 };

	gguf_file_raw(&f, "a", 8, &huge, sizeof(huge));
	expect_refused(&f, "damaged");
	f = gguf_file_llama();
	memcpy(array + 4, &many, sizeof(many)); /* x 4 bytes is little again in 64 bits */
	gguf_file_raw(&f, "a", 9, array, sizeof(array));
	expect_refused(&f, "damaged");
	f = gguf_file_llama();
	gguf_file_raw(&f, "a", 13, &huge, sizeof(huge));
	expect_refused(&f, "damaged");
	f = gguf_file_llama();
	gguf_file_raw(&f, "llama.block_count", 5, &huge, 4); /* -1 */
	expect_refused(&f, "damaged");
	f = gguf_file_llama();
	memcpy(f.data + 16, &huge, sizeof(huge));
	expect_refused(&f, "damaged");
}

/* Arrays in arrays are followed only so far. */
static void test_nested(void **state)
{
	struct gguf_file f = gguf_file_llama();
	uint8_t nest[12 * 40];

	for (size_t i = 0; i < sizeof(nest); i += 12)
		memcpy(nest + i, "\x09\0\0\0\x01\0\0\0\0\0\0\0", 12);
	gguf_file_raw(&f, "a", 9, nest, sizeof(nest));
	expect_refused(&f, "damaged");
}

static void test_no_model(void **state)
{
	struct gguf_file f = gguf_file_llama();

	f.data[0] = 'X';
	expect_refused(&f, "is no GGUF file");
	f = gguf_file_llama();
	f.data[4] = 9;
	expect_refused(&f, "version");
	gguf_file_begin(&f);
	expect_refused(&f, "layers");
	gguf_file_text(&f, "general.architecture", "x");
	gguf_file_u32(&f, "x.block_count", 3);
	expect_refused(&f, "K/V heads");
	gguf_file_u32(&f, "x.attention.head_count", 3);
	expect_refused(&f, "how large its heads are");
}

static void test_file(void **state)
{
	struct gguf_file f = gguf_file_llama();
	char path[] = "/tmp/kvpool-test-XXXXXX";
	int fd = mkstemp(path);
	struct gguf g;

	assert_true(fd >= 0);
	assert_int_equal(gguf_open(path, &g), EXIT_FAILED);
	assert_int_equal(write(fd, f.data, f.n), f.n);
	close(fd);
	assert_int_equal(gguf_open(path, &g), EXIT_OK);
	assert_int_equal(g.shape.layers, 32);
	unlink(path);
	assert_int_equal(gguf_open(path, &g), EXIT_FAILED);
	assert_int_equal(gguf_open("/tmp", &g), EXIT_FAILED);
	assert_int_equal(gguf_open("/dev/zero", &g), EXIT_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_llama),      cmocka_unit_test(test_lengths_and_window),
		cmocka_unit_test(test_every_head), cmocka_unit_test(test_heads_by_layer),
		cmocka_unit_test(test_latent),     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_lies),       cmocka_unit_test(test_nested),
		cmocka_unit_test(test_no_model),   cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
