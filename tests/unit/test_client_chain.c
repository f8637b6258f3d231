/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: the keys are those of kvpool_hash, whatever way the tokens came together. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 300u
#define LONG   (BLOCKS * BT + 5)

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_chain *chain;
static int32_t tokens[LONG];
static struct kvpool_key keys[BLOCKS];

static int setup(void **state)
{
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	fake_tokens(tokens, LONG, 1);
	assert_int_equal(kvpool_hash(ns, NULL, tokens, LONG, keys, BLOCKS), BLOCKS);
	assert_int_equal(kvpool_chain_new(ns, &chain), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_null(kvpool_chain_free(chain));
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

/* c is the chain of the first n of these tokens, as hashing all of them at once tells. */
static void check_chain(const struct kvpool_chain *c, const int32_t *of, size_t n)
{
	struct kvpool_key expected[BLOCKS];
	size_t blocks = kvpool_hash(ns, NULL, of, n, expected, BLOCKS);

	assert_int_equal(kvpool_chain_tokens(c), n);
	assert_int_equal(kvpool_chain_blocks(c), blocks);
	if (blocks)
		assert_memory_equal(kvpool_chain_keys(c), expected, blocks * sizeof(expected[0]));
}

static void test_empty(void **state)
{
	check_chain(chain, tokens, 0);
	assert_null(kvpool_chain_keys(chain));
	assert_int_equal(kvpool_chain_append(chain, NULL, 0), 0);
	assert_int_equal(kvpool_chain_truncate(chain, 0), 0);
	check_chain(chain, tokens, 0);
	assert_null(kvpool_chain_free(NULL));
}

/* In pieces of every length that matters. */
static void test_append(void **state)
{
	static const size_t steps[] = { 1, BT - 1, BT, BT + 1, 3 * BT, 1000 };

	for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
		assert_int_equal(kvpool_chain_truncate(chain, 0), 0);
		for (size_t at = 0; at < LONG; at += steps[k]) {
			size_t n = MIN(steps[k], LONG - at);

			assert_int_equal(kvpool_chain_append(chain, tokens + at, n), 0);
			if (k || at < 5 * BT)
				check_chain(chain, tokens, at + n);
		}
		check_chain(chain, tokens, LONG);
	}
}

static void test_truncate(void **state)
{
	int32_t other[LONG];

	fake_tokens(other, LONG, 77);
	memcpy(other, tokens, 100 * sizeof(tokens[0]));
	assert_int_equal(kvpool_chain_append(chain, tokens, LONG), 0);
	assert_int_equal(kvpool_chain_truncate(chain, LONG + 1), -EINVAL);
	check_chain(chain, tokens, LONG);
	assert_int_equal(kvpool_chain_truncate(chain, LONG), 0);
	assert_int_equal(kvpool_chain_truncate(chain, 100), 0);
	check_chain(chain, tokens, 100);
	assert_int_equal(kvpool_chain_append(chain, other + 100, LONG - 100), 0);
	check_chain(chain, other, LONG);
}

static void test_update(void **state)
{
	int32_t other[LONG];
	size_t same = 4711;

	assert_int_equal(kvpool_chain_update(chain, tokens, 50, &same), 0);
	assert_int_equal(same, 0);
	assert_int_equal(kvpool_chain_update(chain, tokens, LONG, &same), 0);
	assert_int_equal(same, 50);
	assert_int_equal(kvpool_chain_update(chain, tokens, LONG, &same), 0);
	assert_int_equal(same, LONG);
	check_chain(chain, tokens, LONG);
	memcpy(other, tokens, sizeof(other));
	other[3 * BT + 1] ^= 1;
	assert_int_equal(kvpool_chain_update(chain, other, LONG - 1, &same), 0);
	assert_int_equal(same, 3 * BT + 1);
	check_chain(chain, other, LONG - 1);
	assert_int_equal(kvpool_chain_update(chain, other, 7, NULL), 0);
	check_chain(chain, other, 7);
	assert_int_equal(kvpool_chain_update(chain, NULL, 0, &same), 0);
	assert_int_equal(same, 0);
	check_chain(chain, other, 0);
}

#define FORKS 9u

/* Every order in which forks of a fork grow, are cut and freed leaves each what it is. */
static void test_fork_at_random(void **state)
{
	struct kvpool_chain *c[FORKS] = { 0 };
	static int32_t is[FORKS][LONG];
	size_t n[FORKS] = { 0 };

	srandom(11);
	assert_int_equal(kvpool_chain_new(ns, &c[0]), 0);
	for (unsigned int round = 0; round < 4000; round++) {
		unsigned int i = (unsigned int)random() % FORKS, k = (unsigned int)random() % FORKS;
		size_t more = (size_t)random() % (3 * BT);

		if (!c[i] && c[k]) {
			assert_int_equal(kvpool_chain_fork(c[k], &c[i]), 0);
			memcpy(is[i], is[k], sizeof(is[i]));
			n[i] = n[k];
		} else if (c[i] && round % 7 == 0 && i) {
			c[i] = kvpool_chain_free(c[i]);
		} else if (c[i] && round % 5 == 0) {
			n[i] = n[i] ? (size_t)random() % n[i] : 0;
			assert_int_equal(kvpool_chain_truncate(c[i], n[i]), 0);
		} else if (c[i] && n[i] + more <= LONG) {
			for (size_t t = 0; t < more; t++)
				is[i][n[i] + t] = (int32_t)random();
			assert_int_equal(kvpool_chain_append(c[i], is[i] + n[i], more), 0);
			n[i] += more;
		}
		for (i = 0; round % 50 == 0 && i < FORKS; i++)
			if (c[i])
				check_chain(c[i], is[i], n[i]);
	}
	for (unsigned int i = 0; i < FORKS; i++)
		kvpool_chain_free(c[i]);
}

struct grower {
	pthread_t thread;
	struct kvpool_chain *chain;
	int32_t is[LONG];
};

static void *grow(void *arg)
{
	struct grower *g = arg;

	for (size_t at = BLOCKS * BT / 2; at < LONG; at += 3)
		assert(kvpool_chain_append(g->chain, g->is + at, MIN(LONG - at, (size_t)3)) == 0);
	return NULL;
}

/* Forks in threads of their own, of which one may go on in the buffer that they share. */
static void test_forks_in_threads(void **state)
{
	static struct grower g[4];
	size_t half = BLOCKS * BT / 2;

	for (unsigned int round = 0; round < 20; round++) {
		assert_int_equal(kvpool_chain_update(chain, tokens, half, NULL), 0);
		for (size_t i = 0; i < ARRAY_SIZE(g); i++) {
			fake_tokens(g[i].is, LONG, (int32_t)(100 * i + round));
			memcpy(g[i].is, tokens, half * sizeof(tokens[0]));
			assert_int_equal(kvpool_chain_fork(chain, &g[i].chain), 0);
		}
		for (size_t i = 0; i < ARRAY_SIZE(g); i++)
			assert(pthread_create(&g[i].thread, NULL, grow, &g[i]) == 0);
		for (size_t i = 0; i < ARRAY_SIZE(g); i++)
			pthread_join(g[i].thread, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(g); i++) {
			check_chain(g[i].chain, g[i].is, LONG);
			kvpool_chain_free(g[i].chain);
		}
		check_chain(chain, tokens, half);
	}
}

static int fill(void *arg, size_t i, void *block)
{
	memset(block, fake_byte(&keys[i]), BB);
	return 0;
}

/* A conversation: what one turn stored is a hit for the next, and the last token never is. */
static void test_turns(void **state)
{
	struct kvpool_lease *lease;
	struct kvpool_write *w;

	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	assert_int_equal(kvpool_acquire_chain(chain, lease, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_BELOW_MIN);
	kvpool_chain_append(chain, tokens, 10 * BT);
	assert_int_equal(kvpool_acquire_chain(chain, lease, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NOT_CACHED);
	assert_int_equal(kvpool_publish_chain(chain, fill, NULL), 10);
	assert_int_equal(kvpool_publish_chain(chain, fill, NULL), 0);
	assert_int_equal(kvpool_wait_chain(chain, 4, 0), 10 * BT);
	assert_int_equal(kvpool_acquire_chain(chain, lease, 0), 9 * BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_PARTIAL_BLOCK);
	assert_int_equal(*(const uint8_t *)kvpool_lease_block(lease, 8), fake_byte(&keys[8]));

	kvpool_chain_append(chain, tokens + 10 * BT, 10 * BT + 3);
	assert_int_equal(kvpool_extend_chain(lease, chain), 10 * BT);
	assert_int_equal(kvpool_reserve_chain(chain, 10, &w), 10);
	for (size_t i = 0; i < 10; i++)
		fill(NULL, 10 + i, kvpool_write_block(w, i));
	assert_int_equal(kvpool_commit(w, 10), 10);
	kvpool_write_free(w);
	assert_int_equal(kvpool_extend_chain(lease, chain), 20 * BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_PARTIAL_BLOCK);
	assert_int_equal(kvpool_acquire_chain(chain, lease, KVPOOL_DEPTH_ONLY), 20 * BT);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 20 * BT + 3, 0), 20 * BT);
	kvpool_lease_free(lease);
}

static void test_refusals(void **state)
{
	struct kvpool_ns *other = fake_ns(pool, "other");
	struct kvpool_chain *c;
	struct kvpool_lease *lease;
	struct kvpool_write *w;
	char text[200];

	assert_int_equal(kvpool_chain_append(chain, tokens, 2 * BT), 0);
	assert_int_equal(kvpool_reserve_chain(chain, 3, &w), -EINVAL);
	assert_int_equal(kvpool_wait_chain(chain, 3, 0), -EINVAL);
	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text,
			    "blocks from number 3 on: a chain of 32 tokens has 2 full blocks");
	assert_int_equal(kvpool_chain_append(chain, tokens, SIZE_MAX), -EINVAL);
	assert_int_equal(kvpool_chain_append(chain, tokens, 1048576ul * BT), -EINVAL);
	check_chain(chain, tokens, 2 * BT);

	fake_publish(&fake, keys, 0, 2);
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT + 1, 0), BT);
	assert_int_equal(kvpool_chain_new(other, &c), 0);
	kvpool_chain_append(c, tokens, 3 * BT);
	assert_int_equal(kvpool_extend_chain(lease, c), BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NAMESPACE);
	kvpool_lease_free(lease);
	/* It holds on to its namespace. */
	kvpool_ns_close(other);
	assert_int_equal(kvpool_chain_append(c, tokens, BT), 0);
	kvpool_chain_free(c);
}

static void test_child(void **state)
{
	pid_t pid;
	int status;

	assert_int_equal(kvpool_chain_append(chain, tokens, LONG), 0);
	pid = fork();
	assert(pid >= 0);
	if (!pid) {
		struct kvpool_chain *c;
		int ok = kvpool_chain_append(chain, tokens, 1) == -ESTALE &&
			 kvpool_chain_update(chain, tokens, 1, NULL) == -ESTALE &&
			 kvpool_chain_truncate(chain, 1) == -ESTALE &&
			 kvpool_chain_fork(chain, &c) == -ESTALE &&
			 kvpool_chain_tokens(chain) == LONG;

		kvpool_chain_free(chain);
		_exit(!ok);
	}
	assert(waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_empty),  TEST(test_append),         TEST(test_truncate),
		TEST(test_update), TEST(test_fork_at_random), TEST(test_forks_in_threads),
		TEST(test_turns),  TEST(test_refusals),       TEST(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
