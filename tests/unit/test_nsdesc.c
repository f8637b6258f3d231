/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors: one canonical form, strictly checked, and differences that can be read.
 *
 * test_nsdesc VECTORS: the output of keys_vectors.py.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "proto/nsdesc.h"
#include "shm/layout.h"
#include "tests/fuzz/descriptor.h"

_Static_assert((int)NSDESC_RULE_ALL == (int)GROUP_ALL, "one numbering");
_Static_assert((int)NSDESC_RULE_TRAILING == (int)GROUP_TRAILING, "one numbering");
_Static_assert((int)NSDESC_RULE_LAST == (int)GROUP_LAST, "one numbering");
_Static_assert(NSDESC_SEED_BYTES == KEY_BYTES, "a seed starts a chain of keys");

static const char *vectors_file;
static struct nsdesc_builder builder;

/* Building is refused, and so are the same bytes when they come from outside. */
static void expect_refused(const struct parts *parts, unsigned int tag, const char *why)
{
	uint8_t out[NSDESC_MAX_BYTES];

	assert_int_equal(descriptor_build(parts, &builder, out), -EINVAL);
	assert_int_equal(builder.tag, tag);
	assert_string_equal(builder.why, why);
}

static void expect_bad(const uint8_t *bytes, size_t n, unsigned int tag, const char *why)
{
	struct nsdesc_values v = { .block_bytes = 4711 };
	struct nsdesc_error err = { 0 };
	const struct nsdesc_field *f = nsdesc_field_find(tag);

	assert_int_equal(nsdesc_check(bytes, n, &v, &err), -EINVAL);
	assert_int_equal(v.block_bytes, 4711);
	assert_int_equal(err.tag, tag);
	assert_string_equal(err.why, why);
	if (f)
		assert_string_equal(err.field, f->name);
	else
		assert_null(err.field);
}

/* Bytes of one field, written by hand. */
static size_t raw(uint8_t *out, unsigned int tag, const void *value, uint32_t n)
{
	uint8_t head[8] = { (uint8_t)tag, (uint8_t)(tag >> 8), 0, 0, (uint8_t)n, (uint8_t)(n >> 8),
			    (uint8_t)(n >> 16), (uint8_t)(n >> 24) };

	memcpy(out, head, 8);
	memcpy(out + 8, value, n);
	return 8 + n;
}

static void print_hex(FILE *f, const char *name, const char *what, size_t i, const uint8_t *bytes,
		      size_t n)
{
	char hex[2 * 32 + 1];

	hex_encode(bytes, n, hex);
	fprintf(f, "%s %s %zu %s\n", name, what, i, hex);
}

static void print_chain(FILE *f, const char *name, const char *what, const uint8_t *seed,
			uint32_t block_tokens, unsigned int blocks, const char *extra_of_1)
{
	uint8_t key[KEY_BYTES], text[KEY_BYTES + 4 * 32 + 16];

	memcpy(key, seed, sizeof(key));
	for (unsigned int i = 0; i < blocks; i++) {
		size_t n = KEY_BYTES, extra = i == 1 ? strlen(extra_of_1) : 0;

		memcpy(text, key, KEY_BYTES);
		for (uint32_t k = 0; k < block_tokens; k++) {
			uint32_t token = (uint32_t)(i * block_tokens + k) * 2654435761u % 32000;

			for (int byte = 0; byte < 4; byte++)
				text[n++] = (uint8_t)(token >> 8 * byte);
		}
		memcpy(text + n, extra_of_1, extra);
		sha256(text, n + extra, key);
		print_hex(f, name, what, i, key, sizeof(key));
	}
}

static void print_vectors(FILE *f, const char *name, const struct parts *parts,
			  uint32_t block_tokens)
{
	struct descriptor b = descriptor_good(parts);
	uint8_t seed[NSDESC_SEED_BYTES];

	for (size_t at = 0; at < b.n; at += 32)
		print_hex(f, name, "descriptor", at, b.data + at, MIN(b.n - at, 32));
	nsdesc_seed(b.data, b.n, seed);
	print_hex(f, name, "seed", 0, seed, sizeof(seed));
	print_chain(f, name, "key", seed, block_tokens, 4, "");
	print_chain(f, name, "key-with-extra", seed, block_tokens, 3, "image-1");
}

static void same_as_the_other_program(void **state)
{
	char expected[16384], got[16384] = "";
	FILE *f = fopen(vectors_file, "re");
	size_t n;

	assert_non_null(f);
	n = fread(expected, 1, sizeof(expected) - 1, f);
	expected[n] = '\0';
	fclose(f);
	f = fmemopen(got, sizeof(got), "w");
	assert_non_null(f);
	print_vectors(f, "minimal", &descriptor_minimal, 16);
	print_vectors(f, "full", &descriptor_full, 32);
	fclose(f);
	assert_true(n > 1000);
	assert_string_equal(got, expected);
}

static void table_has_each_tag(void **state)
{
	assert_null(nsdesc_field_find(0));
	assert_null(nsdesc_field_find(NSDESC_TAG_MAX + 1));
	assert_null(nsdesc_field_find(UINT32_MAX));
	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		const struct nsdesc_field *f = nsdesc_field_find(tag);

		assert_int_equal(f->tag, tag);
		assert_true(f->min <= f->max);
		assert_int_equal(f->repeated, tag == NSDESC_ADAPTER || tag == NSDESC_EXTRA);
		for (unsigned int k = 1; k < tag; k++)
			assert_string_not_equal(f->name, nsdesc_field_find(k)->name);
		assert_non_null(part_of(&descriptor_full, (enum nsdesc_tag)tag));
	}
}

static void values_come_back(void **state)
{
	struct descriptor a = descriptor_good(&descriptor_minimal);
	struct descriptor b = descriptor_good(&descriptor_full);
	struct nsdesc_values v;
	struct nsdesc_error err;

	assert_int_equal(nsdesc_check(a.data, a.n, &v, &err), 0);
	assert_string_equal(v.model, "tiny");
	assert_int_equal(v.block_tokens, 16);
	assert_int_equal(v.block_bytes, 8192);
	assert_int_equal(v.group_rule, NSDESC_RULE_ALL);
	assert_int_equal(v.group_n, 0);
	assert_int_equal(nsdesc_check(b.data, b.n, &v, &err), 0);
	assert_string_equal(v.model, "mod\xc3\xa8le 8B");
	assert_int_equal(v.block_tokens, 32);
	assert_int_equal(v.block_bytes, 2 << 20);
	assert_int_equal(v.group_rule, NSDESC_RULE_TRAILING);
	assert_int_equal(v.group_n, 128);
}

/* The longest name there may be fits the values. */
static void longest_model(void **state)
{
	char name[NSDESC_TEXT_MAX + 2] = "";
	struct parts p = descriptor_minimal;
	struct nsdesc_values v;
	struct nsdesc_error err;
	struct descriptor b;

	memset(name, 'x', NSDESC_TEXT_MAX);
	part_set(&p, (struct part){ NSDESC_MODEL, name });
	b = descriptor_good(&p);
	assert_int_equal(nsdesc_check(b.data, b.n, &v, &err), 0);
	assert_string_equal(v.model, name);
	name[NSDESC_TEXT_MAX] = 'x';
	expect_refused(&p, NSDESC_MODEL, "has a wrong length");
}

static void order_of_building_does_not_matter(void **state)
{
	struct descriptor expected = descriptor_good(&descriptor_full);
	struct parts p = descriptor_full;
	uint32_t random = 1;

	for (int round = 0; round < 500; round++) {
		struct descriptor got;

		for (unsigned int i = p.count - 1; i > 0; i--) {
			unsigned int k = (random >> 16) % (i + 1);
			struct part swap = p.part[i];

			random = random * 1664525 + 1013904223;
			p.part[i] = p.part[k];
			p.part[k] = swap;
		}
		got = descriptor_good(&p);
		assert_int_equal(got.n, expected.n);
		assert_memory_equal(got.data, expected.data, got.n);
	}
}

/* What is the same when written without a border is another descriptor. */
static void borders_count(void **state)
{
	struct parts p = descriptor_minimal, q = descriptor_minimal;
	uint8_t seed_p[NSDESC_SEED_BYTES], seed_q[NSDESC_SEED_BYTES];
	struct descriptor a, b;

	part_set(&p, (struct part){ NSDESC_TYPE_K, "ab" });
	part_set(&p, (struct part){ NSDESC_TYPE_V, "c" });
	part_set(&q, (struct part){ NSDESC_TYPE_K, "a" });
	part_set(&q, (struct part){ NSDESC_TYPE_V, "bc" });
	a = descriptor_good(&p);
	b = descriptor_good(&q);
	assert_int_equal(a.n, b.n);
	assert_memory_not_equal(a.data, b.data, a.n);
	nsdesc_seed(a.data, a.n, seed_p);
	nsdesc_seed(b.data, b.n, seed_q);
	assert_memory_not_equal(seed_p, seed_q, sizeof(seed_p));

	p = q = descriptor_minimal;
	part_add(&p, (struct part){ NSDESC_EXTRA, "a=1" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "b=2" });
	part_add(&q, (struct part){ NSDESC_EXTRA, "a=1b=2" });
	a = descriptor_good(&p);
	b = descriptor_good(&q);
	assert_int_equal(nsdesc_compare(a.data, a.n, b.data, b.n, NULL, 0), 1);
}

static void absent_text_is_no_field(void **state)
{
	struct parts p = descriptor_minimal;
	struct descriptor a = descriptor_good(&descriptor_minimal), b;

	part_add(&p, (struct part){ NSDESC_ROTATION, NULL });
	part_add(&p, (struct part){ NSDESC_GROUP_RULE, .x = NSDESC_RULE_ALL });
	b = descriptor_good(&p);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.data, b.data, a.n);
}

static void each_field_may_be_missing_or_not(void **state)
{
	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		int pair = (tag >= NSDESC_TP_RANK && tag <= NSDESC_TP_SIZE) ||
			   (tag >= NSDESC_GROUP_N && tag <= NSDESC_GROUP_COUNT);
		struct parts p = descriptor_full;

		part_remove(&p, (enum nsdesc_tag)tag);
		if (pair || nsdesc_field_find(tag)->required)
			expect_refused(&p, tag, "is missing");
		else if (tag == NSDESC_GROUP_RULE)
			expect_refused(&p, NSDESC_GROUP_N, "does not go with this group_rule");
		else
			(void)descriptor_good(&p);
	}
}

static void numbers_have_bounds(void **state)
{
	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		const struct nsdesc_field *f = nsdesc_field_find(tag);
		struct parts p = descriptor_full;
		struct part *number;

		if (f->kind != NSDESC_KIND_NUMBER)
			continue;
		/* Bounds of a pair would get in the way of those of its halves. */
		part_set(&p, (struct part){ NSDESC_TP_SIZE, .x = 65536 });
		part_set(&p, (struct part){ NSDESC_GROUP_COUNT, .x = 65536 });
		part_set(&p, (struct part){ NSDESC_TP_RANK, .x = 0 });
		part_set(&p, (struct part){ NSDESC_GROUP_INDEX, .x = 0 });
		if (tag == NSDESC_GROUP_RULE)
			part_remove(&p, NSDESC_GROUP_N);
		number = part_of(&p, (enum nsdesc_tag)tag);
		number->x = (double)f->max;
		(void)descriptor_good(&p);
		number->x = (double)f->max + 1;
		expect_refused(&p, tag, "is out of range");
		number->x = 18446744073709549568.0;
		expect_refused(&p, tag, "is out of range");
		number->x = (double)f->min;
		if (tag == NSDESC_GROUP_RULE)
			part_add(&p, (struct part){ NSDESC_GROUP_N, .x = 1 });
		(void)descriptor_good(&p);
		number->x = (double)f->min - 1;
		if (f->min && tag != NSDESC_GROUP_RULE)
			expect_refused(&p, tag, "is out of range");
	}
}

/* Rule "all" has one way to be said, which is not 0. */
static void rule_zero_is_not_canonical(void **state)
{
	struct descriptor b = descriptor_good(&descriptor_minimal);

	b.n += raw(b.data + b.n, NSDESC_GROUP_RULE, "\0\0\0\0\0\0\0\0", 8);
	expect_bad(b.data, b.n, NSDESC_GROUP_RULE, "is out of range");
}

static void pairs_fit_each_other(void **state)
{
	struct parts p = descriptor_full;

	part_set(&p, (struct part){ NSDESC_TP_RANK, .x = 4 });
	expect_refused(&p, NSDESC_TP_RANK, "is out of range");
	p = descriptor_full;
	part_set(&p, (struct part){ NSDESC_GROUP_INDEX, .x = 2 });
	expect_refused(&p, NSDESC_GROUP_INDEX, "is out of range");
	p = descriptor_full;
	part_set(&p, (struct part){ NSDESC_GROUP_RULE, .x = NSDESC_RULE_LAST });
	expect_refused(&p, NSDESC_GROUP_N, "does not go with this group_rule");
}

static void lengths_are_checked(void **state)
{
	static const uint8_t zeros[NSDESC_TEXT_MAX + 1];
	char text[NSDESC_TEXT_MAX + 1];

	memset(text, 'x', sizeof(text));
	text[1] = '=';
	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		const struct nsdesc_field *f = nsdesc_field_find(tag);
		int number = f->kind == NSDESC_KIND_NUMBER;
		size_t least = number ? 8 : f->min, most = number ? 8 : f->max;
		const void *value = f->kind == NSDESC_KIND_TEXT ? (const void *)text : zeros;
		uint8_t one[NSDESC_MAX_BYTES];

		for (size_t n = 0; n <= most + 1; n++) {
			size_t size = raw(one, tag, value, (uint32_t)n);
			struct nsdesc_values v;
			struct nsdesc_error err;

			if (n < least || n > most) {
				expect_bad(one, size, tag, "has a wrong length");
				continue;
			}
			assert_int_equal(nsdesc_check(one, size, &v, &err), -EINVAL);
			assert_string_not_equal(err.why, "has a wrong length");
		}
	}
}

static void doubles_are_finite_and_one_zero(void **state)
{
	static const double bad[] = { -0.0, NAN, INFINITY, -INFINITY };
	static const double good[] = { 0.0, -1.5, 5e-324, 1.7976931348623157e308 };
	static const char why[] = "is -0 or not a finite number";

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct parts p = descriptor_full;

		part_set(&p, (struct part){ NSDESC_ROPE_FREQ_BASE, .x = bad[i] });
		expect_refused(&p, NSDESC_ROPE_FREQ_BASE, why);
		p = descriptor_full;
		part_set(&p, (struct part){ NSDESC_ROPE_FREQ_SCALE, .x = bad[i] });
		expect_refused(&p, NSDESC_ROPE_FREQ_SCALE, why);
		p = descriptor_full;
		part_set(&p, (struct part){ NSDESC_ADAPTER, "style", bad[i] });
		expect_refused(&p, NSDESC_ADAPTER, why);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct parts p = descriptor_full;

		part_set(&p, (struct part){ NSDESC_ROPE_FREQ_BASE, .x = good[i] });
		part_set(&p, (struct part){ NSDESC_ADAPTER, "style", good[i] });
		(void)descriptor_good(&p);
	}
}

static void text_is_clean(void **state)
{
	static const char *const bad[] = { "\n", "a\x1b[0m", "\xff", "\xc3", "\xed\xa0\x80" };

	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++)
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			struct parts p = descriptor_full;

			if (nsdesc_field_find(tag)->kind != NSDESC_KIND_TEXT)
				continue;
			part_set(&p, (struct part){ (enum nsdesc_tag)tag, bad[i] });
			expect_refused(&p, tag, "is not UTF-8 text without control characters");
		}
}

static void extras_are_name_and_value(void **state)
{
	static const char *const bad[] = { "name", "=value", "=" };
	struct parts p = descriptor_minimal;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		p = descriptor_minimal;
		part_add(&p, (struct part){ NSDESC_EXTRA, bad[i] });
		expect_refused(&p, NSDESC_EXTRA, "is not of the form name=value");
	}
	p = descriptor_minimal;
	part_add(&p, (struct part){ NSDESC_EXTRA, "name=" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "names=b=c" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "nam=x" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "n-am=x" });
	part_add(&p, (struct part){ NSDESC_EXTRA, "n=x" });
	(void)descriptor_good(&p);
	part_add(&p, (struct part){ NSDESC_EXTRA, "name=other" });
	expect_refused(&p, NSDESC_EXTRA, "has two values of one name");
}

static void no_field_twice(void **state)
{
	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		struct parts p = descriptor_full;

		part_add(&p, *part_of(&p, (enum nsdesc_tag)tag));
		expect_refused(&p, tag, "is there twice");
	}
	/* Another value does not help. */
	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		struct parts p = descriptor_full;

		if (nsdesc_field_find(tag)->kind != NSDESC_KIND_TEXT || tag == NSDESC_EXTRA)
			continue;
		part_add(&p, (struct part){ (enum nsdesc_tag)tag, "zzz" });
		expect_refused(&p, tag, "is there twice");
	}
}

static void repeated_values_ascend(void **state)
{
	struct descriptor head = descriptor_good(&descriptor_minimal), b;

	b = head;
	b.n += raw(b.data + b.n, NSDESC_EXTRA, "b=1", 3);
	b.n += raw(b.data + b.n, NSDESC_EXTRA, "a=1", 3);
	expect_bad(b.data, b.n, NSDESC_EXTRA, "is out of order");
	b = head;
	b.n += raw(b.data + b.n, NSDESC_EXTRA, "a=11", 4);
	b.n += raw(b.data + b.n, NSDESC_EXTRA, "a=1", 3);
	expect_bad(b.data, b.n, NSDESC_EXTRA, "is out of order");
	b = head;
	b.n += raw(b.data + b.n, NSDESC_EXTRA, "a=1", 3);
	b.n += raw(b.data + b.n, NSDESC_MODEL, "m", 1);
	expect_bad(b.data, b.n, NSDESC_MODEL, "is out of order");
}

static void unknown_tags_are_refused(void **state)
{
	static const unsigned int tags[] = { 0, NSDESC_TAG_MAX + 1, 256 + NSDESC_MODEL, 65535 };
	struct descriptor head = descriptor_good(&descriptor_minimal);
	uint8_t out[NSDESC_MAX_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
		struct descriptor b = head;

		b.n += raw(b.data + b.n, tags[i], "x", 1);
		expect_bad(b.data, b.n, 0, "has a tag that this version does not know");
	}
	nsdesc_begin(&builder);
	nsdesc_put(&builder, (enum nsdesc_tag)77, "x", 1);
	assert_int_equal(nsdesc_finish(&builder, out), -EINVAL);
	assert_string_equal(builder.why, "has a tag that this version does not know");
}

/* Whether one field ends and the next begins there. */
static int is_border(const struct descriptor *b, size_t n)
{
	struct nsdesc_item it;
	size_t at = 0;

	while (at < n)
		at = nsdesc_next(b->data, b->n, at, &it);
	return at == n;
}

static void cut_or_prolonged_bytes_are_refused(void **state)
{
	struct descriptor b = descriptor_good(&descriptor_full);
	struct nsdesc_values v;
	struct nsdesc_error err;

	for (size_t n = 0; n < b.n; n++) {
		uint8_t *exact = malloc(n + 1);

		assert_non_null(exact);
		memcpy(exact + 1, b.data, n); /* and not aligned */
		if (nsdesc_check(exact + 1, n, &v, &err) == 0)
			assert_true(is_border(&b, n));
		free(exact);
	}
	for (size_t more = 1; more < 9; more++) {
		memset(b.data + b.n, 0, more);
		assert_int_equal(nsdesc_check(b.data, b.n + more, &v, &err), -EINVAL);
	}
	expect_bad(b.data, 0, NSDESC_MODEL, "is missing");
	expect_bad(b.data, 7, 0, "is cut in the middle of a field");
	expect_bad(b.data, 9, 0, "is cut in the middle of a field");
}

static void padding_is_zero(void **state)
{
	struct descriptor b = descriptor_good(&descriptor_minimal);

	b.data[2] = 1;
	expect_bad(b.data, b.n, 0, "is cut in the middle of a field");
	b = descriptor_good(&descriptor_minimal);
	b.data[7] = 0x80; /* a length of 2 GiB and more */
	expect_bad(b.data, b.n, 0, "is cut in the middle of a field");
}

static struct parts many_extras(unsigned int count, char (*names)[512], size_t n)
{
	struct parts p = descriptor_minimal;

	for (unsigned int i = 0; i < count; i++) {
		memset(names[i], 'v', n);
		snprintf(names[i], 5, "%03u=", i % 1000);
		names[i][4] = 'v';
		names[i][n] = '\0';
		part_add(&p, (struct part){ NSDESC_EXTRA, names[i] });
	}
	return p;
}

static void number_of_fields_is_bounded(void **state)
{
	static char names[PARTS_MAX][512];
	struct parts p = many_extras(NSDESC_FIELDS_MAX - descriptor_minimal.count, names, 6);
	struct descriptor b = descriptor_good(&p);

	b.n += raw(b.data + b.n, NSDESC_EXTRA, "z=1", 3);
	expect_bad(b.data, b.n, 0, "has too many fields");
	part_add(&p, (struct part){ NSDESC_EXTRA, "z=1" });
	expect_refused(&p, NSDESC_EXTRA, "is one field too many");
}

static void length_is_bounded(void **state)
{
	static char names[PARTS_MAX][512];
	struct parts p = many_extras(40, names, 400);
	struct descriptor b;
	uint8_t *big;
	size_t room;

	p.count--;
	b = descriptor_good(&p);
	room = NSDESC_MAX_BYTES - b.n - 8;
	assert_true(room > 5 && room < 512);
	names[39][room] = '\0';
	part_add(&p, (struct part){ NSDESC_EXTRA, names[39] });
	b = descriptor_good(&p);
	assert_int_equal(b.n, NSDESC_MAX_BYTES);
	names[39][room] = 'v';
	names[39][room + 1] = '\0';
	expect_refused(&p, NSDESC_EXTRA, "does not fit");
	big = calloc(1, NSDESC_MAX_BYTES + 1);
	assert_non_null(big);
	expect_bad(big, NSDESC_MAX_BYTES + 1, 0, "is too long");
	nsdesc_begin(&builder);
	nsdesc_put(&builder, NSDESC_SALT, big, (size_t)-1);
	assert_string_equal(builder.why, "does not fit");
	free(big);
}

static void first_error_sticks(void **state)
{
	static uint8_t big[NSDESC_MAX_BYTES];
	uint8_t out[NSDESC_MAX_BYTES];

	nsdesc_begin(&builder);
	nsdesc_put(&builder, NSDESC_SALT, big, sizeof(big));
	nsdesc_put(&builder, NSDESC_WEIGHTS, big, sizeof(big));
	assert_int_equal(nsdesc_finish(&builder, out), -EINVAL);
	assert_int_equal(builder.tag, NSDESC_SALT);
	assert_string_equal(builder.why, "does not fit");
	/* And a new start forgets it. */
	assert_true(descriptor_build(&descriptor_minimal, &builder, out) > 0);
}

static void seed_takes_the_longest(void **state)
{
	static uint8_t bytes[11 + NSDESC_MAX_BYTES] = "kvpool-ns-1";
	uint8_t seed[32], expected[32];

	memset(bytes + 11, 'x', NSDESC_MAX_BYTES);
	sha256(bytes, sizeof(bytes), expected);
	nsdesc_seed(bytes + 11, NSDESC_MAX_BYTES, seed);
	assert_memory_equal(seed, expected, 32);
}

/* Any one bit makes either no descriptor or another one, in one field or (tags) two. */
static void every_bit_counts(void **state)
{
	struct descriptor a = descriptor_good(&descriptor_full), b;
	unsigned int good = 0;

	for (size_t bit = 0; bit < 8 * a.n; bit++) {
		struct nsdesc_difference d[4];
		struct nsdesc_values v;
		struct nsdesc_error err;
		unsigned int n;

		b = a;
		b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (nsdesc_check(b.data, b.n, &v, &err) < 0)
			continue;
		good++;
		n = nsdesc_compare(a.data, a.n, b.data, b.n, d, 4);
		assert_true(n == 1 || n == 2);
		assert_int_equal(strcmp(d[0].here, d[0].there) != 0, 1);
	}
	assert_true(good > 1000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_the_other_program),
		cmocka_unit_test(table_has_each_tag),
		cmocka_unit_test(values_come_back),
		cmocka_unit_test(longest_model),
		cmocka_unit_test(order_of_building_does_not_matter),
		cmocka_unit_test(borders_count),
		cmocka_unit_test(absent_text_is_no_field),
		cmocka_unit_test(each_field_may_be_missing_or_not),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(rule_zero_is_not_canonical),
		cmocka_unit_test(pairs_fit_each_other),
		cmocka_unit_test(lengths_are_checked),
		cmocka_unit_test(doubles_are_finite_and_one_zero),
		cmocka_unit_test(text_is_clean),
		cmocka_unit_test(extras_are_name_and_value),
		cmocka_unit_test(no_field_twice),
		cmocka_unit_test(repeated_values_ascend),
		cmocka_unit_test(unknown_tags_are_refused),
		cmocka_unit_test(cut_or_prolonged_bytes_are_refused),
		cmocka_unit_test(padding_is_zero),
		cmocka_unit_test(number_of_fields_is_bounded),
		cmocka_unit_test(length_is_bounded),
		cmocka_unit_test(first_error_sticks),
		cmocka_unit_test(seed_takes_the_longest),
		cmocka_unit_test(every_bit_counts),
	};

	if (argc != 2)
		return 2;
	vectors_file = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
