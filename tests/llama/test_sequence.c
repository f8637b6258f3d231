/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/llama/probe.h"
#include "client/llama/sequence.h"
#include "tests/llama/fake_engine.h"

#define BLOCK  16
#define BLOCKS 12

/* Images of the first BLOCKS blocks, made by hand. */
struct images {
	struct state state[BLOCKS];
	void *ptr[BLOCKS];
};

static void images_make(struct images *m, struct state_spec spec)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		spec.first = i * BLOCK;
		spec.n_cells = BLOCK;
		m->state[i] = state_make(&spec);
		m->ptr[i] = m->state[i].data;
	}
}

static void images_free(struct images *m)
{
	for (int i = 0; i < BLOCKS; i++)
		state_free(&m->state[i]);
}

struct fixture {
	struct llama_context *ctx;
	struct shape shape;
	struct sequence q;
	struct images images;
};

static void begin(struct fixture *f, uint32_t n_ctx, uint32_t n_seq_max)
{
	const char *why;

	f->ctx = fake_new(3, n_ctx, n_seq_max);
	assert_int_equal(probe_shape(f->ctx, fake_decode_one, &f->shape, &why), 0);
	f->ctx->decodes = 0;
	f->ctx->gets = 0;
	f->ctx->largest = 0;
	assert_int_equal(sequence_init(&f->q, f->ctx, &f->shape, BLOCK, 0), 0);
	images_make(&f->images, f->ctx->spec);
}

static void end(struct fixture *f)
{
	images_free(&f->images);
	fake_free(f->ctx);
}

static int load(struct fixture *f, uint32_t n)
{
	return sequence_load(&f->q, (const void *const *)f->images.ptr, n);
}

/* Fewer cells than bytes of an image: blocks go to the engine as they lie in the pool. */
static void test_loads_block_by_block(void **unused)
{
	struct fixture f;

	begin(&f, 256, 2);
	assert_int_equal(f.q.scratch, 1);
	assert_int_equal(load(&f, BLOCKS), 0);
	assert_true(fake_holds(f.ctx, 0, BLOCKS * BLOCK));
	assert_true(fake_holds(f.ctx, 1, 0));
	assert_int_equal(f.ctx->sets, BLOCKS);
	assert_int_equal(f.ctx->largest, f.images.state[0].size);
	end(&f);
}

/* Many cells and small blocks: joined. */
static void test_loads_joined(void **unused)
{
	struct fixture f;

	begin(&f, 4096, 2);
	assert_int_equal(load(&f, BLOCKS), 0);
	assert_true(fake_holds(f.ctx, 0, BLOCKS * BLOCK));
	assert_true(fake_holds(f.ctx, 1, 0));
	assert_int_equal(f.ctx->sets, 1);
	end(&f);
}

static void test_loads_without_a_scratch_sequence(void **unused)
{
	struct fixture f;

	begin(&f, 256, 1);
	assert_int_equal(f.q.scratch, -1);
	assert_int_equal(load(&f, BLOCKS), 0);
	assert_true(fake_holds(f.ctx, 0, BLOCKS * BLOCK));
	assert_int_equal(f.ctx->sets, 1);
	end(&f);
}

/* What other sequences hold is theirs; one of them is no scratch. */
static void test_leaves_other_sequences_alone(void **unused)
{
	struct fixture f;

	begin(&f, 256, 2);
	assert_int_equal(fake_decode(f.ctx, 1, 20), 0);
	assert_int_equal(sequence_init(&f.q, f.ctx, &f.shape, BLOCK, 0), 0);
	assert_int_equal(f.q.scratch, -1);
	assert_int_equal(load(&f, 3), 0);
	assert_true(fake_holds(f.ctx, 0, 3 * BLOCK));
	assert_true(fake_holds(f.ctx, 1, 20));
	end(&f);
}

static void test_replaces_what_was_there(void **unused)
{
	struct fixture f;

	begin(&f, 256, 2);
	assert_int_equal(fake_decode(f.ctx, 0, 100), 0);
	assert_int_equal(load(&f, 2), 0);
	assert_true(fake_holds(f.ctx, 0, 2 * BLOCK));
	end(&f);
}

static void expect_empty_after(struct fixture *f, int error, uint32_t n)
{
	assert_int_equal(load(f, n), error);
	assert_true(fake_holds(f->ctx, 0, 0));
	assert_int_equal(fake_used_cells(f->ctx), 0);
	end(f);
}

static void test_failures_leave_nothing(void **unused)
{
	struct fixture f;

	for (uint32_t seqs = 1; seqs <= 2; seqs++) {
		begin(&f, 256, seqs);
		f.ctx->set_fails_at = seqs == 1 ? 1 : 5;
		expect_empty_after(&f, -EIO, BLOCKS);

		begin(&f, 256, seqs);
		f.ctx->set_forgets = true;
		expect_empty_after(&f, -EIO, BLOCKS);

		begin(&f, 256, seqs);
		f.ctx->set_drops_first = true;
		expect_empty_after(&f, -EIO, BLOCKS);

		begin(&f, 64, seqs); /* no room for so many */
		expect_empty_after(&f, -EIO, BLOCKS);

		begin(&f, 256, seqs); /* a block from another place */
		f.images.ptr[7] = f.images.ptr[6];
		expect_empty_after(&f, -EBADMSG, BLOCKS);
	}
}

static void expect_images(struct fixture *f, uint32_t first, uint32_t n)
{
	struct images got = {0};
	const char *why = "";

	for (uint32_t i = 0; i < n; i++)
		got.ptr[i] = calloc(1, f->images.state[0].size);
	assert_int_equal(sequence_save(&f->q, first, n, got.ptr, &why), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_memory_equal(got.ptr[i], f->images.state[first + i].data,
				    f->images.state[0].size);
		free(got.ptr[i]);
	}
	assert_true(fake_holds(f->ctx, 0, BLOCKS * BLOCK + 5));
	assert_true(f->ctx->n_seq_max == 1 || fake_holds(f->ctx, 1, 0));
}

static void test_saves_every_way(void **unused)
{
	static const uint32_t sizes[] = {256, 4096};
	struct fixture f;

	for (uint32_t seqs = 1; seqs <= 2; seqs++) {
		for (int i = 0; i < 4; i++) {
			begin(&f, sizes[i / 2], seqs);
			f.ctx->scatter = i % 2;
			assert_int_equal(fake_decode(f.ctx, 0, BLOCKS * BLOCK + 5), 0);
			expect_images(&f, 0, BLOCKS);
			expect_images(&f, 7, 3);
			expect_images(&f, BLOCKS - 1, 1);
			end(&f);
		}
	}
}

/* In order and few cells: the engine writes straight into the pool. */
static void test_saves_without_a_copy(void **unused)
{
	struct fixture f;

	begin(&f, 256, 2);
	assert_int_equal(fake_decode(f.ctx, 0, BLOCKS * BLOCK + 5), 0);
	expect_images(&f, 0, BLOCKS);
	assert_int_equal(f.ctx->largest, f.images.state[0].size);
	end(&f);
}

static void test_saves_only_what_is_there(void **unused)
{
	struct fixture f;
	void *dst[1];
	const char *why;

	begin(&f, 256, 2);
	dst[0] = calloc(1, f.images.state[0].size);
	assert_int_equal(fake_decode(f.ctx, 0, BLOCK + 5), 0);
	assert_int_equal(sequence_save(&f.q, 0, 1, dst, &why), 0);
	assert_int_equal(sequence_save(&f.q, 1, 1, dst, &why), -EINVAL);
	assert_non_null(strstr(why, "does not hold"));
	f.ctx->get_fails = true;
	assert_int_equal(sequence_save(&f.q, 0, 1, dst, &why), -EIO);
	free(dst[0]);
	end(&f);
}

static void test_knows_its_sequences(void **unused)
{
	struct fixture f;

	begin(&f, 64, 2);
	assert_int_equal(sequence_init(&f.q, f.ctx, &f.shape, BLOCK, 2), -ERANGE);
	assert_int_equal(sequence_init(&f.q, f.ctx, &f.shape, BLOCK, -1), -ERANGE);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads_block_by_block),
		cmocka_unit_test(test_loads_joined),
		cmocka_unit_test(test_loads_without_a_scratch_sequence),
		cmocka_unit_test(test_leaves_other_sequences_alone),
		cmocka_unit_test(test_replaces_what_was_there),
		cmocka_unit_test(test_failures_leave_nothing),
		cmocka_unit_test(test_saves_every_way),
		cmocka_unit_test(test_saves_without_a_copy),
		cmocka_unit_test(test_saves_only_what_is_there),
		cmocka_unit_test(test_knows_its_sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
