/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREFIXES, EXPLAIN and REQUESTS of a real daemon: what they say of how chains part, whom they
 * name, how they are paged; and that nothing of what a client computes with is ever told or logged.
 */
#undef NDEBUG
#include <assert.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hex.h"
#include "proto/reason.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"
#include "tests/integration/raw.h"

#define BT    PATTERN_BLOCK_TOKENS
#define MODEL "explain"
#define BLOCK 4096u

struct fixture {
	struct daemon d;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct raw *admin;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert(f && daemon_start(&f->d, NULL) == 0);
	f->pool = pattern_connect(f->d.socket, "first");
	f->ns = pattern_ns(f->pool, MODEL, BLOCK);
	assert(kvpool_lease_new(f->pool, 64, &f->lease) == 0);
	f->admin = raw_open(f->d.admin);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	raw_close(f->admin);
	kvpool_lease_free(f->lease);
	kvpool_ns_close(f->ns);
	kvpool_close(f->pool);
	daemon_end(&f->d);
	free(f);
	return 0;
}

/* A prompt: same tokens for the same stem, then some of its own. */
static size_t prompt(uint64_t stem, size_t stem_blocks, uint64_t own, size_t own_blocks,
		     int32_t *tokens)
{
	int32_t more[64 * BT + 1];

	pattern_tokens(stem, stem_blocks, tokens);
	pattern_tokens(1000 + own, own_blocks, more);
	memcpy(tokens + stem_blocks * BT, more, (own_blocks * BT + 1) * sizeof(*tokens));
	return (stem_blocks + own_blocks) * BT + 1;
}

static int fill(void *arg, size_t i, void *block)
{
	memset(block, (int)i, BLOCK);
	return 0;
}

/* As an engine does: look, compute the rest, store it. Returns the tokens that were found. */
static size_t serve(struct kvpool_ns *ns, struct kvpool_lease *lease, const int32_t *tokens,
		    size_t n)
{
	size_t found = kvpool_acquire(ns, lease, tokens, n, 0);

	kvpool_release(lease);
	assert_true(kvpool_publish(ns, tokens, n - 1, fill, NULL) >= 0);
	return found;
}

static const Kvpool__PrefixesReply *prefixes(struct fixture *f, const char *ns, uint32_t sort,
					     const char *id)
{
	Kvpool__Prefixes m = KVPOOL__PREFIXES__INIT;

	m.namespace_ = (char *)ns;
	m.sort = sort;
	m.id = (char *)id;
	m.limit = 64;
	return raw_call(f->admin, OP_PREFIXES, &m.base);
}

static Kvpool__Explain explain_of(struct kvpool_ns *ns, const int32_t *tokens, size_t n,
				  struct kvpool_key *keys)
{
	Kvpool__Explain m = KVPOOL__EXPLAIN__INIT;
	size_t n_keys = kvpool_hash(ns, NULL, tokens, n, keys, 64);

	m.namespace_ = (char *)MODEL;
	m.keys = (ProtobufCBinaryData){ n_keys * sizeof(*keys), (uint8_t *)keys };
	return m;
}

static Kvpool__Requests requests_of(const char *client, uint64_t session, uint32_t limit)
{
	Kvpool__Requests m = KVPOOL__REQUESTS__INIT;

	m.client = (char *)client;
	m.session = session;
	m.limit = limit;
	return m;
}

/* A date in the prompt: whatever follows the stem is used once. */
static void a_value_of_each_request_breaks_the_prefix(void **state)
{
	struct fixture *f = *state;
	struct kvpool *pool = pattern_connect(f->d.socket, "second");
	struct kvpool_ns *ns = pattern_ns(pool, MODEL, BLOCK);
	Kvpool__Requests m = requests_of("second", 0, 1);
	const Kvpool__RequestsReply *r;
	const Kvpool__ExplainReply *e;
	const Kvpool__PrefixItem *p;
	struct kvpool_key keys[64];
	struct kvpool_lease *lease;
	int32_t tokens[64 * BT];
	Kvpool__Explain x;
	size_t n;

	assert_int_equal(kvpool_lease_new(pool, 64, &lease), 0);
	for (uint64_t i = 0; i < 20; i++) {
		n = prompt(1, 3, i, 1, tokens);
		assert_int_equal(serve(f->ns, f->lease, tokens, n), i ? 3 * BT : 0);
	}
	n = prompt(1, 3, 77, 2, tokens);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, n, 0), 3 * BT);
	kvpool_release(lease);
	r = raw_call(f->admin, OP_REQUESTS, &m.base);
	assert_int_equal(r->n_items, 1);
	assert_int_equal(r->items[0]->reason, MISS_COLD);
	assert_int_equal(r->items[0]->hit_tokens, 3 * BT);
	assert_int_equal(r->items[0]->children, 20);
	assert_int_equal(r->items[0]->children_once, 20);
	assert_int_equal(r->items[0]->readers, 2);
	p = prefixes(f, MODEL, SORT_HITS, "")->items[0];
	assert_int_equal(p->tokens, 3 * BT);
	assert_int_equal(p->bytes, 3 * BLOCK);
	assert_int_equal(p->hits, 20);
	assert_int_equal(p->hit_tokens, 20 * 3 * BT);
	assert_int_equal(p->readers, 2);
	assert_string_equal(p->writer, "first");
	assert_string_equal(p->namespace_, MODEL);
	assert_int_equal(p->children, 20);
	assert_int_equal(p->children_once, 20);
	assert_true(p->tracked && !p->pinned && p->age_ns >= p->used_ns);
	x = explain_of(ns, tokens, n, keys);
	e = raw_call(f->admin, OP_EXPLAIN, &x.base);
	assert_int_equal(e->present, 3);
	assert_int_equal(e->reason, MISS_COLD);
	assert_int_equal(e->children, 20);
	assert_int_equal(e->children_once, 20);
	assert_int_equal(e->readers, 2);
	assert_string_equal(e->writer, "");
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
}

/* What two clients read, or what goes on, is no value of one request. */
static void what_is_read_by_several_is_not_used_once(void **state)
{
	struct fixture *f = *state;
	struct kvpool *pool = pattern_connect(f->d.socket, "second");
	struct kvpool_ns *ns = pattern_ns(pool, MODEL, BLOCK);
	struct kvpool_key keys[64];
	const Kvpool__ExplainReply *e;
	struct kvpool_lease *lease;
	int32_t tokens[64 * BT];
	Kvpool__Explain x;

	assert_int_equal(kvpool_lease_new(pool, 64, &lease), 0);
	serve(f->ns, f->lease, tokens, prompt(1, 1, 1, 1, tokens));
	serve(f->ns, f->lease, tokens, prompt(1, 1, 2, 1, tokens));
	serve(f->ns, f->lease, tokens, prompt(1, 1, 2, 1, tokens));
	assert_int_equal(serve(ns, lease, tokens, prompt(1, 1, 2, 1, tokens)), 2 * BT);
	serve(f->ns, f->lease, tokens, prompt(1, 1, 3, 2, tokens));
	x = explain_of(ns, tokens, prompt(1, 1, 9, 1, tokens), keys);
	e = raw_call(f->admin, OP_EXPLAIN, &x.base);
	assert_int_equal(e->present, 1);
	assert_int_equal(e->children, 3);
	assert_int_equal(e->children_once, 1);
	/* From the start of the namespace: one stem, which goes on. */
	x = explain_of(ns, tokens, prompt(5, 1, 9, 1, tokens), keys);
	e = raw_call(f->admin, OP_EXPLAIN, &x.base);
	assert_int_equal(e->present, 0);
	assert_int_equal(e->children, 1);
	assert_int_equal(e->children_once, 0);
	assert_string_equal(e->id, "");
	/* All of it is there: nothing is missing. */
	x = explain_of(ns, tokens, prompt(1, 1, 2, 1, tokens), keys);
	e = raw_call(f->admin, OP_EXPLAIN, &x.base);
	assert_int_equal(e->present, 2);
	assert_int_equal(e->reason, MISS_NONE);
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
}

static void prefixes_in_three_orders(void **state)
{
	struct fixture *f = *state;
	const Kvpool__PrefixesReply *r;
	int32_t tokens[64 * BT];

	/* Number of blocks, and so of bytes: 2, 4, 3; hits: 1, 2, 3; first seen in this order. */
	for (unsigned int i = 0; i < 3; i++) {
		size_t blocks = (size_t[]){ 2, 4, 3 }[i];

		pattern_publish(f->ns, i, blocks);
		pattern_tokens(i, blocks, tokens);
		for (unsigned int k = 0; k <= i; k++)
			serve(f->ns, f->lease, tokens, blocks * BT + 1);
		(void)admin_status(&f->d); /* it has heard of them */
	}
	r = prefixes(f, "", SORT_HITS, "");
	assert_int_equal(r->n_items, 3);
	assert_int_equal(r->tracked, 3);
	assert_int_equal(r->items[0]->hits, 3);
	assert_int_equal(r->items[2]->hits, 1);
	r = prefixes(f, "", SORT_BYTES, "");
	assert_int_equal(r->items[0]->tokens, 4 * BT);
	assert_int_equal(r->items[2]->tokens, 2 * BT);
	r = prefixes(f, "", SORT_AGE, "");
	assert_int_equal(r->items[0]->tokens, 2 * BT);
	assert_int_equal(r->items[2]->tokens, 3 * BT);
	admin_flush(&f->d);
	r = prefixes(f, "", SORT_HITS, "");
	assert_int_equal(r->n_items, 0);
	assert_int_equal(r->tracked, 0);
}

static void a_prefix_by_its_id(void **state)
{
	struct fixture *f = *state;
	Kvpool__Prefixes m = KVPOOL__PREFIXES__INIT;
	const Kvpool__PrefixItem *p;
	const Kvpool__ExplainReply *e;
	int32_t tokens[64 * BT];
	struct kvpool_key keys[64];
	Kvpool__Explain x;
	char id[20], *digits = m.id;
	Kvpool__Pin pin = KVPOOL__PIN__INIT;

	pattern_publish(f->ns, 1, 5);
	pattern_tokens(1, 5, tokens);
	x = explain_of(f->ns, tokens, 5 * BT, keys);
	e = raw_call(f->admin, OP_EXPLAIN, &x.base);
	snprintf(id, sizeof(id), "%s", e->id);
	/* Nobody has looked it up yet. */
	p = prefixes(f, "", SORT_HITS, id)->items[0];
	assert_string_equal(p->id, id);
	assert_int_equal(p->tokens, 5 * BT);
	assert_true(!p->tracked && !p->pinned && !p->hits);
	pin.id = id;
	pin.label = (char *)"keep";
	pin.ttl_s = 1000;
	raw_call(f->admin, OP_PIN, &pin.base);
	id[12] = '\0';
	p = prefixes(f, MODEL, SORT_HITS, id)->items[0];
	assert_true(p->pinned && p->pin_left_ns);
	assert_string_equal(p->pin_label, "keep");
	m.id = id;
	id[0] = id[0] == '0' ? '1' : '0';
	raw_send(f->admin, OP_PREFIXES, &m.base);
	raw_expect_error(f->admin, ERROR_NO_OBJECT, "id");
	m.id = (char *)"what";
	raw_send(f->admin, OP_PREFIXES, &m.base);
	raw_expect_error(f->admin, ERROR_BAD_FIELD, "id");
	m.id = digits;
	m.namespace_ = (char *)"none";
	raw_send(f->admin, OP_PREFIXES, &m.base);
	raw_expect_error(f->admin, ERROR_NO_OBJECT, "namespace");
}

/* Two namespaces of one model: an operation that means one asks which. */
static void an_ambiguous_namespace(void **state)
{
	struct fixture *f = *state;
	struct kvpool_ns *ns = pattern_ns(f->pool, MODEL, 2 * BLOCK);
	struct kvpool_key keys[64];
	int32_t tokens[64 * BT];
	Kvpool__Explain x;

	pattern_tokens(1, 2, tokens);
	x = explain_of(f->ns, tokens, 2 * BT, keys);
	raw_send(f->admin, OP_EXPLAIN, &x.base);
	raw_expect_error(f->admin, ERROR_AMBIGUOUS, "namespace");
	x.namespace_ = (char *)"0";
	raw_call(f->admin, OP_EXPLAIN, &x.base);
	x.namespace_ = (char *)"9";
	raw_send(f->admin, OP_EXPLAIN, &x.base);
	raw_expect_error(f->admin, ERROR_NO_OBJECT, "namespace");
	x.namespace_ = (char *)"0";
	x.keys.len = 0;
	raw_send(f->admin, OP_EXPLAIN, &x.base);
	raw_expect_error(f->admin, ERROR_BAD_FIELD, "keys");
	kvpool_ns_close(ns);
}

/* 300 lookups, of which 256 are kept; every third one misses something. */
static void requests_come_in_pages(void **state)
{
	struct fixture *f = *state;
	Kvpool__Requests m = requests_of("first", 0, 256);
	uint64_t last = 0, n = 0;

	pattern_publish(f->ns, 1, 2);
	for (unsigned int i = 0; i < 300; i++)
		pattern_acquire(f->ns, f->lease, 1, i % 3 ? 2 : 3);
	kvpool_release(f->lease);
	do {
		const Kvpool__RequestsReply *r = raw_call(f->admin, OP_REQUESTS, &m.base);

		for (size_t i = 0; i < r->n_items; i++, n++) {
			assert_true(!last || r->items[i]->number == last - 1);
			last = r->items[i]->number;
		}
		m.before = r->next;
	} while (m.before);
	assert_int_equal(n, 256);
	m.misses = 1;
	n = 0;
	do {
		const Kvpool__RequestsReply *r = raw_call(f->admin, OP_REQUESTS, &m.base);

		for (size_t i = 0; i < r->n_items; i++, n++)
			assert_int_equal(r->items[i]->reason, MISS_COLD);
		m.before = r->next;
	} while (m.before);
	assert_int_equal(n, 85);
}

static void requests_of_whom(void **state)
{
	struct fixture *f = *state;
	struct kvpool *pool = pattern_connect(f->d.socket, "second");
	struct kvpool_ns *ns = pattern_ns(pool, MODEL, BLOCK);
	const Kvpool__RequestsReply *r;
	struct kvpool_lease *lease;
	Kvpool__Requests m = requests_of("", 0, 10);
	uint64_t session;

	assert_int_equal(kvpool_lease_new(pool, 64, &lease), 0);
	pattern_acquire(f->ns, f->lease, 1, 2);
	(void)admin_status(&f->d);
	pattern_acquire(ns, lease, 2, 2);
	r = raw_call(f->admin, OP_REQUESTS, &m.base);
	assert_int_equal(r->n_items, 2);
	assert_string_equal(r->items[0]->client, "second");
	assert_string_equal(r->items[1]->client, "first");
	session = r->items[0]->session;
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	admin_wait_quiet(&f->d, 1);
	/* It is gone, and asked about all the same. */
	m.session = session;
	r = raw_call(f->admin, OP_REQUESTS, &m.base);
	assert_int_equal(r->n_items, 1);
	assert_string_equal(r->items[0]->client, "second");
	m.client = (char *)"first";
	raw_send(f->admin, OP_REQUESTS, &m.base);
	raw_expect_error(f->admin, ERROR_BAD_FIELD, "client");
	m.session = 0;
	m.client = (char *)"third";
	raw_send(f->admin, OP_REQUESTS, &m.base);
	raw_expect_error(f->admin, ERROR_NO_OBJECT, "client");
	m.session = 4711;
	m.client = (char *)"";
	raw_send(f->admin, OP_REQUESTS, &m.base);
	raw_expect_error(f->admin, ERROR_NO_OBJECT, "session");
}

/* Numbers that stand nowhere else: a run of them would be the text of a prompt. */
#define CANARY 1957113600

struct canary {
	int32_t tokens[8 * BT + 1];
	struct kvpool_key keys[8];
};

static int holds(const void *in, size_t n, const void *what, size_t n_what)
{
	return memmem(in, n, what, n_what) != NULL;
}

/* One token is enough, as a number of any kind or as text; a whole key would let one be tried. */
static void expect_clean(const struct canary *c, const void *in, size_t n)
{
	for (size_t i = 0; i < 8 * BT + 1; i++) {
		uint32_t big = __builtin_bswap32((uint32_t)c->tokens[i]);
		uint8_t varint[5];
		char text[16];

		for (unsigned int k = 0; k < 5; k++)
			varint[k] = (uint8_t)(((uint32_t)c->tokens[i] >> 7 * k & 0x7f) |
					      (k < 4 ? 0x80 : 0));
		assert_false(holds(in, n, &c->tokens[i], sizeof(int32_t)));
		assert_false(holds(in, n, &big, sizeof(big)));
		assert_false(holds(in, n, varint, sizeof(varint)));
		assert_false(holds(in, n, text, (size_t)sprintf(text, "%d", c->tokens[i])));
		assert_false(holds(in, n, text, (size_t)sprintf(text, "%x", c->tokens[i])));
	}
	for (size_t i = 0; i < 8; i++) {
		const char *rest = (const char *)&c->keys[i] + 8;
		char hex[17];

		hex_encode(rest, 8, hex);
		assert_false(holds(in, n, rest, 8));
		assert_false(holds(in, n, hex, 16));
	}
}

static void ask_all(struct raw *admin, const struct canary *c)
{
	Kvpool__Status status = KVPOOL__STATUS__INIT;
	Kvpool__Namespaces namespaces = KVPOOL__NAMESPACES__INIT;
	Kvpool__Clients clients = KVPOOL__CLIENTS__INIT;
	Kvpool__Prefixes prefixes = KVPOOL__PREFIXES__INIT;
	Kvpool__Requests requests = requests_of("", 0, 256);
	Kvpool__Explain explain = KVPOOL__EXPLAIN__INIT;
	const struct {
		enum proto_op op;
		const ProtobufCMessage *m;
	} all[] = {
		{ OP_STATUS, &status.base },     { OP_NAMESPACES, &namespaces.base },
		{ OP_CLIENTS, &clients.base },   { OP_PREFIXES, &prefixes.base },
		{ OP_REQUESTS, &requests.base }, { OP_EXPLAIN, &explain.base },
	};

	explain.namespace_ = (char *)MODEL;
	explain.keys = (ProtobufCBinaryData){ sizeof(c->keys), (uint8_t *)c->keys };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		raw_call(admin, all[i].op, all[i].m);
		expect_clean(c, admin->in, admin->n);
	}
}

static size_t read_all(int fd, char *to, size_t room)
{
	ssize_t n = pread(fd, to, room, 0);

	assert_true(n > 0 && (size_t)n < room);
	return (size_t)n;
}

/* Everything that it does to a prompt, with a log that holds everything it says. */
static void no_token_is_told_or_logged(void **state)
{
	static const char *const args[] = { "--log-level", "debug", NULL };
	static char text[1 << 20];
	char path[] = "/tmp/kvpool-canary-XXXXXX";
	int log = mkstemp(path), saved = dup(STDERR_FILENO);
	struct canary c;
	struct fixture *f;

	assert_true(log >= 0 && saved >= 0 && dup2(log, STDERR_FILENO) >= 0);
	unlink(path);
	setup(state);
	f = *state;
	daemon_stop(&f->d);
	assert_int_equal(daemon_again(&f->d, args), 0);
	dup2(saved, STDERR_FILENO);
	close(saved);
	raw_close(f->admin);
	f->admin = raw_open(f->d.admin);
	assert_int_equal(kvpool_reconnect(f->pool), 0);
	for (size_t i = 0; i < 8 * BT + 1; i++)
		c.tokens[i] = CANARY + (int32_t)(i * 7919);
	assert_int_equal(kvpool_hash(f->ns, NULL, c.tokens, 8 * BT, c.keys, 8), 8);
	serve(f->ns, f->lease, c.tokens, 4 * BT + 1);
	ask_all(f->admin, &c);
	assert_int_equal(serve(f->ns, f->lease, c.tokens, 8 * BT + 1), 4 * BT);
	ask_all(f->admin, &c);
	admin_flush(&f->d);
	serve(f->ns, f->lease, c.tokens, 2 * BT);
	ask_all(f->admin, &c);
	daemon_stop(&f->d);
	expect_clean(&c, text, read_all(log, text, sizeof(text)));
	assert_true(holds(text, strlen(text), "namespace opened", 16));
	close(log);
	teardown(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_value_of_each_request_breaks_the_prefix),
		TEST(what_is_read_by_several_is_not_used_once),
		TEST(prefixes_in_three_orders),
		TEST(a_prefix_by_its_id),
		TEST(an_ambiguous_namespace),
		TEST(requests_come_in_pages),
		TEST(requests_of_whom),
		cmocka_unit_test(no_token_is_told_or_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
