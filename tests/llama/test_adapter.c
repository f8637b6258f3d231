/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KVPOOL_LLAMA_BUILD
#include "client/llama/kvpool-llama.h"
#include "tests/llama/fake_engine.h"
#include "tests/llama/fake_pool.h"

#define BLOCK  16
#define BLOCKS 10
#define PROMPT (BLOCKS * BLOCK + 7)

static const uint8_t weights[32] = {42};

/* A program: a context of its own and a handle on the pool that all share. */
struct program {
	struct llama_context *ctx;
	struct kvpool_llama *shared;
};

static int32_t prompt[1024];

static struct kvpool_llama_options options(void)
{
	return (struct kvpool_llama_options){
		.size = sizeof(struct kvpool_llama_options),
		.weights = weights,
		.block_tokens = BLOCK,
		.rope_scaling_type = -1,
		.attention_type = -1,
		.yarn_ext_factor = -1,
		.yarn_attn_factor = -1,
		.yarn_beta_fast = -1,
		.yarn_beta_slow = -1,
		.decode_one = fake_decode_one,
	};
}

static struct program start_with(struct kvpool *pool, const struct kvpool_llama_options *o)
{
	struct program p = {.ctx = fake_new(3, 512, 3)};
	char why[256] = "";

	assert_int_equal(kvpool_llama_open(pool, p.ctx, o, &p.shared, why, sizeof(why)), 0);
	return p;
}

static struct program start(struct kvpool *pool)
{
	struct kvpool_llama_options o = options();

	return start_with(pool, &o);
}

static void stop(struct program *p)
{
	kvpool_llama_close(p->shared);
	fake_free(p->ctx);
}

static int setup(void **state)
{
	for (int i = 0; i < 1024; i++)
		prompt[i] = i * 7 + 1;
	*state = fake_pool_new();
	return 0;
}

static int teardown(void **state)
{
	fake_pool_free(*state);
	return 0;
}

/* What an application does: restore, compute the rest, publish. Returns what was restored. */
static size_t serve(struct program *p, int32_t seq, size_t n)
{
	size_t have = kvpool_llama_restore(p->shared, seq, prompt, n);

	assert_true(fake_holds(p->ctx, seq, (uint32_t)have));
	assert_int_equal(fake_decode(p->ctx, seq, (uint32_t)(n - have)), 0);
	assert_true(kvpool_llama_publish(p->shared, seq, prompt, n) >= 0);
	assert_true(fake_holds(p->ctx, seq, (uint32_t)n));
	return have;
}

static void expect_why(struct program *p, const char *says)
{
	char why[256];

	kvpool_llama_why(p->shared, why, sizeof(why));
	if (!strstr(why, says))
		fail_msg("reason \"%s\" does not speak of \"%s\"", why, says);
}

static void test_second_program_hits(void **state)
{
	struct program a = start(*state), b = start(*state);

	assert_int_equal(serve(&a, 0, PROMPT), 0);
	assert_int_equal(fake_pool_count(*state, FAKE_COMMITTED), BLOCKS);
	assert_int_equal(serve(&b, 0, PROMPT), BLOCKS * BLOCK);
	expect_why(&b, "");
	stop(&a);
	stop(&b);
}

/* The last token must be computed, whole block or not. */
static void test_never_all_tokens(void **state)
{
	struct program a = start(*state), b = start(*state);

	serve(&a, 0, BLOCKS * BLOCK);
	assert_int_equal(fake_pool_count(*state, FAKE_COMMITTED), BLOCKS);
	assert_int_equal(serve(&b, 0, BLOCKS * BLOCK), (BLOCKS - 1) * BLOCK);
	assert_int_equal(serve(&b, 1, BLOCKS * BLOCK + 1), BLOCKS * BLOCK);
	stop(&a);
	stop(&b);
}

static void test_short_prompts(void **state)
{
	struct program a = start(*state);

	assert_int_equal(serve(&a, 0, 1), 0);
	assert_int_equal(kvpool_llama_restore(a.shared, 0, prompt, 0), 0);
	assert_int_equal(kvpool_llama_restore(a.shared, 0, prompt, BLOCK - 1), 0);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt, 0), 0);
	assert_int_equal(((struct kvpool *)*state)->reserves, 0);
	stop(&a);
}

/* A longer prompt with the same beginning; then what was generated too. */
static void test_grows(void **state)
{
	struct program a = start(*state), b = start(*state);

	serve(&a, 0, 3 * BLOCK + 2);
	assert_int_equal(serve(&b, 0, PROMPT), 3 * BLOCK);
	assert_int_equal(fake_pool_count(*state, FAKE_COMMITTED), BLOCKS);
	assert_int_equal(fake_decode(b.ctx, 0, 2 * BLOCK), 0);
	assert_int_equal(kvpool_llama_publish(b.shared, 0, prompt, PROMPT + 2 * BLOCK), 2);
	assert_int_equal(fake_pool_count(*state, FAKE_COMMITTED), BLOCKS + 2);
	assert_int_equal(kvpool_llama_publish(b.shared, 0, prompt, PROMPT + 2 * BLOCK), 0);
	stop(&a);
	stop(&b);
}

static void finish_writer(struct kvpool *pool)
{
	fake_pool_turn(pool, FAKE_FOREIGN, FAKE_COMMITTED);
}

static void lose_writer(struct kvpool *pool)
{
	fake_pool_turn(pool, FAKE_FOREIGN, FAKE_FREE);
}

/* As if another program had claimed the prompt and were computing it. */
static void occupy(struct kvpool *pool)
{
	struct program a = start(pool);

	serve(&a, 0, PROMPT);
	stop(&a);
	fake_pool_turn(pool, FAKE_COMMITTED, FAKE_FOREIGN);
	pool->reserves = 0;
}

static void test_waits_for_another_program(void **state)
{
	struct kvpool *pool = *state;
	struct program b;

	occupy(pool);
	pool->on_wait = finish_writer;
	b = start(pool);
	assert_int_equal(serve(&b, 0, PROMPT), BLOCKS * BLOCK);
	assert_int_equal(pool->waits, 1);
	stop(&b);
}

static void test_waits_no_longer_than_allowed(void **state)
{
	struct kvpool *pool = *state;
	struct program b;

	occupy(pool);
	b = start(pool);
	assert_int_equal(kvpool_llama_restore(b.shared, 0, prompt, PROMPT), 0);
	expect_why(&b, "longer than wait_ms");
	assert_int_equal(pool->waits, 1);
	lose_writer(pool);
	stop(&b);
}

/* The writer dies: the one that waited computes, and claims what it computes. */
static void test_takes_over_from_a_dead_program(void **state)
{
	struct kvpool *pool = *state;
	struct program b;

	occupy(pool);
	pool->on_wait = lose_writer;
	b = start(pool);
	assert_int_equal(serve(&b, 0, PROMPT), 0);
	assert_int_equal(fake_pool_count(pool, FAKE_COMMITTED), BLOCKS);
	stop(&b);
}

/* Between looking and reserving, another program was done. */
static void test_sees_what_was_stored_meanwhile(void **state)
{
	struct kvpool *pool = *state;
	struct program b;

	occupy(pool);
	pool->on_reserve = finish_writer;
	b = start(pool);
	assert_int_equal(serve(&b, 0, PROMPT), BLOCKS * BLOCK);
	assert_int_equal(pool->waits, 0);
	stop(&b);
}

/* Two sequences of one program with one prompt: it must not wait for itself. */
static void test_does_not_wait_for_itself(void **state)
{
	struct kvpool *pool = *state;
	struct program a = start(pool);

	assert_int_equal(kvpool_llama_restore(a.shared, 0, prompt, PROMPT), 0);
	assert_int_equal(kvpool_llama_restore(a.shared, 1, prompt, PROMPT), 0);
	expect_why(&a, "another sequence of this handle");
	assert_int_equal(pool->waits, 0);
	fake_decode(a.ctx, 0, PROMPT);
	fake_decode(a.ctx, 1, PROMPT);
	assert_int_equal(kvpool_llama_publish(a.shared, 1, prompt, PROMPT), 0);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt, PROMPT), BLOCKS);
	stop(&a);
}

static void test_claims_end(void **state)
{
	struct kvpool *pool = *state;
	struct program a = start(pool);

	kvpool_llama_restore(a.shared, 0, prompt, PROMPT);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), BLOCKS);
	kvpool_llama_abandon(a.shared, 0);
	kvpool_llama_abandon(a.shared, 7);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), 0);
	kvpool_llama_restore(a.shared, 0, prompt, PROMPT);
	kvpool_llama_restore(a.shared, 0, prompt, 2 * BLOCK);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), 2);
	kvpool_llama_restore(a.shared, 1, prompt + 1, PROMPT);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), 2 + BLOCKS);
	stop(&a);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), 0);
}

/* What is published is another prompt than the one that was claimed. */
static void test_publishes_something_else(void **state)
{
	struct kvpool *pool = *state;
	struct program a = start(pool);

	kvpool_llama_restore(a.shared, 0, prompt, PROMPT);
	fake_decode(a.ctx, 0, PROMPT);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt + 1, PROMPT), BLOCKS);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), 0);
	assert_int_equal(kvpool_llama_restore(a.shared, 1, prompt, PROMPT), 0);
	stop(&a);
}

static void test_without_claims(void **state)
{
	struct kvpool *pool = *state;
	struct kvpool_llama_options o = options();
	struct program a;

	o.flags = KVPOOL_LLAMA_NO_CLAIM;
	a = start_with(pool, &o);
	assert_int_equal(kvpool_llama_restore(a.shared, 0, prompt, PROMPT), 0);
	assert_int_equal(pool->reserves, 0);
	expect_why(&a, "not_cached");
	fake_decode(a.ctx, 0, PROMPT);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt, PROMPT), BLOCKS);
	stop(&a);
}

static void test_full_pool(void **state)
{
	struct kvpool *pool = *state;
	struct program a;

	pool->capacity = 4;
	a = start(pool);
	assert_int_equal(serve(&a, 0, PROMPT), 0);
	assert_int_equal(fake_pool_count(pool, FAKE_COMMITTED), 4);
	assert_int_equal(serve(&a, 1, PROMPT), 4 * BLOCK);
	stop(&a);
}

static void expect_nothing(struct program *p, int32_t seq, const char *says)
{
	assert_int_equal(kvpool_llama_restore(p->shared, seq, prompt, PROMPT), 0);
	assert_true(fake_holds(p->ctx, seq, 0));
	expect_why(p, says);
}

static void test_no_daemon(void **state)
{
	struct kvpool *pool = *state;
	struct program a = start(pool);

	serve(&a, 0, PROMPT);
	pool->no_daemon = true;
	expect_nothing(&a, 0, "no_daemon");
	fake_decode(a.ctx, 0, PROMPT);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt, PROMPT), -ENOTCONN);
	pool->no_daemon = false;
	pool->commit_fails = true;
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt + 1, PROMPT), -ENOTCONN);
	expect_why(&a, "not stored");
	stop(&a);
}

static void test_engine_refuses(void **state)
{
	struct program a = start(*state);

	serve(&a, 0, PROMPT);
	a.ctx->set_fails_at = (int)a.ctx->sets + 1;
	fake_decode(a.ctx, 1, 20);
	expect_nothing(&a, 1, "did not take");
	a.ctx->set_fails_at = 0;
	a.ctx->set_forgets = true;
	expect_nothing(&a, 1, "did not take");
	a.ctx->set_forgets = false;
	assert_int_equal(serve(&a, 1, PROMPT), BLOCKS * BLOCK);
	stop(&a);
}

static void test_damaged_block(void **state)
{
	struct kvpool *pool = *state;
	struct program a = start(pool);

	serve(&a, 0, PROMPT);
	pool->blocks[5].data[12] ^= 1; /* the number of cells */
	expect_nothing(&a, 1, "not what its namespace says");
	stop(&a);
}

static void test_no_such_sequence(void **state)
{
	struct program a = start(*state);

	assert_int_equal(kvpool_llama_restore(a.shared, 3, prompt, PROMPT), 0);
	expect_why(&a, "no sequence 3");
	assert_int_equal(kvpool_llama_restore(a.shared, -1, prompt, PROMPT), 0);
	assert_int_equal(kvpool_llama_publish(a.shared, 3, prompt, PROMPT), -EINVAL);
	stop(&a);
}

static void test_publishes_only_what_it_holds(void **state)
{
	struct kvpool *pool = *state;
	struct program a = start(pool);

	fake_decode(a.ctx, 0, 3 * BLOCK);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt, PROMPT), -EINVAL);
	expect_why(&a, "does not hold");
	assert_int_equal(fake_pool_count(pool, FAKE_COMMITTED), 0);
	assert_int_equal(fake_pool_count(pool, FAKE_RESERVED), 0);
	stop(&a);
}

static void test_prompt_longer_than_the_context(void **state)
{
	struct program a = start(*state);

	assert_int_equal(kvpool_llama_restore(a.shared, 0, prompt, 1024), 0);
	fake_decode(a.ctx, 0, 512);
	assert_int_equal(kvpool_llama_publish(a.shared, 0, prompt, 1024), 512 / BLOCK);
	stop(&a);
}

static void expect_not_opened(struct kvpool *pool, const struct kvpool_llama_options *o, int error,
			      const char *says)
{
	struct llama_context *ctx = fake_new(3, 512, 2);
	struct kvpool_llama *shared;
	char why[256] = "";

	assert_int_equal(kvpool_llama_open(pool, ctx, o, &shared, why, sizeof(why)), error);
	if (!strstr(why, says))
		fail_msg("reason \"%s\" does not speak of \"%s\"", why, says);
	fake_free(ctx);
}

static void test_open_says_what_is_wrong(void **state)
{
	struct kvpool *pool = *state;
	struct kvpool_llama_options o = options();

	o.size = 3;
	expect_not_opened(pool, &o, -EINVAL, "kvpool_llama_options_init");
	o = options();
	o.decode_one = NULL;
	expect_not_opened(pool, &o, -EINVAL, "kvpool_llama_options_init");
	o = options();
	o.attention_type = 1;
	expect_not_opened(pool, &o, -ENOTSUP, "not causal");
	o = options();
	o.weights = NULL;
	expect_not_opened(pool, &o, -EINVAL, "model_path");
	pool->refuse_namespace = true;
	o = options();
	expect_not_opened(pool, &o, -EINVAL, "model is missing");
}

static void test_stats_add_up(void **state)
{
	struct program a = start(*state);
	struct kvpool_llama_stats s = {.size = sizeof(s)};

	serve(&a, 0, PROMPT);
	serve(&a, 1, PROMPT);
	assert_int_equal(kvpool_llama_get_stats(a.shared, &s), 0);
	assert_int_equal(s.restores, 2);
	assert_int_equal(s.restored_tokens, BLOCKS * BLOCK);
	assert_int_equal(s.published_blocks, BLOCKS);
	assert_true(s.restore_engine_ns <= s.restore_ns);
	assert_true(s.publish_engine_ns <= s.publish_ns);
	s.size = 1;
	assert_int_equal(kvpool_llama_get_stats(a.shared, &s), -EINVAL);
	stop(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_second_program_hits),
		TEST(test_never_all_tokens),
		TEST(test_short_prompts),
		TEST(test_grows),
		TEST(test_waits_for_another_program),
		TEST(test_waits_no_longer_than_allowed),
		TEST(test_takes_over_from_a_dead_program),
		TEST(test_sees_what_was_stored_meanwhile),
		TEST(test_does_not_wait_for_itself),
		TEST(test_claims_end),
		TEST(test_publishes_something_else),
		TEST(test_without_claims),
		TEST(test_full_pool),
		TEST(test_no_daemon),
		TEST(test_engine_refuses),
		TEST(test_damaged_block),
		TEST(test_no_such_sequence),
		TEST(test_publishes_only_what_it_holds),
		TEST(test_prompt_longer_than_the_context),
		TEST(test_open_says_what_is_wrong),
		TEST(test_stats_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
