/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a program that has a pool open: everything says so, and nothing of the parent's ends.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/fork.h"
#include "client/handle.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BLOCKS 8u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static struct kvpool_write *w;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static int setup(void **state)
{
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BLOCKS * BT + 1, 0), 4 * BT);
	assert_int_equal(kvpool_reserve(ns, tokens, BLOCKS * BT, 4, &w), 4);
	return 0;
}

static int teardown(void **state)
{
	kvpool_write_free(w);
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

/* Runs a part of a test in a child, where a failed assertion aborts. */
static void in_child(void (*part)(void))
{
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (!pid) {
		part();
		_exit(0);
	}
	assert(waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void look_at_page(void)
{
	uint32_t *page;

	assert(handle_is_forked(pool));
	/* The child's own page works. */
	assert(fork_page_new(&page) == 0);
	assert(!fork_is_child(page));
	fork_page_free(page);
}

static void test_page(void **state)
{
	assert_false(handle_is_forked(pool));
	in_child(look_at_page);
	assert_false(handle_is_forked(pool));
}

static int never(void *arg, size_t i, void *block)
{
	abort();
}

static void call_everything(void)
{
	struct kvpool_stats s = { .size = sizeof(s) };
	struct iovec iov = { tokens, FAKE_BLOCK_BYTES };
	struct kvpool_ns_desc d = fake_desc("other");
	struct kvpool_lease *l;
	struct kvpool_ns *n;
	struct kvpool_write *v;
	struct kvpool_key k[BLOCKS];
	char text[200];

	assert(kvpool_state(pool) == KVPOOL_STALE_FORK);
	assert(kvpool_reconnect(pool) == -ESTALE);
	assert(kvpool_ping(pool) == -ESTALE);
	assert(kvpool_error(pool, text, sizeof(text)) > 0 && strstr(text, "parent"));
	assert(kvpool_ns_open(pool, &d, &n) == -ESTALE);
	assert(kvpool_ns_difference(ns, text, sizeof(text)) == 0);
	assert(kvpool_lease_new(pool, 1, &l) == -ESTALE);
	assert(kvpool_lease_reason(lease) == KVPOOL_FORKED);
	assert(kvpool_lease_tokens(lease) == 0 && kvpool_lease_blocks(lease) == 0);
	assert(!kvpool_lease_block(lease, 0));
	assert(kvpool_lease_read(lease, 0, &iov, 1, 0) == -ESTALE);
	assert(kvpool_extend(lease, tokens, BLOCKS * BT) == 0);
	assert(kvpool_extend_keys(lease, keys, BLOCKS) == 0);
	assert(kvpool_acquire(ns, lease, tokens, BLOCKS * BT, 0) == 0);
	assert(kvpool_lease_reason(lease) == KVPOOL_FORKED);
	assert(kvpool_acquire_keys(ns, lease, keys, BLOCKS, 0) == 0);
	kvpool_release(lease);
	assert(kvpool_reserve(ns, tokens, BLOCKS * BT, 0, &v) == -ESTALE);
	assert(kvpool_reserve_keys(ns, NULL, keys, BLOCKS, &v) == -ESTALE);
	assert(kvpool_write_verdict(w, 0) == KVPOOL_STALE && !kvpool_write_block(w, 0));
	assert(kvpool_write_copy(w, 0, &iov, 1) == -ESTALE);
	assert(kvpool_commit(w, 1) == -ESTALE);
	assert(kvpool_publish(ns, tokens, BLOCKS * BT, never, NULL) == -ESTALE);
	assert(kvpool_publish_iov(ns, tokens, BT, 0, &iov, 1) == -ESTALE);
	assert(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 1) == -ESTALE);
	assert(kvpool_get_stats(pool, &s) == -ESTALE);
	/* What is no use of the pool goes on. */
	assert(kvpool_hash(ns, NULL, tokens, BLOCKS * BT, k, BLOCKS) == BLOCKS);
	assert(!memcmp(k, keys, sizeof(k)));
}

static void check_parent(void)
{
	assert_int_equal(kvpool_lease_blocks(lease), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(*(const uint8_t *)kvpool_lease_block(lease, i),
				 fake_byte(&keys[i]));
	assert_int_equal(kvpool_ping(pool), 0);
	for (size_t i = 0; i < 4; i++)
		memset(kvpool_write_block(w, i), fake_byte(&keys[4 + i]), FAKE_BLOCK_BYTES);
	assert_int_equal(kvpool_commit(w, 4), 4);
	assert_int_equal(kvpool_extend(lease, tokens, BLOCKS * BT + 1), BLOCKS * BT);
}

static void test_calls(void **state)
{
	in_child(call_everything);
	check_parent();
}

static void free_everything(void)
{
	assert(!kvpool_close(pool));
	assert(!kvpool_lease_free(lease));
	assert(!kvpool_write_free(w));
	assert(!kvpool_ns_close(ns));
}

/* The child frees its memory, and says nothing on the parent's socket. */
static void test_freed_in_child(void **state)
{
	in_child(free_everything);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(fake_seen(&fake, OP_BYE), 0);
	assert_int_equal(fake_seen(&fake, OP_ABORT), 0);
	assert_int_equal(fake.sessions, 1);
	check_parent();
}

/* A pool of the child's own, in the same domain. */
static void open_own(void)
{
	struct kvpool *p = fake_connect(&fake, 0);
	struct kvpool_ns *n = fake_ns(p, "m");
	struct kvpool_lease *l;

	assert(kvpool_state(p) == KVPOOL_CONNECTED);
	assert(kvpool_lease_new(p, BLOCKS, &l) == 0);
	assert(kvpool_acquire(n, l, tokens, BLOCKS * BT + 1, 0) == 4 * BT);
	assert(*(const uint8_t *)kvpool_lease_block(l, 3) == fake_byte(&keys[3]));
	kvpool_lease_free(l);
	kvpool_ns_close(n);
	kvpool_close(p);
}

static void test_own_pool(void **state)
{
	in_child(open_own);
	check_parent();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_page),
		TEST(test_calls),
		TEST(test_freed_in_child),
		TEST(test_own_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
