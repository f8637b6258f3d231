/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences with the real daemon: what status shows, quotas, death on either side. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "client/kvpool-seq.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"
#include "tests/integration/raw.h"

#define BLOCK 16384u
#define BT    PATTERN_BLOCK_TOKENS
#define DEPTH 64u

static struct daemon d;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_seq *seq;
static int32_t tokens[DEPTH * BT + 1];

static int start(const char *const *args)
{
	assert_int_equal(daemon_start(&d, args), 0);
	pool = pattern_connect(d.socket, "engine");
	ns = pattern_ns(pool, "m", BLOCK);
	assert_int_equal(kvpool_seq_new(ns, DEPTH, &seq), 0);
	pattern_tokens(1, DEPTH, tokens);
	return 0;
}

static int setup(void **state)
{
	return start(NULL);
}

static int setup_quota(void **state)
{
	static const char *const args[] = { "--limits.client_unnamed_max", "128K", NULL };

	return start(args);
}

static int teardown(void **state)
{
	kvpool_seq_free(seq);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	if (d.pid > 0)
		admin_wait_quiet(&d, 0);
	assert_int_equal(daemon_end(&d), 0);
	return 0;
}

static void fill(struct kvpool_seq *s, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		pattern_fill(1, i, kvpool_seq_own_block(s, i), BLOCK);
}

static void check(const struct kvpool_seq *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_true(pattern_check(1, i, kvpool_seq_block(s, i), BLOCK));
}

static const Kvpool__ClientItem *client(struct raw *admin)
{
	Kvpool__Clients m = KVPOOL__CLIENTS__INIT;
	const Kvpool__ClientsReply *r = raw_call(admin, OP_CLIENTS, &m.base);

	assert_int_equal(r->n_items, 1);
	return r->items[0];
}

static void status_shows_what_is_held(void **state)
{
	const uint64_t pool_bytes = admin_status(&d)->pool_bytes;
	struct raw *admin = raw_open(d.admin);
	Kvpool__Namespaces nm = KVPOOL__NAMESPACES__INIT;
	const Kvpool__NamespacesReply *n;
	const Kvpool__StatusReply *s;
	const Kvpool__ClientItem *c;

	assert_int_equal(pattern_publish(ns, 1, 4), 4);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, DEPTH * BT), 4 * BT);
	assert_int_equal(kvpool_seq_grow(seq, 14), 14);
	fill(seq, 4, 14);
	s = admin_status(&d);
	assert_int_equal(s->unnamed_bytes, 10 * BLOCK);
	assert_int_equal(s->writing_bytes, 10 * BLOCK);
	assert_int_equal(s->leased_bytes, 4 * BLOCK);
	admin_check_sums(s);
	c = client(admin);
	assert_int_equal(c->unnamed_blocks, 10);
	assert_int_equal(c->unnamed_bytes, 10 * BLOCK);
	assert_int_equal(c->writing_blocks, 10);
	assert_int_equal(c->extents, 1);
	assert_true(c->extent_bytes >= 10 * BLOCK && c->extent_bytes <= pool_bytes / 8);
	assert_true(c->quota_bytes > pool_bytes && c->quota_bytes <= 2 * pool_bytes);
	n = raw_call(admin, OP_NAMESPACES, &nm.base);
	assert_int_equal(n->items[0]->unnamed_blocks, 10);
	assert_int_equal(n->items[0]->writing_blocks, 10);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 12 * BT, 0), 8);
	c = client(admin);
	assert_int_equal(c->unnamed_blocks, 2);
	assert_int_equal(c->cached_blocks, 12);
	assert_int_equal(c->leases, 1);
	assert_int_equal(c->leased_bytes, 12 * BLOCK);
	check(seq, 14);
	raw_close(admin);
}

static void the_quota_of_the_configuration(void **state)
{
	const Kvpool__StatusReply *s;
	struct kvpool_seq *copy;
	char text[300];

	assert_int_equal(kvpool_seq_grow(seq, 10), 8);
	kvpool_error(pool, text, sizeof(text));
	assert_non_null(strstr(text, "limits.client_unnamed_max"));
	s = admin_status(&d);
	assert_int_equal(s->quota_blocks, 2);
	assert_int_equal(s->unnamed_bytes, 8 * BLOCK);
	fill(seq, 0, 8);
	/* What is stored counts no more. */
	assert_int_equal(kvpool_seq_commit(seq, tokens, 7 * BT, 0), 7);
	assert_int_equal(kvpool_seq_grow(seq, 10), 10);
	assert_int_equal(kvpool_seq_truncate(seq, 8), 0);
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	check(copy, 8);
	kvpool_seq_free(copy);
}

/* Nothing takes them out of a full pool; nor what was stored of them while it is in use. */
static void they_stay_while_others_fill_the_pool(void **state)
{
	uint64_t before;

	kvpool_seq_grow(seq, 20);
	fill(seq, 0, 20);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 15 * BT, 0), 15);
	before = admin_status(&d)->evicted_blocks;
	for (uint64_t c = 100; admin_status(&d)->evicted_blocks < before + 100; c++)
		assert_true(pattern_publish(ns, c, DEPTH) >= 0);
	check(seq, 20);
	assert_int_equal(admin_flush(&d)->kept_blocks, 15);
	check(seq, 20);
	/* The prefix is not in the cache any more: what comes below it stays own. */
	assert_int_equal(kvpool_seq_commit(seq, tokens, 20 * BT, 0), 0);
	assert_int_equal(kvpool_seq_verdict(seq, 17), KVPOOL_NO_PARENT);
	assert_non_null(kvpool_seq_own_block(seq, 17));
	check(seq, 20);
}

/* Its blocks are not used again before it is gone, and the grace after it is over. */
static void the_death_of_an_engine(void **state)
{
	const Kvpool__StatusReply *s;
	int p[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct kvpool *own = pattern_connect(d.socket, "victim");
		struct kvpool_ns *n = pattern_ns(own, "m", BLOCK);
		struct kvpool_seq *victim;

		assert(kvpool_seq_new(n, DEPTH, &victim) == 0);
		assert(kvpool_seq_grow(victim, 30) == 30);
		fill(victim, 0, 30);
		assert(kvpool_seq_commit(victim, tokens, 10 * BT, 0) == 10);
		assert(write(p[1], "", 1) == 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], &byte, 1), 1);
	assert_int_equal(admin_status(&d)->unnamed_bytes, 20 * BLOCK);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	admin_wait_quiet(&d, 1);
	s = admin_status(&d);
	assert_int_equal(s->unnamed_bytes, 0);
	assert_int_equal(s->quarantined_blocks, 20);
	assert_int_equal(s->blocks, 10);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, DEPTH * BT), 10 * BT);
	check(seq, 10);
	close(p[0]);
	close(p[1]);
}

static void the_death_of_the_daemon(void **state)
{
	struct kvpool_seq *copy;

	kvpool_seq_grow(seq, 12);
	fill(seq, 0, 12);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 8 * BT, 0), 8);
	daemon_kill(&d);
	check(seq, 12);
	fill(seq, 11, 12);
	assert_int_equal(kvpool_seq_grow(seq, 13), -ENOTCONN);
	assert_int_equal(daemon_again(&d, NULL), 0);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 12 * BT, 0), -ENOTCONN);
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	kvpool_seq_free(seq);
	seq = copy;
	check(seq, 12);
	assert_int_equal(kvpool_seq_grow(seq, 13), 13);
	fill(seq, 12, 13);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 13 * BT, 0), 13);
	check(seq, 13);
	assert_int_equal(admin_status(&d)->blocks, 13);
}

/* The session ends, the program lives: the blocks stay its own until it lets go. */
static void a_kicked_engine(void **state)
{
	struct raw *admin = raw_open(d.admin);
	Kvpool__Kick m = KVPOOL__KICK__INIT;

	kvpool_seq_grow(seq, 12);
	fill(seq, 0, 12);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 8 * BT, 0), 8);
	m.session = client(admin)->session;
	raw_call(admin, OP_KICK, &m.base);
	raw_close(admin);
	assert_int_equal(kvpool_reconnect(pool), 0);
	for (uint64_t c = 100; admin_status(&d)->evicted_blocks < 100; c++)
		assert_true(pattern_publish(ns, c, DEPTH) >= 0);
	check(seq, 12);
	assert_int_equal(kvpool_seq_grow(seq, 13), -ENOTCONN);
	assert_int_equal(admin_status(&d)->quarantined_bytes, 4 * BLOCK);
}

static void wrong_requests_are_refused(void **state)
{
	struct raw *r = raw_hello(d.socket, "wrong");
	uint32_t n = raw_ns(r, "raw");
	Kvpool__Reserve m = KVPOOL__RESERVE__INIT;
	Kvpool__Commit c = KVPOOL__COMMIT__INIT;
	const Kvpool__ReserveReply *g;
	uint8_t keys[2 * 32];
	uint32_t desc, crc = 0;
	uint64_t gen;

	raw_keys(1, keys, 2);
	m.ns = n;
	raw_send(r, OP_RESERVE, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "keys");
	m.unnamed = 1;
	m.keys = (ProtobufCBinaryData){ 32, keys };
	raw_send(r, OP_RESERVE, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "unnamed");
	m.keys.len = 0;
	m.parent = (ProtobufCBinaryData){ 32, keys };
	raw_send(r, OP_RESERVE, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "unnamed");
	m.parent.len = 0;
	m.unnamed = FRAME_KEYS_MAX + 1;
	raw_send(r, OP_RESERVE, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "unnamed");
	m.unnamed = 1;
	g = raw_call(r, OP_RESERVE, &m.base);
	assert_int_equal(g->verdict.len, 1);
	desc = g->desc[0];
	gen = g->gen[0];
	c.n_desc = c.n_gen = c.n_crc = 1;
	c.desc = &desc;
	c.gen = &gen;
	c.crc = &crc;
	c.keys = (ProtobufCBinaryData){ 64, keys };
	raw_send(r, OP_COMMIT, &c.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "keys");
	c.keys.len = 0;
	c.parent = (ProtobufCBinaryData){ 32, keys };
	raw_send(r, OP_COMMIT, &c.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "keys");
	c.parent.len = 0;
	assert_int_equal(
		((const Kvpool__CommitReply *)raw_call(r, OP_COMMIT, &c.base))->verdict.data[0],
		VERDICT_NO_PARENT);
	raw_close(r);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(status_shows_what_is_held),
		cmocka_unit_test_setup_teardown(the_quota_of_the_configuration, setup_quota,
						teardown),
		TEST(they_stay_while_others_fill_the_pool),
		TEST(the_death_of_an_engine),
		TEST(the_death_of_the_daemon),
		TEST(a_kicked_engine),
		TEST(wrong_requests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
