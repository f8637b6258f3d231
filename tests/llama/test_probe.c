/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/llama/probe.h"
#include "tests/llama/fake_engine.h"

static void test_learns_and_leaves_no_trace(void **unused)
{
	for (uint32_t format = 3; format <= 4; format++) {
		for (uint32_t seqs = 1; seqs <= 2; seqs++) {
			struct llama_context *ctx = fake_new(format, 64, seqs);
			struct shape s;
			const char *why;

			assert_int_equal(probe_shape(ctx, fake_decode_one, &s, &why), 0);
			assert_int_equal(s.format, format);
			assert_int_equal(s.n_tensors, 4);
			assert_int_equal(ctx->decodes, 1);
			assert_int_equal(fake_used_cells(ctx), 0);
			fake_free(ctx);
		}
	}
}

/* Something is there already: read, not decoded. */
static void test_reads_a_sequence_in_use(void **unused)
{
	for (uint32_t seqs = 1; seqs <= 3; seqs++) {
		struct llama_context *ctx = fake_new(3, 64, seqs);
		int32_t used = (int32_t)seqs - 1;
		struct shape s;
		const char *why;

		fake_decode(ctx, used, 40);
		ctx->decodes = 0;
		assert_int_equal(probe_shape(ctx, fake_decode_one, &s, &why), 0);
		assert_int_equal(s.n_tensors, 4);
		assert_int_equal(ctx->decodes, 0);
		assert_true(fake_holds(ctx, used, 40));
		assert_int_equal(fake_used_cells(ctx), 40);
		if (seqs > 1)
			assert_true(ctx->largest < 1000);
		fake_free(ctx);
	}
}

static void expect_refusal(struct llama_context *ctx, int error, const char *says,
			   unsigned int decodes)
{
	struct shape s;
	const char *why = "";

	assert_int_equal(probe_shape(ctx, fake_decode_one, &s, &why), error);
	if (!strstr(why, says))
		fail_msg("reason \"%s\" does not speak of \"%s\"", why, says);
	assert_int_equal(ctx->decodes, decodes);
	assert_int_equal(fake_used_cells(ctx), 0);
	fake_free(ctx);
}

static void test_refuses_models(void **unused)
{
	struct llama_context *ctx;

	ctx = fake_new(3, 64, 2);
	ctx->model.recurrent = true;
	expect_refusal(ctx, -ENOTSUP, "recurrent", 0);
	ctx = fake_new(3, 64, 2);
	ctx->model.hybrid = true;
	expect_refusal(ctx, -ENOTSUP, "recurrent", 0);
	ctx = fake_new(3, 64, 2);
	ctx->model.n_swa = 512;
	expect_refusal(ctx, -ENOTSUP, "sliding window", 0);
	for (int rope = 8; rope <= 40; rope += 16) {
		ctx = fake_new(3, 64, 2);
		ctx->model.rope_type = rope; /* M-RoPE, vision, interleaved */
		expect_refusal(ctx, -ENOTSUP, "M-RoPE", 0);
	}
	ctx = fake_new(3, 64, 2);
	ctx->model.encoder = true;
	expect_refusal(ctx, -ENOTSUP, "later tokens", 0);
	ctx = fake_new(3, 64, 2);
	ctx->model.diffusion = true;
	expect_refusal(ctx, -ENOTSUP, "later tokens", 0);
}

static void test_takes_models_without_rope(void **unused)
{
	struct llama_context *ctx = fake_new(3, 64, 2);
	const char *why;

	ctx->model.rope_type = -1;
	assert_int_equal(probe_model(&ctx->model, &why), 0);
	ctx->model.rope_type = 2;
	assert_int_equal(probe_model(&ctx->model, &why), 0);
	fake_free(ctx);
}

static void test_refuses_contexts(void **unused)
{
	struct llama_context *ctx;

	ctx = fake_new(3, 64, 2);
	ctx->spec.n_streams = 2;
	expect_refusal(ctx, -ENOTSUP, "not unified", 0);
	ctx = fake_new(3, 64, 2);
	ctx->spec.trailing = 8; /* a second, empty part */
	expect_refusal(ctx, -ENOTSUP, "more parts", 0);
	ctx = fake_new(3, 64, 2);
	ctx->spec.transposed = true;
	expect_refusal(ctx, -ENOTSUP, "transposed", 1);
	ctx = fake_new(3, 64, 2);
	ctx->spec.ext = true;
	expect_refusal(ctx, -ENOTSUP, "more than a position", 1);
	ctx = fake_new(3, 64, 2);
	ctx->decode_fails = true;
	expect_refusal(ctx, -EIO, "did not decode", 0);
	ctx = fake_new(3, 64, 2);
	ctx->get_fails = true;
	expect_refusal(ctx, -EIO, "did not give", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learns_and_leaves_no_trace),
		cmocka_unit_test(test_reads_a_sequence_in_use),
		cmocka_unit_test(test_refuses_models),
		cmocka_unit_test(test_takes_models_without_rope),
		cmocka_unit_test(test_refuses_contexts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
