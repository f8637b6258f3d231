/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of two descriptors that differ. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "proto/nsdesc.h"
#include "proto/text.h"
#include "tests/fuzz/descriptor.h"

static unsigned int compare(const struct parts *p, const struct parts *q,
			    struct nsdesc_difference *d, unsigned int max)
{
	struct descriptor a = descriptor_good(p), b = descriptor_good(q);

	return nsdesc_compare(a.data, a.n, b.data, b.n, d, max);
}

/* Exactly one field differs, and is told so from both sides. */
static void expect(const struct parts *p, const struct parts *q, const char *field,
		   const char *here, const char *there)
{
	struct nsdesc_difference d[2];

	assert_int_equal(compare(p, q, d, 2), 1);
	assert_string_equal(d[0].field, field);
	assert_string_equal(d[0].here, here);
	assert_string_equal(d[0].there, there);
}

/* Twelve digits of SHA-256 of a text. */
static const char *digits(const char *text)
{
	static char hex[4][13];
	static unsigned int next;
	uint8_t digest[SHA256_BYTES];
	char *out = hex[next++ % 4];

	sha256(text, strlen(text), digest);
	hex_encode(digest, 6, out);
	return out;
}

static void equal_ones_do_not_differ(void **state)
{
	struct nsdesc_difference d = { .field = "untouched" };

	assert_int_equal(compare(&descriptor_full, &descriptor_full, &d, 1), 0);
	assert_int_equal(compare(&descriptor_minimal, &descriptor_minimal, &d, 1), 0);
	assert_string_equal(d.field, "untouched");
}

/* A changed value of each field that may change alone, in the words of both sides. */
static const struct {
	struct part part;
	const char *field, *here, *there;
} changes[] = {
	{ { NSDESC_MODEL, "other" }, "model", "mod\xc3\xa8le 8B", "other" },
	{ { NSDESC_TYPE_K, "f16" }, "type_k", "q8_0", "f16" },
	{ { NSDESC_TYPE_V, "f16" }, "type_v", "q4_0", "f16" },
	{ { NSDESC_LAYERS, .x = 33 }, "layers", "32", "33" },
	{ { NSDESC_KV_HEADS, .x = 1 }, "kv_heads", "8", "1" },
	{ { NSDESC_HEAD_DIM_K, .x = 64 }, "head_dim_k", "128", "64" },
	{ { NSDESC_HEAD_DIM_V, .x = 0 }, "head_dim_v", "128", "0" },
	{ { NSDESC_LAYOUT, "token-major" }, "layout", "layer-major", "token-major" },
	{ { NSDESC_ROTATION, "none" }, "rotation", "hadamard-64", "none" },
	{ { NSDESC_BLOCK_TOKENS, .x = 16 }, "block_tokens", "32", "16" },
	{ { NSDESC_BLOCK_BYTES, .x = 4096 }, "block_bytes", "2097152", "4096" },
	{ { NSDESC_ROPE_TYPE, "norm" }, "rope_type", "neox", "norm" },
	{ { NSDESC_ROPE_FREQ_BASE, .x = 10000 }, "rope_freq_base", "500000", "10000" },
	{ { NSDESC_ROPE_FREQ_SCALE, .x = 0.1 }, "rope_freq_scale", "0.25", "0.1" },
	{ { NSDESC_ROPE_SCALING, "linear" }, "rope_scaling", "yarn factor=4", "linear" },
	{ { NSDESC_TP_RANK, .x = 0 }, "tp_rank", "3", "0" },
	{ { NSDESC_TP_SIZE, .x = 8 }, "tp_size", "4", "8" },
	{ { NSDESC_ENGINE, "example-2" }, "engine", "example-1", "example-2" },
	{ { NSDESC_GROUP_N, .x = 64 }, "group_n", "128", "64" },
	{ { NSDESC_GROUP_INDEX, .x = 0 }, "group_index", "1", "0" },
	{ { NSDESC_GROUP_COUNT, .x = 3 }, "group_count", "2", "3" },
	{ { NSDESC_SALT, "team-8", .n = 6 }, "salt", "(set)", "(another)" },
	{ { NSDESC_EXTRA, "flash_attn=0" }, "extra", "flash_attn=1", "flash_attn=0" },
};

static void each_changed_field_is_named(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct parts p = descriptor_full;

		part_set(&p, changes[i].part);
		expect(&descriptor_full, &p, changes[i].field, changes[i].here, changes[i].there);
	}
}

static void each_absent_field_is_named(void **state)
{
	static const enum nsdesc_tag alone[] = { NSDESC_ROTATION, NSDESC_ROPE_TYPE,
						 NSDESC_ROPE_FREQ_BASE, NSDESC_ROPE_FREQ_SCALE,
						 NSDESC_ROPE_SCALING, NSDESC_SALT };
	static const char *const shown[] = { "hadamard-64", "neox", "500000", "0.25",
					     "yarn factor=4", "(set)" };

	for (size_t i = 0; i < ARRAY_SIZE(alone); i++) {
		const char *name = nsdesc_field_find(alone[i])->name;
		struct parts p = descriptor_full;

		part_remove(&p, alone[i]);
		expect(&descriptor_full, &p, name, shown[i], "-");
		expect(&p, &descriptor_full, name, "-", shown[i]);
	}
}

static void pairs_are_two_fields(void **state)
{
	struct parts p = descriptor_full;
	struct nsdesc_difference d[4];

	part_remove(&p, NSDESC_TP_RANK);
	part_remove(&p, NSDESC_TP_SIZE);
	assert_int_equal(compare(&p, &descriptor_full, d, 4), 2);
	assert_string_equal(d[0].field, "tp_rank");
	assert_string_equal(d[1].field, "tp_size");
	assert_string_equal(d[1].here, "-");
	assert_string_equal(d[1].there, "4");
	p = descriptor_full;
	part_remove(&p, NSDESC_GROUP_RULE);
	part_remove(&p, NSDESC_GROUP_N);
	assert_int_equal(compare(&descriptor_full, &p, d, 4), 2);
	assert_string_equal(d[0].field, "group_rule");
	assert_string_equal(d[0].here, "1");
	assert_string_equal(d[0].there, "-");
	assert_string_equal(d[1].field, "group_n");
}

static void weights_are_shortened(void **state)
{
	struct parts p = descriptor_full;

	part_set(&p, (struct part){ NSDESC_WEIGHTS, "other weights" });
	expect(&descriptor_full, &p, "weights", digits("weights"), digits("other weights"));
}

/* Twelve digits would show no difference. */
static void close_digests_are_shown_whole(void **state)
{
	struct descriptor a = descriptor_good(&descriptor_minimal), b = a;
	struct nsdesc_difference d;
	size_t last = 8 + strlen("tiny") + 8 + 31;
	struct nsdesc_item it;

	b.data[last] ^= 1;
	assert_int_equal(nsdesc_compare(a.data, a.n, b.data, b.n, &d, 1), 1);
	assert_string_equal(d.field, "weights");
	assert_int_equal(strlen(d.here), 64);
	assert_int_equal(strlen(d.there), 64);
	assert_memory_equal(d.here, digits("weights"), 12);
	assert_string_not_equal(d.here, d.there);

	a = descriptor_good(&descriptor_full);
	b = a;
	last = nsdesc_next(b.data, b.n, 0, &it);
	last = nsdesc_next(b.data, b.n, last, &it);
	b.data[last + 8 + 31] ^= 1;
	assert_int_equal(nsdesc_compare(a.data, a.n, b.data, b.n, &d, 1), 1);
	assert_string_equal(d.field, "adapter");
	assert_string_not_equal(d.here, d.there);
}

static void adapters_are_counted(void **state)
{
	struct parts none = descriptor_full, one = descriptor_full, other = descriptor_full;
	char text[64];

	part_remove(&none, NSDESC_ADAPTER);
	one = none;
	part_add(&one, (struct part){ NSDESC_ADAPTER, "domain", 1.0 });
	snprintf(text, sizeof(text), "1 adapter, with %s at 1", digits("domain"));
	expect(&none, &one, "adapter", "-", text);
	snprintf(text, sizeof(text), "2 adapters, with %s at 0.5", digits("style"));
	expect(&one, &descriptor_full, "adapter", "1 adapter", text);
	part_remove(&other, NSDESC_ADAPTER);
	part_add(&other, (struct part){ NSDESC_ADAPTER, "style", 0.75 });
	part_add(&other, (struct part){ NSDESC_ADAPTER, "domain", 1.0 });
	{
		char there[64];

		snprintf(there, sizeof(there), "2 adapters, with %s at 0.75", digits("style"));
		expect(&descriptor_full, &other, "adapter", text, there);
	}
}

static void extras_are_told_by_name(void **state)
{
	struct parts p = descriptor_full;

	part_remove(&p, NSDESC_EXTRA);
	expect(&p, &descriptor_full, "extra", "-", "flash_attn=1");
	expect(&descriptor_full, &p, "extra", "flash_attn=1", "-");
	part_add(&p, (struct part){ NSDESC_EXTRA, "flash_attn=1" });
	expect(&descriptor_full, &p, "extra", "vision=off", "-");
	part_add(&p, (struct part){ NSDESC_EXTRA, "vision=on" });
	expect(&descriptor_full, &p, "extra", "vision=off", "vision=on");
	part_add(&p, (struct part){ NSDESC_EXTRA, "aaa=1" });
	expect(&descriptor_full, &p, "extra", "-", "aaa=1");
	/* A name that begins like another one is another name. */
	part_remove(&p, NSDESC_EXTRA);
	part_add(&p, (struct part){ NSDESC_EXTRA, "flash_attn2=1" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "vision=off" });
	expect(&descriptor_full, &p, "extra", "-", "flash_attn2=1");
	part_remove(&p, NSDESC_EXTRA);
	part_add(&p, (struct part){ NSDESC_EXTRA, "flash_attn_x=1" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "vision=off" });
	expect(&descriptor_full, &p, "extra", "flash_attn=1", "-");
}

/* The shortest form that reads back the same. */
static void doubles_are_short(void **state)
{
	static const struct {
		double x;
		const char *shown;
	} rows[] = {
		{ 0, "0" },           { 1, "1" },
		{ -2, "-2" },         { 10000, "10000" },
		{ 1e14, "100000000000000" }, { 1e15, "1e+15" },
		{ 1e300, "1e+300" },  { 0.1, "0.1" },
		{ 1.0 / 3, "0.3333333333333333" }, { 0.1 + 0.2, "0.30000000000000004" },
		{ 1234567.5, "1234567.5" }, { 1e-7, "1e-07" },
		{ 5e-324, "5e-324" }, { 1.7976931348623157e308, "1.7976931348623157e+308" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct parts p = descriptor_full;

		part_set(&p, (struct part){ NSDESC_ROPE_FREQ_BASE, .x = rows[i].x });
		expect(&descriptor_full, &p, "rope_freq_base", "500000", rows[i].shown);
	}
}

static void long_text_is_cut_where_it_differs(void **state)
{
	struct parts p = descriptor_full, q = descriptor_full;
	char a[400], b[400];
	struct nsdesc_difference d;

	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	a[399] = b[399] = '\0';
	a[300] = '1';
	b[300] = '2';
	part_set(&p, (struct part){ NSDESC_LAYOUT, a });
	part_set(&q, (struct part){ NSDESC_LAYOUT, b });
	assert_int_equal(compare(&p, &q, &d, 1), 1);
	assert_non_null(strchr(d.here, '1'));
	assert_non_null(strchr(d.there, '2'));
	assert_memory_equal(d.here, "...x", 4);
	assert_int_equal(strlen(d.here), 3 + 24 + 399 - 300);
	/* Near the start, it is cut behind only. */
	a[300] = b[300] = 'x';
	a[3] = '1';
	assert_int_equal(compare(&p, &q, &d, 1), 1);
	assert_memory_equal(d.here, "xxx1", 4);
	assert_string_equal(d.here + strlen(d.here) - 3, "...");
	/* Short beside long. */
	part_set(&q, (struct part){ NSDESC_LAYOUT, "xxx" });
	assert_int_equal(compare(&p, &q, &d, 1), 1);
	assert_string_equal(d.there, "xxx");
	/* All of what fits. */
	memset(b, 'y', 127);
	b[127] = '\0';
	part_set(&q, (struct part){ NSDESC_LAYOUT, b });
	assert_int_equal(compare(&p, &q, &d, 1), 1);
	assert_string_equal(d.there, b);
}

/* Wherever long texts differ, what is shown is whole characters and shows it. */
static void cutting_keeps_characters(void **state)
{
	char a[NSDESC_TEXT_MAX + 1], b[NSDESC_TEXT_MAX + 1];
	struct parts p = descriptor_full, q = descriptor_full;

	part_set(&p, (struct part){ NSDESC_LAYOUT, a });
	part_set(&q, (struct part){ NSDESC_LAYOUT, b });
	for (size_t skew = 0; skew < 3; skew++)
		for (size_t at = skew; at + 3 <= 500; at += 3) {
			struct nsdesc_difference d;
			size_t n = skew;

			memset(a, 'x', skew);
			for (; n + 3 <= 500; n += 3)
				memcpy(a + n, "\xe2\x82\xac", 3);
			a[n] = '\0';
			memcpy(b, a, n + 1);
			b[at + 2] = '\xad';
			assert_int_equal(compare(&p, &q, &d, 1), 1);
			assert_string_not_equal(d.here, d.there);
			assert_int_equal(text_check(d.here, strlen(d.here)), 0);
			assert_int_equal(text_check(d.there, strlen(d.there)), 0);
		}
}

static void salt_is_never_shown(void **state)
{
	struct parts p = descriptor_minimal, q = descriptor_minimal;

	part_add(&q, (struct part){ NSDESC_SALT, "secret", .n = 6 });
	expect(&p, &q, "salt", "-", "(set)");
	expect(&q, &p, "salt", "(set)", "-");
	part_add(&p, (struct part){ NSDESC_SALT, "secret!", .n = 7 });
	expect(&p, &q, "salt", "(set)", "(another)");
}

static void only_the_first_ones_are_written(void **state)
{
	struct nsdesc_difference d[3] = { [2] = { .field = "untouched" } };
	unsigned int n = compare(&descriptor_minimal, &descriptor_full, NULL, 0);

	assert_int_equal(n, NSDESC_TAG_MAX - 2); /* weights and engine are the same */
	assert_int_equal(compare(&descriptor_minimal, &descriptor_full, d, 2), n);
	assert_string_equal(d[0].field, "model");
	assert_string_equal(d[1].field, "adapter");
	assert_string_equal(d[2].field, "untouched");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_ones_do_not_differ),
		cmocka_unit_test(each_changed_field_is_named),
		cmocka_unit_test(each_absent_field_is_named),
		cmocka_unit_test(pairs_are_two_fields),
		cmocka_unit_test(weights_are_shortened),
		cmocka_unit_test(close_digests_are_shown_whole),
		cmocka_unit_test(adapters_are_counted),
		cmocka_unit_test(extras_are_told_by_name),
		cmocka_unit_test(doubles_are_short),
		cmocka_unit_test(long_text_is_cut_where_it_differs),
		cmocka_unit_test(cutting_keeps_characters),
		cmocka_unit_test(salt_is_never_shown),
		cmocka_unit_test(only_the_first_ones_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
