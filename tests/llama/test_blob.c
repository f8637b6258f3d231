/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "client/llama/blob.h"
#include "tests/llama/state.h"

/*
 * An exact copy in memory of exactly that size, so that a sanitizer sees any read behind the end.
 */
static int parse_exact(const void *data, size_t size, struct blob *b, const char **why)
{
	uint8_t *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, data, size);
	*why = "nobody said why";
	memset(b, 0xdd, sizeof(*b));
	r = blob_parse(copy, size, b, why);
	free(copy);
	return r;
}

static void test_reads_both_formats(void **unused)
{
	for (uint32_t format = 3; format <= 4; format++) {
		struct state_spec spec = state_plain(format, 0, 10);
		struct state s = state_make(&spec);
		const char *why;
		struct blob b;

		assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
		assert_int_equal(b.shape.format, format);
		assert_int_equal(b.shape.n_layers, 2);
		assert_int_equal(b.shape.n_tensors, 4);
		assert_int_equal(b.shape.row_bytes, 64 + 48 + 64 + 80);
		assert_int_equal(b.shape.rot_k, format == 4 ? 64 : 0);
		assert_int_equal(b.n_cells, 10);
		assert_int_equal(b.first, 0);
		assert_true(b.sorted);
		assert_int_equal(shape_state_bytes(&b.shape, 10), s.size);
		state_free(&s);
	}
}

/* Types only matter by the size of their rows; V may be missing. */
static void test_reads_quantised_and_k_only(void **unused)
{
	struct state_spec spec = state_plain(3, 0, 7);
	const char *why;
	struct blob b;
	struct state s;

	for (int t = 0; t < 4; t++) {
		spec.type[t] = t < 2 ? 8 : 2; /* q8_0 and q4_0 of 64 elements */
		spec.row[t] = t < 2 ? 68 : 36;
	}
	s = state_make(&spec);
	assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
	assert_int_equal(b.shape.tensors[3].type, 2);
	assert_int_equal(b.shape.tensors[3].row, 36);
	state_free(&s);

	spec.n_tensors = 2;
	s = state_make(&spec);
	assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
	assert_int_equal(b.shape.n_tensors, 2);
	state_free(&s);
}

/* The numbers of one format must never be taken for those of the other. */
static void test_formats_are_told_apart(void **unused)
{
	static const int32_t types[] = {0, 1, 2, 8, 30};

	for (uint32_t format = 3; format <= 4; format++) {
		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			struct state_spec spec = state_plain(format, 0, 4);
			const char *why;
			struct state s;
			struct blob b;

			for (int t = 0; t < 4; t++)
				spec.type[t] = types[i];
			spec.rot_k = spec.rot_v = format == 4 && types[i] > 1 ? 64 : 0;
			s = state_make(&spec);
			assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
			assert_int_equal(b.shape.format, format);
			assert_int_equal(b.shape.rot_v, spec.rot_v);
			state_free(&s);
		}
	}
}

static void cut_and_compare(const struct state_spec *spec, const struct blob *b,
			    const uint32_t *order)
{
	for (uint32_t pos = 0; pos + 4 <= spec->n_cells; pos += 4) {
		struct state_spec part = *spec;
		struct state want;
		uint8_t *image;

		part.first = pos;
		part.n_cells = 4;
		part.order = NULL;
		part.seq = 0;
		want = state_make(&part);
		assert_int_equal(shape_state_bytes(&b->shape, 4), want.size);
		image = malloc(want.size);
		assert_non_null(image);
		memset(image, 0xee, want.size);
		blob_cut(b, order, pos, 4, image);
		assert_memory_equal(image, want.data, want.size);
		assert_int_equal(blob_check_image(&b->shape, image, want.size, pos, 4), 0);
		free(image);
		state_free(&want);
	}
}

static void test_cuts_exact_images(void **unused)
{
	for (uint32_t format = 3; format <= 4; format++) {
		struct state_spec spec = state_plain(format, 0, 23);
		const char *why;
		struct state s;
		struct blob b;

		spec.seq = 5;
		s = state_make(&spec);
		assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
		cut_and_compare(&spec, &b, NULL);
		state_free(&s);
	}
}

static void test_gathers_cells_out_of_order(void **unused)
{
	static const uint32_t order[] = {3, 0, 1, 2, 11, 10, 9, 8, 4, 6, 5, 7};
	struct state_spec spec = state_plain(3, 0, ARRAY_SIZE(order));
	uint32_t index[ARRAY_SIZE(order)];
	const char *why;
	struct state s;
	struct blob b;

	spec.order = order;
	s = state_make(&spec);
	assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
	assert_false(b.sorted);
	assert_int_equal(blob_order(&b, index), 0);
	cut_and_compare(&spec, &b, index);
	state_free(&s);
}

static void test_position_twice(void **unused)
{
	static const uint32_t order[] = {0, 1, 1, 3};
	struct state_spec spec = state_plain(3, 0, 4);
	uint32_t index[4];
	const char *why;
	struct state s;
	struct blob b;

	spec.order = order;
	s = state_make(&spec);
	assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
	assert_int_equal(blob_order(&b, index), -EINVAL);
	state_free(&s);
}

static void test_joins_what_was_cut(void **unused)
{
	for (uint32_t format = 3; format <= 4; format++) {
		struct state_spec spec = state_plain(format, 0, 20);
		struct state s = state_make(&spec);
		uint8_t *images[5], *joined = malloc(s.size);
		const char *why;
		struct blob b;

		assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
		for (uint32_t i = 0; i < 5; i++) {
			images[i] = malloc(shape_state_bytes(&b.shape, 4));
			blob_cut(&b, NULL, 4 * i, 4, images[i]);
		}
		blob_join(&b.shape, (const void *const *)images, 5, 4, 0, joined);
		assert_memory_equal(joined, s.data, s.size);
		for (uint32_t i = 0; i < 5; i++)
			free(images[i]);
		free(joined);
		state_free(&s);
	}
}

/*
 * Every cut-off state is refused, but the one that has become a state without V; and one with bytes
 * behind its end.
 */
static void test_only_the_exact_size(void **unused)
{
	for (uint32_t format = 3; format <= 4; format++) {
		struct state_spec spec = state_plain(format, 0, 6);
		struct state s = state_make(&spec);
		uint8_t *longer = calloc(1, s.size + 64);
		struct state_spec k_only;
		struct state without_v;
		const char *why;
		struct blob b;

		k_only = spec;
		k_only.n_tensors = k_only.n_layers;
		without_v = state_make(&k_only);
		for (size_t n = 0; n < s.size; n++) {
			int r = parse_exact(s.data, n, &b, &why);

			assert_true(n == without_v.size ? r == 0 : r < 0);
			assert_string_not_equal(why, "nobody said why");
		}
		memcpy(longer, s.data, s.size);
		for (size_t n = 1; n <= 64; n++)
			assert_true(parse_exact(longer, s.size + n, &b, &why) < 0);
		free(longer);
		state_free(&without_v);
		state_free(&s);
	}
}

struct refusal {
	struct state_spec spec;
	int error;
	const char *says;
};

static void expect_refusal(struct refusal r)
{
	struct state s = state_make(&r.spec);
	const char *why;
	struct blob b;

	assert_int_equal(parse_exact(s.data, s.size, &b, &why), r.error);
	if (!strstr(why, r.says))
		fail_msg("reason \"%s\" does not speak of \"%s\"", why, r.says);
	state_free(&s);
}

static void test_refuses_with_a_reason(void **unused)
{
	struct state_spec spec;

	for (uint32_t format = 3; format <= 4; format++) {
		spec = state_plain(format, 0, 8);
		spec.n_streams = 2;
		expect_refusal((struct refusal){spec, -ENOTSUP, "not unified"});
		spec = state_plain(format, 0, 8);
		spec.transposed = true;
		expect_refusal((struct refusal){spec, -ENOTSUP, "transposed"});
		spec = state_plain(format, 0, 8);
		spec.ext = true;
		expect_refusal((struct refusal){spec, -ENOTSUP, "M-RoPE"});
		spec = state_plain(format, 0, 8);
		spec.trailing = 300;
		expect_refusal((struct refusal){spec, -ENOTSUP, "more parts"});
		spec = state_plain(format, 0, 0);
		expect_refusal((struct refusal){spec, -ENODATA, "empty"});
		spec.trailing = 8;
		expect_refusal((struct refusal){spec, -ENOTSUP, "more parts"});
		spec = state_plain(format, 0, 8);
		spec.n_seq = 2;
		expect_refusal((struct refusal){spec, -ENOTSUP, "other sequences"});
	}
}

static void test_refuses_holes(void **unused)
{
	static const uint32_t order[] = {0, 1, 2, 5};
	struct state_spec spec = state_plain(3, 0, 4);

	spec.order = order;
	expect_refusal((struct refusal){spec, -ENOTSUP, "holes"});
}

static void test_refuses_what_it_does_not_know(void **unused)
{
	struct state_spec spec = state_plain(3, 0, 8);
	struct state s = state_make(&spec);
	const char *why;
	struct blob b;

	/* Three more words before the tensors, as a later format may have. */
	s.data = realloc(s.data, s.size + 12);
	memmove(s.data + 16 + 8 * 12 + 8 + 12, s.data + 16 + 8 * 12 + 8,
		s.size - (16 + 8 * 12 + 8));
	assert_int_equal(parse_exact(s.data, s.size + 12, &b, &why), -EINVAL);
	assert_non_null(strstr(why, "does not know"));
	s.data[0] ^= 1;
	assert_int_equal(parse_exact(s.data, s.size, &b, &why), -EINVAL);
	assert_non_null(strstr(why, "not the state"));
	state_free(&s);
}

/* Words that claim more than there is must not lead outside, whatever they are. */
static void test_survives_any_word(void **unused)
{
	static const uint32_t values[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffff4, 0xffffffff};
	struct state_spec spec = state_plain(4, 0, 5);
	struct state s = state_make(&spec);
	uint8_t *copy = malloc(s.size);
	const char *why;
	struct blob b;

	for (size_t at = 0; at + 4 <= s.size; at++) {
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			memcpy(copy, s.data, s.size);
			memcpy(copy + at, &values[i], 4);
			if (parse_exact(copy, s.size, &b, &why) == 0)
				assert_int_equal(shape_state_bytes(&b.shape, b.n_cells), s.size);
		}
	}
	free(copy);
	state_free(&s);
}

static void test_check_image_knows_its_frame(void **unused)
{
	for (uint32_t format = 3; format <= 4; format++) {
		struct state_spec spec = state_plain(format, 32, 4);
		struct state s = state_make(&spec);
		const char *why;
		struct blob b;
		size_t accepted = 0, front = 0;

		assert_int_equal(blob_parse(s.data, s.size, &b, &why), 0);
		assert_int_equal(blob_check_image(&b.shape, s.data, s.size, 32, 4), 0);
		assert_int_equal(blob_check_image(&b.shape, s.data, s.size, 36, 4), -EINVAL);
		assert_int_equal(blob_check_image(&b.shape, s.data, s.size - 1, 32, 4), -EINVAL);
		assert_int_equal(blob_check_image(&b.shape, s.data, s.size, 32, 3), -EINVAL);
		for (size_t at = 0; at < s.size; at++) {
			s.data[at] ^= 0x40;
			accepted += blob_check_image(&b.shape, s.data, s.size, 32, 4) == 0;
			front += blob_check_front(&b.shape, s.data, s.size, 32, 4) == 0;
			s.data[at] ^= 0x40;
		}
		/* Bytes of rows may be anything; every other byte counts. */
		assert_int_equal(accepted, b.shape.row_bytes * 4);
		assert_int_equal(front, s.size - shape_head_at(4) - shape_head_bytes(&b.shape));
		state_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_both_formats),
		cmocka_unit_test(test_reads_quantised_and_k_only),
		cmocka_unit_test(test_formats_are_told_apart),
		cmocka_unit_test(test_cuts_exact_images),
		cmocka_unit_test(test_gathers_cells_out_of_order),
		cmocka_unit_test(test_position_twice),
		cmocka_unit_test(test_joins_what_was_cut),
		cmocka_unit_test(test_only_the_exact_size),
		cmocka_unit_test(test_refuses_with_a_reason),
		cmocka_unit_test(test_refuses_holes),
		cmocka_unit_test(test_refuses_what_it_does_not_know),
		cmocka_unit_test(test_survives_any_word),
		cmocka_unit_test(test_check_image_knows_its_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
