/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys, against the vectors of doc/keys.md, computed by another program:
 *
 *	test_client_hash VECTORS
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "client/kvpool.h"

#define KEYS 4u
#define BT   16u

static const char *vectors;

/* The hex of one line, "SET WHAT NUMBER hex". */
static void vector(const char *what, unsigned int number, uint8_t out[32])
{
	FILE *f = fopen(vectors, "re");
	char line[256], begin[64];
	size_t n;

	assert(f);
	n = (size_t)snprintf(begin, sizeof(begin), "minimal %s %u ", what, number);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, begin, n))
			continue;
		line[strcspn(line, "\n")] = '\0';
		assert(hex_decode(line + n, out, 32) == 0);
		fclose(f);
		return;
	}
	fail_msg("%s has no line that begins with %s", vectors, begin);
}

/* The minimal descriptor of the vectors. */
static struct kvpool_ns_desc descriptor(uint8_t weights[32])
{
	sha256("weights", 7, weights);
	return (struct kvpool_ns_desc){
		.size = sizeof(struct kvpool_ns_desc),
		.model = "tiny",
		.weights = weights,
		.type_k = "f16",
		.type_v = "f16",
		.n_layers = 2,
		.n_kv_heads = 1,
		.head_dim_k = 64,
		.head_dim_v = 64,
		.block_tokens = BT,
		.block_bytes = 8192,
		.layout = "token-major",
		.engine = "example-1",
	};
}

struct fixture {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	int32_t tokens[KEYS * BT + 5];
	struct kvpool_key expected[KEYS];
};

static struct fixture fx;

static int setup(void **state)
{
	struct kvpool_options o = { .size = sizeof(o), .socket = "/nonexistent/kvpool.sock" };
	uint8_t weights[32];
	struct kvpool_ns_desc d = descriptor(weights);

	assert(kvpool_connect(&o, &fx.pool) == 0);
	assert(kvpool_ns_open(fx.pool, &d, &fx.ns) == 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(fx.tokens); i++)
		fx.tokens[i] = (int32_t)((uint32_t)(i * 2654435761u) % 32000);
	for (unsigned int i = 0; i < KEYS; i++)
		vector("key", i, (uint8_t *)&fx.expected[i]);
	return 0;
}

static int teardown(void **state)
{
	kvpool_ns_close(fx.ns);
	kvpool_close(fx.pool);
	return 0;
}

static void test_seed(void **state)
{
	uint8_t seed[32];

	vector("seed", 0, seed);
	assert_memory_equal(kvpool_ns_seed(fx.ns), seed, 32);
	assert_int_equal(kvpool_ns_block_tokens(fx.ns), BT);
	assert_int_equal(kvpool_ns_block_bytes(fx.ns), 8192);
}

static void test_keys(void **state)
{
	struct kvpool_key keys[KEYS + 1];

	memset(keys, 0xee, sizeof(keys));
	/* A partial block has no key. */
	assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, KEYS * BT + 5, keys, KEYS + 1), KEYS);
	assert_memory_equal(keys, fx.expected, sizeof(fx.expected));
	assert_int_equal(((uint8_t *)&keys[KEYS])[0], 0xee);
}

static void test_max(void **state)
{
	struct kvpool_key keys[KEYS];

	memset(keys, 0xee, sizeof(keys));
	assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, KEYS * BT, keys, 2), 2);
	assert_memory_equal(keys, fx.expected, 2 * sizeof(keys[0]));
	assert_int_equal(((uint8_t *)&keys[2])[0], 0xee);
	assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, BT - 1, keys, KEYS), 0);
	assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, 0, keys, KEYS), 0);
	assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, KEYS * BT, NULL, 0), 0);
}

/* A chain can be taken up anywhere. */
static void test_after(void **state)
{
	struct kvpool_key keys[KEYS];

	assert_int_equal(
		kvpool_hash(fx.ns, &fx.expected[1], fx.tokens + 2 * BT, 2 * BT, keys, KEYS), 2);
	assert_memory_equal(keys, &fx.expected[2], 2 * sizeof(keys[0]));
}

/* Tokens are 32 bits, negative ones too. */
static void test_every_bit_counts(void **state)
{
	struct kvpool_key a, b;

	assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, BT, &a, 1), 1);
	for (unsigned int bit = 0; bit < 32; bit++) {
		fx.tokens[BT - 1] ^= (int32_t)(1u << bit);
		assert_int_equal(kvpool_hash(fx.ns, NULL, fx.tokens, BT, &b, 1), 1);
		assert_memory_not_equal(&a, &b, sizeof(a));
		fx.tokens[BT - 1] ^= (int32_t)(1u << bit);
	}
}

static void test_usable_tokens(void **state)
{
	static const size_t rows[][3] = {
		/* tokens, of a block, usable */
		{ 0, 16, 0 },     { 1, 16, 0 },      { 15, 16, 0 },     { 16, 16, 0 },
		{ 17, 16, 16 },   { 32, 16, 16 },    { 33, 16, 32 },    { 1, 1, 0 },
		{ 2, 1, 1 },      { 100, 1, 99 },    { 2000, 16, 1984 }, { 2001, 16, 2000 },
		{ 65536, 65536, 0 }, { 65537, 65536, 65536 }, { 5, 0, 0 },
		{ SIZE_MAX, 16, SIZE_MAX - 15 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(kvpool_usable_tokens(rows[i][0], (uint32_t)rows[i][1]),
				 rows[i][2]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_max),
		cmocka_unit_test(test_after),
		cmocka_unit_test(test_every_bit_counts),
		cmocka_unit_test(test_usable_tokens),
	};

	assert(argc == 2);
	vectors = argv[1];
	return cmocka_run_group_tests(tests, setup, teardown);
}
