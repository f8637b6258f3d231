/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library with no memory left: each allocation of a whole session fails in turn. Every call
 * then works, or says -ENOMEM or that it is not connected, and the next try works. Leaks are for
 * AddressSanitizer to find.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/kvpool-seq.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BLOCKS 4u

/* Linked with --wrap: allocations of this thread that still succeed; -1: all. */
static _Thread_local long left = -1;
static _Thread_local unsigned int failures;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

static int out_of_memory(void)
{
	if (left < 0)
		return 0;
	if (left) {
		left--;
		return 0;
	}
	/* Only this one: the next try finds memory again. */
	left = -1;
	failures++;
	return 1;
}

void *__wrap_malloc(size_t n)
{
	return out_of_memory() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return out_of_memory() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
	return out_of_memory() ? NULL : __real_realloc(old, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return out_of_memory() ? NULL : __real_aligned_alloc(align, n);
}

static struct fake fake;

static int setup(void **state)
{
	fake_start(&fake);
	return 0;
}

static int teardown(void **state)
{
	fake_end(&fake);
	return 0;
}

/* What a call without memory may say. */
static void check(long r)
{
	assert_true(r >= 0 || r == -ENOMEM || r == -ENOTCONN);
}

static int fill(void *arg, size_t i, void *block)
{
	memset(block, 7, FAKE_BLOCK_BYTES);
	return 0;
}

static void use_namespace(struct kvpool_ns *ns, const int32_t *tokens)
{
	static uint8_t block[FAKE_BLOCK_BYTES];
	struct iovec iov = {block, sizeof(block)};
	struct kvpool_write *w;
	int r;

	r = kvpool_reserve(ns, tokens, BLOCKS * BT, 0, &w);
	check(r);
	if (r >= 0)
		kvpool_write_free(w);
	check(kvpool_publish(ns, tokens, 2 * BT, fill, NULL));
	check(kvpool_publish_iov(ns, tokens, 3 * BT, 2, &iov, 1));
	check(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 100));
}

static void use_sequence(struct kvpool_ns *ns, const int32_t *tokens)
{
	struct kvpool_seq *s, *copy = NULL;
	int r = kvpool_seq_new(ns, BLOCKS, &s);

	check(r);
	if (r < 0)
		return;
	(void)kvpool_seq_acquire(s, tokens, BLOCKS * BT);
	check(kvpool_seq_grow(s, BLOCKS));
	check(kvpool_seq_commit(s, tokens, BLOCKS * BT, KVPOOL_SWAP));
	check(kvpool_seq_fork(s, &copy));
	check(kvpool_seq_truncate(s, 0));
	(void)kvpool_seq_acquire(s, tokens, BLOCKS * BT);
	kvpool_seq_free(copy);
	kvpool_seq_free(s);
}

/* Without a loop: turns until it is done. */
static void await(struct kvpool *p, const struct kvpool_op *op)
{
	while (!kvpool_op_done(op))
		check(kvpool_dispatch(p));
}

static void start_and_finish(struct kvpool *p, struct kvpool_ns *ns, const int32_t *tokens)
{
	struct kvpool_write *w = NULL;
	struct kvpool_op *op;

	if (kvpool_reserve_start(ns, tokens, BLOCKS * BT, 0, 0, NULL, NULL, &op) == 0) {
		await(p, op);
		check(kvpool_reserve_finish(op, &w));
	}
	if (w && kvpool_commit_start(w, 1, 0, NULL, NULL, &op) == 0) {
		await(p, op);
		check(kvpool_commit_finish(op));
	}
	kvpool_write_free_start(w);
	if (kvpool_wait_start(ns, tokens, BLOCKS * BT, 0, 0, NULL, NULL, &op) == 0) {
		await(p, op);
		check(kvpool_wait_finish(op));
	}
}

/* A whole session, of which allocation n (from 0 on) fails, if it makes that many. */
static void session(long n)
{
	struct kvpool_options o = {.size = sizeof(o), .socket = fake.socket};
	struct kvpool_ns_desc d = fake_desc("m");
	struct kvpool_lease *l = NULL;
	struct kvpool_ns *ns = NULL;
	struct kvpool *p = NULL;
	int32_t tokens[(BLOCKS + 1) * BT];
	int r;

	fake_tokens(tokens, (BLOCKS + 1) * BT, (int32_t)n * 100);
	left = n;
	r = kvpool_connect(&o, &p);
	check(r);
	/* Whatever failed before, it works now. */
	while (p && kvpool_ping(p) < 0)
		check(kvpool_reconnect(p));
	r = p ? kvpool_ns_open(p, &d, &ns) : 0;
	check(r);
	r = p ? kvpool_lease_new(p, BLOCKS, &l) : 0;
	check(r);
	if (ns)
		use_namespace(ns, tokens);
	if (ns)
		start_and_finish(p, ns, tokens + BT);
	if (ns)
		use_sequence(ns, tokens + BT);
	if (ns && l)
		assert_true(kvpool_acquire(ns, l, tokens, BLOCKS * BT + 1, 0) <= 3 * BT);
	kvpool_lease_free(l);
	kvpool_ns_close(ns);
	kvpool_close(p);
	left = -1;
}

static void test_each_allocation(void **state)
{
	unsigned int before, n = 0;

	do {
		before = failures;
		session(n++);
	} while (failures > before);
	/* Fewer, and the wrappers were not called. */
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_allocation, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
