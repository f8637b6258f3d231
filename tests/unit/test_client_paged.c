/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter and gather between blocks and paged memory, against copying byte by byte. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 24u
#define TOKENS (BLOCKS * BT)
#define PLANES 4u
#define PLANE  65536u

/*
 * 4096 bytes for 16 tokens: 4 planes (two layers, K and V) of 64 bytes a token, which are 4 rows of
 * 16 or 1 of 64.
 */
#define TOKEN_BYTES (BB / BT / PLANES)

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static int32_t tokens[TOKENS + 1];
static uint8_t blocks[BLOCKS][BB], memory[PLANES * PLANE];
static void *planes[PLANES] = { memory, memory + PLANE, memory + 2 * PLANE, memory + 3 * PLANE };
static int32_t pages[TOKENS];

static int setup(void **state)
{
	struct iovec iov[BLOCKS];

	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, TOKENS + 1, 1);
	srandom(5);
	for (size_t i = 0; i < BLOCKS; i++) {
		for (size_t k = 0; k < BB; k++)
			blocks[i][k] = (uint8_t)random();
		iov[i] = (struct iovec){ blocks[i], BB };
	}
	assert_int_equal(kvpool_publish_iov(ns, tokens, TOKENS, 0, iov, BLOCKS), BLOCKS);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, TOKENS + 1, 0), TOKENS);
	return 0;
}

static int teardown(void **state)
{
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

/* How axes lie: which of token and row is the outer one in a block, in a page. */
struct shape {
	uint32_t page_tokens, n_rows;
	int block_rows_outer, page_rows_outer;
	uint32_t page_gap; /* bytes between pages */
};

static const struct shape shapes[] = {
	{ 16, 1, 0, 0, 0 }, { 16, 4, 0, 0, 0 },  { 16, 4, 1, 1, 0 },  { 16, 4, 0, 1, 0 },
	{ 16, 4, 1, 0, 0 }, { 1, 4, 0, 0, 32 },  { 5, 4, 1, 0, 7 },   { 8, 1, 0, 0, 0 },
	{ 64, 4, 0, 1, 0 }, { 64, 4, 1, 1, 64 }, { 128, 1, 0, 0, 0 }, { 24, 4, 0, 0, 1 },
};

/* A pack of pages in random order; every page of the table inside the planes. */
static void shuffle_pages(size_t n)
{
	for (size_t i = 0; i < n; i++)
		pages[i] = (int32_t)i;
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)random() % i;
		int32_t page = pages[k];

		pages[k] = pages[i - 1];
		pages[i - 1] = page;
	}
}

static struct kvpool_paged paged(const struct shape *s)
{
	uint64_t row = TOKEN_BYTES / s->n_rows;
	struct kvpool_paged g = {
		.size = sizeof(g),
		.planes = planes,
		.n_planes = PLANES,
		.plane_bytes = PLANE,
		.pages = pages,
		.n_pages = (TOKENS + s->page_tokens - 1) / s->page_tokens,
		.page_tokens = s->page_tokens,
		.n_rows = s->n_rows,
		.row_bytes = row,
		.page_stride = (uint64_t)s->page_tokens * TOKEN_BYTES + s->page_gap,
		.page_token_stride = s->page_rows_outer ? row : TOKEN_BYTES,
		.page_row_stride = s->page_rows_outer ? s->page_tokens * row : row,
		.block_plane_stride = BB / PLANES,
		.block_token_stride = s->block_rows_outer ? row : TOKEN_BYTES,
		.block_row_stride = s->block_rows_outer ? BT * row : row,
	};

	shuffle_pages(g.n_pages);
	assert_true(g.n_pages * g.page_stride <= PLANE);
	return g;
}

/* The one byte of a plane that belongs to byte k of row r of a token; NULL: a page left out. */
static uint8_t *in_plane(const struct kvpool_paged *g, size_t p, size_t t, size_t r, size_t k)
{
	int32_t page = g->pages[t / g->page_tokens];

	if (page < 0)
		return NULL;
	return (uint8_t *)g->planes[p] + (uint64_t)page * g->page_stride +
	       t % g->page_tokens * g->page_token_stride + r * g->page_row_stride + k;
}

static uint8_t *in_block(const struct kvpool_paged *g, uint8_t *block, size_t p, size_t t, size_t r,
			 size_t k)
{
	return block + g->block_offset + p * g->block_plane_stride +
	       t % BT * g->block_token_stride + r * g->block_row_stride + k;
}

static void check_scatter(const struct kvpool_paged *g, size_t first, size_t n, unsigned flags)
{
	static uint8_t expected[PLANES * PLANE];

	memset(memory, 0xee, sizeof(memory));
	memset(expected, 0xee, sizeof(expected));
	for (size_t p = 0; p < g->n_planes; p++)
		for (size_t t = first; t < first + n; t++)
			for (size_t r = 0; r < g->n_rows; r++)
				for (size_t k = 0; k < g->row_bytes; k++) {
					uint8_t *to = in_plane(g, p, t, r, k);

					if (to)
						expected[to - memory] =
							*in_block(g, blocks[t / BT], p, t, r, k);
				}
	assert_int_equal(kvpool_lease_scatter(lease, first, n, g, flags), 0);
	assert_memory_equal(memory, expected, sizeof(memory));
}

static void test_scatter(void **state)
{
	struct kvpool_stats before = { .size = sizeof(before) }, after = before;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct kvpool_paged g = paged(&shapes[i]);

		check_scatter(&g, 0, TOKENS, 0);
		check_scatter(&g, 0, TOKENS, KVPOOL_VERIFY);
		check_scatter(&g, 3, 1, 0);
		check_scatter(&g, 15, 2, 0);
		check_scatter(&g, 37, 205, KVPOOL_VERIFY);
		check_scatter(&g, TOKENS, 0, 0);
	}
	kvpool_get_stats(pool, &before);
	check_scatter(&(struct kvpool_paged){ 0 }, 0, 0, 0);
	struct kvpool_paged g = paged(&shapes[0]);

	check_scatter(&g, 16, 32, 0);
	kvpool_get_stats(pool, &after);
	assert_int_equal(after.copies_out - before.copies_out, 1);
	assert_int_equal(after.copied_out_bytes - before.copied_out_bytes, 32 * BB / BT);
}

/* One layer, of planes that are apart in the block; and pages that nobody wants. */
static void test_part_of_a_block(void **state)
{
	struct kvpool_paged g = paged(&shapes[3]);

	g.n_planes = 1;
	g.block_offset = 3 * g.block_plane_stride;
	check_scatter(&g, 0, TOKENS, 0);
	g.n_planes = 2;
	g.block_offset = g.block_plane_stride;
	g.block_plane_stride *= 2;
	check_scatter(&g, 20, 100, 0);
	g.pages = pages;
	pages[0] = pages[7] = -1;
	pages[8] = INT32_MIN;
	check_scatter(&g, 0, TOKENS, 0);
}

static void test_gather(void **state)
{
	static int32_t other[TOKENS + 1];
	struct kvpool_lease *got;
	struct kvpool_write *w;

	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &got), 0);
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct kvpool_paged g = paged(&shapes[i]);
		uint8_t block[BB];

		for (size_t k = 0; k < PLANES * PLANE; k++)
			memory[k] = (uint8_t)random();
		fake_tokens(other, TOKENS + 1, (int32_t)(1000 + i));
		assert_int_equal(kvpool_reserve(ns, other, TOKENS, 0, &w), BLOCKS);
		/* Not a checksum of before. */
		assert_int_equal(kvpool_write_copy(w, 3, &(struct iovec){ blocks[0], BB }, 1), 0);
		assert_int_equal(kvpool_write_gather(w, 0, 3, &g), 3);
		assert_int_equal(kvpool_write_gather(w, 3, BLOCKS - 3, &g), BLOCKS - 3);
		assert_int_equal(kvpool_commit(w, BLOCKS), BLOCKS);
		assert_int_equal(kvpool_write_gather(w, 0, BLOCKS, &g), 0);
		kvpool_write_free(w);
		assert_int_equal(kvpool_acquire(ns, got, other, TOKENS + 1, 0), TOKENS);
		for (size_t t = 0; t < TOKENS; t++) {
			for (size_t p = 0; p < PLANES; p++)
				for (size_t r = 0; r < g.n_rows; r++)
					for (size_t k = 0; k < g.row_bytes; k++)
						*in_block(&g, block, p, t, r, k) =
							*in_plane(&g, p, t, r, k);
			if (t % BT == BT - 1)
				assert_memory_equal(block, kvpool_lease_block(got, t / BT), BB);
		}
		/* And back: what one engine stored another one reads, checked. */
		memcpy(blocks, kvpool_lease_block(got, 0), BB);
		assert_int_equal(kvpool_lease_scatter(got, 0, TOKENS, &g, KVPOOL_VERIFY), 0);
	}
	kvpool_lease_free(got);
}

/* A write that begins in the middle of a prompt takes the tokens of its own place. */
static void test_gather_behind_a_prefix(void **state)
{
	struct kvpool_paged g = paged(&shapes[1]);
	static int32_t other[TOKENS + 1];
	struct kvpool_key keys[BLOCKS];
	struct kvpool_write *w;

	for (size_t k = 0; k < PLANES * PLANE; k++)
		memory[k] = (uint8_t)random();
	memcpy(other, tokens, sizeof(other));
	fake_tokens(other + 10 * BT, TOKENS + 1 - 10 * BT, 99);
	assert_int_equal(kvpool_hash(ns, NULL, other, TOKENS, keys, BLOCKS), BLOCKS);
	assert_int_equal(kvpool_reserve_keys(ns, &keys[9], keys + 10, BLOCKS - 10, &w),
			 BLOCKS - 10);
	assert_int_equal(kvpool_write_gather(w, 0, BLOCKS - 10, &g), BLOCKS - 10);
	assert_int_equal(kvpool_commit(w, BLOCKS - 10), BLOCKS - 10);
	kvpool_write_free(w);
	assert_int_equal(kvpool_acquire(ns, lease, other, TOKENS + 1, 0), TOKENS);
	for (size_t t = 10 * BT; t < TOKENS; t++)
		assert_memory_equal(
			in_plane(&g, 1, t, 0, 0),
			in_block(&g, (uint8_t *)kvpool_lease_block(lease, t / BT), 1, t, 0, 0),
			g.row_bytes);
}

static void check_error(const char *expected)
{
	char text[512];

	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* Each way to reach beyond a block or a plane is refused, and nothing is touched. */
static void test_refusals(void **state)
{
	static const size_t huge = SIZE_MAX;
	struct kvpool_paged good = paged(&shapes[1]), bad[16];
	struct kvpool_write *w;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[n++].size = 8;
	bad[n++].n_planes = 0;
	bad[n++].page_tokens = 0;
	bad[n++].n_rows = 0;
	bad[n++].row_bytes = 0;
	bad[n++].row_bytes = huge;
	bad[n++].block_offset = 1;
	bad[n++].block_offset = huge;
	bad[n++].n_planes = PLANES + 1;
	bad[n++].block_token_stride = huge / 4;
	bad[n++].page_stride = huge / 2;
	bad[n++].page_token_stride = PLANE;
	bad[n++].block_plane_stride = 0;
	bad[n++].block_row_stride = 0;
	bad[n++].page_token_stride = 0;
	bad[n++].page_stride = 0;
	assert_int_equal(n, ARRAY_SIZE(bad));
	assert_int_equal(kvpool_reserve(ns, tokens + 1, TOKENS, 0, &w), BLOCKS);
	memset(memory, 0xee, sizeof(memory));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(kvpool_lease_scatter(lease, 0, TOKENS, &bad[i], 0), -EINVAL);
		assert_int_equal(kvpool_write_gather(w, 0, BLOCKS, &bad[i]), -EINVAL);
	}
	good.plane_bytes = (uint64_t)good.n_pages * good.page_stride - 1;
	assert_int_equal(kvpool_lease_scatter(lease, 0, TOKENS, &good, 0), -EINVAL);
	good.plane_bytes = PLANE;
	good.n_pages--;
	assert_int_equal(kvpool_lease_scatter(lease, 0, TOKENS, &good, 0), -ERANGE);
	check_error("struct kvpool_paged: 23 pages of 16 tokens have no token 383");
	assert_int_equal(kvpool_write_gather(w, 0, BLOCKS, &good), -ERANGE);
	assert_int_equal(kvpool_lease_scatter(lease, 1, TOKENS, &good, 0), -ERANGE);
	assert_int_equal(kvpool_lease_scatter(lease, huge, 2, &good, 0), -ERANGE);
	assert_int_equal(kvpool_lease_scatter(lease, 0, 1, &good, 2), -EINVAL);
	pages[0] = -1;
	assert_int_equal(kvpool_write_gather(w, 0, 1, &good), -EINVAL);
	check_error("struct kvpool_paged: pages[0] is -1, which lies outside of a plane of 65536 "
		    "bytes");
	assert_int_equal(kvpool_write_gather(w, 0, BLOCKS + 1, &good), -EINVAL);
	assert_int_equal(kvpool_write_gather(w, BLOCKS, 0, &good), 0);
	for (size_t k = 0; k < PLANES * PLANE; k++)
		assert_int_equal(memory[k], 0xee);
	kvpool_write_free(w);
	assert_int_equal(
		kvpool_acquire_keys(ns, lease, (const struct kvpool_key *)kvpool_ns_seed(ns), 0, 0),
		0);
	assert_int_equal(kvpool_lease_scatter(lease, 0, 1, &good, 0), -ERANGE);
}

/* A block whose bytes changed is found before anything of it is copied. */
static void test_bad_bytes(void **state)
{
	struct kvpool_paged g = paged(&shapes[1]);
	uint8_t *bytes = (uint8_t *)kvpool_lease_block(lease, 5);

	*bytes ^= 1;
	memset(memory, 0xee, sizeof(memory));
	assert_int_equal(kvpool_lease_scatter(lease, 5 * BT, BT, &g, KVPOOL_VERIFY), -EBADMSG);
	assert_int_equal(*in_plane(&g, 0, 5 * BT, 0, 0), 0xee);
	assert_int_equal(kvpool_lease_scatter(lease, 0, 5 * BT, &g, KVPOOL_VERIFY), 0);
	assert_int_equal(kvpool_lease_scatter(lease, 5 * BT, BT, &g, 0), 0);
	while (!fake_seen(&fake, OP_REPORT))
		kvpool_ping(pool);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_scatter),  TEST(test_part_of_a_block),
		TEST(test_gather),   TEST(test_gather_behind_a_prefix),
		TEST(test_refusals), TEST(test_bad_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
