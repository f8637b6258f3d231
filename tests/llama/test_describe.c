/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "client/llama/describe.h"
#include "client/llama/probe.h"
#define KVPOOL_LLAMA_BUILD
#include "client/llama/kvpool-llama.h"
#include "tests/llama/fake_engine.h"

static const uint8_t weights[32] = {1, 2, 3};

struct fixture {
	struct llama_context *ctx;
	struct shape shape;
	struct kvpool_llama_options o;
	struct description d;
};

/* Options as kvpool_llama_options_init leaves them for default parameters. */
static void begin(struct fixture *f, uint32_t format)
{
	const char *why;

	memset(f, 0, sizeof(*f));
	f->ctx = fake_new(format, 512, 2);
	assert_int_equal(probe_shape(f->ctx, fake_decode_one, &f->shape, &why), 0);
	f->o = (struct kvpool_llama_options){
		.size = sizeof(f->o),
		.weights = weights,
		.rope_scaling_type = -1,
		.attention_type = -1,
		.yarn_ext_factor = -1,
		.yarn_attn_factor = -1,
		.yarn_beta_fast = -1,
		.yarn_beta_slow = -1,
		.decode_one = fake_decode_one,
	};
}

static void run(struct fixture *f)
{
	const char *why = "";

	assert_int_equal(describe(&f->d, &f->ctx->model, f->ctx->n_ctx, &f->shape, &f->o, &why), 0);
}

static void set_types(struct fixture *f, int32_t k, int32_t v)
{
	for (uint32_t t = 0; t < f->shape.n_tensors; t++)
		f->shape.tensors[t].type = t < f->shape.n_layers ? k : v;
}

static void test_plain(void **unused)
{
	struct fixture f;
	const struct kvpool_ns_desc *n = &f.d.desc;

	begin(&f, 3);
	fake_set_meta(f.ctx, "fake.attention.key_length", "48");
	run(&f);
	assert_int_equal(n->size, sizeof(*n));
	assert_string_equal(n->model, "Fake model");
	assert_memory_equal(n->weights, weights, 32);
	assert_string_equal(n->type_k, "f16");
	assert_string_equal(n->type_v, "f16");
	assert_int_equal(n->n_layers, 2);
	assert_int_equal(n->n_kv_heads, 2);
	assert_int_equal(n->head_dim_k, 48);
	assert_int_equal(n->head_dim_v, 64); /* embedding size over heads */
	assert_int_equal(n->block_tokens, 32);
	assert_int_equal(n->block_bytes, shape_state_bytes(&f.shape, 32));
	assert_null(n->rotation); /* nothing is quantised */
	assert_string_equal(n->rope_type, "norm");
	assert_true(n->rope_freq_base == 10000.0);
	assert_true(n->rope_freq_scale == 1.0);
	assert_null(n->rope_scaling);
	assert_int_equal(n->n_extra, 0);
	assert_string_equal(n->engine, "llama.cpp state format 3");
	fake_free(f.ctx);
}

/* The same base whether the application or the model says it. */
static void test_rope_base(void **unused)
{
	struct fixture f;

	begin(&f, 3);
	fake_set_meta(f.ctx, "fake.rope.freq_base", "500000.000000");
	run(&f);
	assert_true(f.d.desc.rope_freq_base == 500000.0);
	f.o.rope_freq_base = 500000.0f;
	run(&f);
	assert_true(f.d.desc.rope_freq_base == 500000.0);
	f.o.rope_freq_base = 10000.0f;
	f.o.rope_freq_scale = 0.5f;
	run(&f);
	assert_true(f.d.desc.rope_freq_base == 10000.0);
	assert_true(f.d.desc.rope_freq_scale == 0.5);
	fake_free(f.ctx);
}

static void test_rope_parameters(void **unused)
{
	struct fixture f;

	begin(&f, 3);
	f.o.rope_scaling_type = 2;
	f.o.yarn_ext_factor = 1;
	f.o.yarn_attn_factor = 0.5f;
	f.o.yarn_beta_fast = 32;
	f.o.yarn_beta_slow = 1;
	f.o.yarn_orig_ctx = 4096;
	run(&f);
	assert_string_equal(f.d.desc.rope_scaling,
			    "type 2, ext 1, attn 0.5, fast 32, slow 1, orig 4096");
	fake_free(f.ctx);
}

/* A context longer than the original one makes the engine take other frequency factors. */
static void test_long_factors(void **unused)
{
	struct fixture f;

	begin(&f, 3);
	fake_set_meta(f.ctx, "fake.rope.scaling.original_context_length", "256");
	run(&f);
	assert_string_equal(f.d.desc.rope_scaling, "long factors 1");
	fake_set_meta(f.ctx, "fake.rope.scaling.original_context_length", "512");
	run(&f);
	assert_null(f.d.desc.rope_scaling);
	fake_free(f.ctx);
}

static void test_types(void **unused)
{
	struct fixture f;
	char layout[sizeof(f.d.layout)];

	begin(&f, 3);
	run(&f);
	strcpy(layout, f.d.layout);
	set_types(&f, 8, 2);
	run(&f);
	assert_string_equal(f.d.desc.type_k, "q8_0");
	assert_string_equal(f.d.desc.type_v, "q4_0");
	assert_string_not_equal(f.d.layout, layout);
	f.shape.tensors[1].type = 30;
	set_types(&f, 8, 99);
	f.shape.tensors[0].type = 1;
	run(&f);
	assert_string_equal(f.d.desc.type_k, "mixed");
	assert_string_equal(f.d.desc.type_v, "ggml-99");
	fake_free(f.ctx);
}

/* Formats 2 and 3 do not tell whether quantised K and V are rotated: the environment does. */
static void test_rotation(void **unused)
{
	struct fixture f;

	begin(&f, 3);
	unsetenv("LLAMA_ATTN_ROT_DISABLE");
	set_types(&f, 8, 1);
	run(&f);
	assert_non_null(strstr(f.d.desc.rotation, "k yes v no, ggml "));
	fake_set_meta(f.ctx, "fake.attention.key_length", "80");
	run(&f);
	assert_non_null(strstr(f.d.desc.rotation, "k no v no, ggml "));
	fake_set_meta(f.ctx, "fake.attention.key_length", "128");
	setenv("LLAMA_ATTN_ROT_DISABLE", "1", 1);
	run(&f);
	assert_non_null(strstr(f.d.desc.rotation, "k no v no, ggml "));
	setenv("LLAMA_ATTN_ROT_DISABLE", "0", 1);
	run(&f);
	assert_non_null(strstr(f.d.desc.rotation, "k yes v no, ggml "));
	unsetenv("LLAMA_ATTN_ROT_DISABLE");
	fake_free(f.ctx);
}

static void test_rotation_in_the_state(void **unused)
{
	struct fixture f;

	begin(&f, 4);
	set_types(&f, 8, 8);
	run(&f);
	assert_string_equal(f.d.desc.rotation, "k 64 v 0");
	assert_string_equal(f.d.desc.engine, "llama.cpp state format 4");
	fake_free(f.ctx);
}

static void test_passes_on(void **unused)
{
	static const struct kvpool_adapter adapters[] = {{{7}, 0.5}};
	static const struct kvpool_field extra[] = {{"control_vector", "abc"}};
	struct fixture f;

	begin(&f, 3);
	f.o.adapters = adapters;
	f.o.n_adapters = 1;
	f.o.extra = extra;
	f.o.n_extra = 1;
	f.o.salt = "salt";
	f.o.salt_len = 4;
	f.o.attention_type = 0;
	f.o.block_tokens = 64;
	run(&f);
	assert_int_equal(f.d.desc.n_adapters, 1);
	assert_memory_equal(f.d.desc.adapters, adapters, sizeof(adapters));
	assert_int_equal(f.d.desc.n_extra, 2);
	assert_string_equal(f.d.desc.extra[0].value, "abc");
	assert_string_equal(f.d.desc.extra[1].name, "attention_type");
	assert_int_equal(f.d.desc.salt_len, 4);
	assert_int_equal(f.d.desc.block_tokens, 64);
	assert_int_equal(f.d.desc.block_bytes, shape_state_bytes(&f.shape, 64));
	fake_free(f.ctx);
}

static void expect_error(struct fixture *f, int error, const char *says)
{
	const char *why = "";

	assert_int_equal(describe(&f->d, &f->ctx->model, f->ctx->n_ctx, &f->shape, &f->o, &why),
			 error);
	if (!strstr(why, says))
		fail_msg("reason \"%s\" does not speak of \"%s\"", why, says);
}

static void test_errors(void **unused)
{
	static const struct kvpool_field many[DESCRIBE_EXTRA_MAX];
	struct fixture f;

	begin(&f, 3);
	f.o.weights = NULL;
	expect_error(&f, -EINVAL, "neither model_path nor weights");
	f.o.model_path = "/nonexistent/model.gguf";
	expect_error(&f, -ENOENT, "cannot be read");
	f.o.weights = weights;
	f.o.extra = many;
	f.o.n_extra = ARRAY_SIZE(many);
	expect_error(&f, -EINVAL, "extra");
	fake_free(f.ctx);
}

/* Names come from a file that somebody downloaded. */
static void test_odd_names(void **unused)
{
	struct fixture f;
	char name[400];

	begin(&f, 3);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[3] = (char)0xc3;
	name[4] = '\n';
	fake_set_meta(f.ctx, "general.name", name);
	run(&f);
	assert_int_equal(strlen(f.d.model), sizeof(f.d.model) - 1);
	assert_int_equal(f.d.model[3], '?');
	assert_int_equal(f.d.model[4], '?');
	fake_free(f.ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_rope_base),
		cmocka_unit_test(test_rope_parameters),
		cmocka_unit_test(test_long_factors),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_rotation_in_the_state),
		cmocka_unit_test(test_passes_on),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_odd_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
