/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a block costs: every byte that the model has allocated, and the control region, for a full
 * pool of 2^20 blocks of 4 KiB. Linked with --wrap for the functions below. What counts is what was
 * asked for, so the numbers are the same everywhere.
 */
#undef NDEBUG
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/reclaim.h"
#include "shm/granule.h"
#include "tests/pool/fixture.h"

#define BLOCKS (1u << 20)

/* The bar. Of the sum below, 4 are there only because no block hangs below another. */
#define BYTES_MAX 128

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static uint64_t allocated;

static void *count(void *p)
{
	if (p)
		allocated += malloc_usable_size(p);
	return p;
}

static void uncount(void *p)
{
	if (p)
		allocated -= malloc_usable_size(p);
}

void *__wrap_malloc(size_t n)
{
	return count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	uncount(p);
	return count(__real_realloc(p, n));
}

void __wrap_free(void *p)
{
	uncount(p);
	__real_free(p);
}

static struct fixture f;
static struct pool_owner a;

/* A block that nothing hangs below and that hangs below nothing, so that the order has all. */
static void publish(uint32_t ns, uint64_t number)
{
	struct block_key key;

	fixture_keys(number, 1, &key);
	fixture_publish(&f, &a, ns, &key, 1);
}

static void a_block_has_its_bytes(void **state)
{
	struct pool_config cfg = fixture_config;
	uint64_t before = allocated, private, shared;
	uint32_t ns;

	cfg.max_blocks = BLOCKS;
	cfg.pool_bytes = (uint64_t)BLOCKS * SLOT_UNIT;
	cfg.granule_shift = granule_shift_of(cfg.pool_bytes);
	fixture_init(&f, &cfg);
	pool_owner_init(&a, 1);
	ns = fixture_ns(&f, "m", 1, SLOT_UNIT);
	/* More than fit, so that some went, and all that remembers them is there. */
	for (uint64_t i = 0; i < BLOCKS + BLOCKS / 8; i++)
		publish(ns, i);
	assert_in_range(fixture_stats(&f).blocks, BLOCKS - BLOCKS / 32, BLOCKS);
	/* A page of these is there only when an operator pins one of its blocks. */
	private = allocated - before - malloc_usable_size(f.p->pin.holds);
	shared = pool_control_bytes(f.p);
	print_message("%.2f shared and %.2f private bytes a block\n", (double)shared / BLOCKS,
		      (double)private / BLOCKS);
	assert_true(private > 20ull * BLOCKS); /* it is counted */
	assert_true(private + shared <= (uint64_t)BYTES_MAX * BLOCKS);
	pool_owner_gone(f.p, &a, f.now);
	fixture_fini(&f);
}

/* Each part by itself, so that what grows is named. */
static void the_parts_of_a_block(void **state)
{
	assert_int_equal(sizeof(struct desc), 64);
	assert_int_equal(sizeof(struct desc_aux), 16);
	assert_int_equal(sizeof(struct bucket) / BUCKET_ENTRIES * 2, 16); /* half full at most */
	assert_int_equal(sizeof(struct block), 20);
	assert_int_equal(sizeof(*((struct lru *)0)->heap), 4);
	assert_int_equal(sizeof(((struct extent *)0)->slot[0]), 4);
	assert_in_range(sizeof(struct ghost_entry) / 8 + sizeof(uint32_t) / 16, 2, 2);
	assert_in_range(RECLAIM_BLOCKS * sizeof(uint32_t), 1, KIB(64)); /* scratch */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parts_of_a_block),
		cmocka_unit_test(a_block_has_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
