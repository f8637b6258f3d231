/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators do to a pool that is in use: pins, kicks, resets of counters; and what clients say
 * of the future. With the library as the client, and every error over the socket.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hex.h"
#include "proto/check.h"
#include "client/kvpool-hint.h"
#include "tests/integration/admin.h"
#include "tests/integration/daemon.h"
#include "tests/integration/pattern.h"
#include "tests/integration/raw.h"

#define BT     PATTERN_BLOCK_TOKENS
#define BYTES  4096u
#define LEN    100u  /* blocks of a chain */
#define BLOCKS 4096u /* of the whole pool */

static struct daemon d;
static struct raw *admin;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;

static int setup(void **state)
{
	assert_int_equal(daemon_start(&d, NULL), 0);
	admin = raw_open(d.admin);
	pool = pattern_connect(d.socket, "engine");
	ns = pattern_ns(pool, "m", BYTES);
	assert_int_equal(kvpool_lease_new(pool, 4096, &lease), 0);
	return 0;
}

static int teardown(void **state)
{
	raw_ping(admin);
	admin_check_sums(admin_status(&d));
	raw_close(admin);
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	assert_int_equal(daemon_end(&d), 0);
	return 0;
}

/* Publishes other chains until all that can go is gone. */
static void press(void)
{
	for (uint64_t c = 1000; c < 1000 + 2 * BLOCKS / LEN; c++)
		assert_int_equal(pattern_publish(ns, c, LEN), LEN);
}

static size_t cached(uint64_t chain)
{
	size_t n = pattern_acquire(ns, lease, chain, LEN);

	kvpool_release(lease);
	return n;
}

static void chain_keys(uint64_t chain, struct kvpool_key *keys)
{
	int32_t tokens[LEN * BT + 1];

	pattern_tokens(chain, LEN, tokens);
	assert(kvpool_hash(ns, NULL, tokens, LEN * BT, keys, LEN) == LEN);
}

static void pin_init(Kvpool__Pin *m, struct kvpool_key *keys, uint64_t chain, size_t n)
{
	kvpool__pin__init(m);
	chain_keys(chain, keys);
	m->namespace_ = (char *)"m";
	m->keys = (ProtobufCBinaryData){ n * sizeof(*keys), (uint8_t *)keys };
}

static const Kvpool__PinReply *pin(uint64_t chain, size_t n, const char *label)
{
	struct kvpool_key keys[LEN];
	Kvpool__Pin m;

	pin_init(&m, keys, chain, n);
	m.label = (char *)label;
	return raw_call(admin, OP_PIN, &m.base);
}

static const Kvpool__UnpinReply *unpin(uint64_t number, const char *label, int all)
{
	Kvpool__Unpin m = KVPOOL__UNPIN__INIT;

	m.pin = number;
	m.label = (char *)label;
	m.all = all;
	return raw_call(admin, OP_UNPIN, &m.base);
}

static const Kvpool__PinsReply *pins(uint64_t after)
{
	Kvpool__Pins m = KVPOOL__PINS__INIT;

	m.after = after;
	return raw_call(admin, OP_PINS, &m.base);
}

static void a_pinned_prefix_stays(void **state)
{
	const Kvpool__PinReply *r;
	const Kvpool__PinsReply *list;
	const Kvpool__StatusReply *s;

	pattern_publish(ns, 1, LEN);
	r = pin(1, 60, "system prompt");
	assert_int_equal(r->pin, 1);
	assert_int_equal(strlen(r->id), 16);
	assert_int_equal(r->tokens, 60 * BT);
	assert_int_equal(r->asked_tokens, 60 * BT);
	assert_int_equal(r->bytes, 60 * BYTES);
	assert_int_equal(r->used_bytes, 60 * BYTES);
	assert_string_equal(r->why, "");
	list = pins(0);
	assert_int_equal(list->n_items, 1);
	assert_string_equal(list->items[0]->label, "system prompt");
	assert_string_equal(list->items[0]->namespace_, "m");
	assert_int_equal(list->items[0]->tokens, 60 * BT);
	assert_int_equal(list->items[0]->bytes, 60 * BYTES);
	assert_int_equal(list->items[0]->priority, PROTO_PRIORITY_DEFAULT);
	assert_int_equal(list->items[0]->left_ns, 0);
	assert_int_equal(list->next, 0);
	assert_int_equal(list->budget_bytes, (64ull << 20) * 20 / 100);
	s = admin_status(&d);
	assert_int_equal(s->pins, 1);
	assert_int_equal(s->pinned_bytes, 60 * BYTES);
	assert_int_equal(s->leased_bytes, 0);
	press();
	assert_int_equal(cached(1), 60);
	assert_int_equal(unpin(0, "system prompt", 0)->bytes, 60 * BYTES);
	press();
	assert_int_equal(cached(1), 0);
}

static void a_pin_can_be_named_by_its_id(void **state)
{
	Kvpool__Pin m = KVPOOL__PIN__INIT;
	struct kvpool_key keys[LEN];
	char hex[2 * sizeof(keys[0]) + 1];
	const Kvpool__PinReply *r;

	pattern_publish(ns, 1, LEN);
	chain_keys(1, keys);
	hex_encode(&keys[LEN - 1], sizeof(keys[0]), hex);
	m.id = hex;
	m.ttl_s = 3600;
	r = raw_call(admin, OP_PIN, &m.base);
	assert_int_equal(r->tokens, LEN * BT);
	assert_memory_equal(r->id, hex, 16);
	assert_in_range(pins(0)->items[0]->left_ns, 3500000000000ull, 3600000000000ull);
	hex[16] = '\0';
	m.namespace_ = (char *)"m";
	r = raw_call(admin, OP_PIN, &m.base);
	assert_int_equal(r->pin, 1); /* renewed */
	hex[1] = '\0';               /* 100 blocks, 16 digits */
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_AMBIGUOUS, "id");
	m.id = (char *)"00000000000000000000";
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_NO_OBJECT, "id");
	m.id = (char *)"xyz";
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_BAD_FIELD, "id");
}

static void a_pin_goes_as_far_as_it_can(void **state)
{
	const Kvpool__PinReply *r;
	struct kvpool_key keys[LEN];
	Kvpool__Pin m;

	pattern_publish(ns, 1, 40);
	r = pin(1, LEN, "");
	assert_int_equal(r->tokens, 40 * BT);
	assert_int_equal(r->asked_tokens, LEN * BT);
	assert_string_equal(r->why, "not cached");
	pin_init(&m, keys, 2, LEN);
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_NO_OBJECT, "keys");
	/* The budget is 3276 blocks. */
	for (uint64_t c = 10; c < 42; c++) {
		assert_int_equal(pattern_publish(ns, c, LEN), LEN);
		assert_string_equal(pin(c, LEN, "")->why, "");
	}
	assert_int_equal(pattern_publish(ns, 42, LEN), LEN);
	r = pin(42, LEN, "");
	assert_int_equal(r->tokens, 36 * BT);
	assert_string_equal(r->why, "budget");
	assert_in_range(r->budget_bytes - r->used_bytes, 0, BYTES - 1);
	pattern_publish(ns, 43, LEN);
	pin_init(&m, keys, 43, LEN);
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_LIMIT, NULL);
	assert_int_equal(unpin(0, "", 1)->pins, 34);
	assert_int_equal(admin_status(&d)->pinned_bytes, 0);
}

static void requests_for_pins_that_are_none(void **state)
{
	struct kvpool_key keys[LEN];
	Kvpool__Unpin u = KVPOOL__UNPIN__INIT;
	Kvpool__Pin m;

	pattern_publish(ns, 1, LEN);
	pin_init(&m, keys, 1, 5);
	m.id = (char *)"abcdef";
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_BAD_FIELD, "id");
	m.id = (char *)"";
	m.keys.len = 0;
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_BAD_FIELD, "keys");
	pin_init(&m, keys, 1, 5);
	m.namespace_ = (char *)"n";
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_NO_OBJECT, "namespace");
	m.namespace_ = (char *)"m";
	m.label = (char *)"two\nlines";
	raw_send(admin, OP_PIN, &m.base);
	raw_expect_error(admin, ERROR_BAD_FIELD, "label");
	raw_send(admin, OP_UNPIN, &u.base);
	raw_expect_error(admin, ERROR_BAD_FIELD, "pin");
	u.pin = 7;
	u.all = 1;
	raw_send(admin, OP_UNPIN, &u.base);
	raw_expect_error(admin, ERROR_BAD_FIELD, "pin");
	u.all = 0;
	raw_send(admin, OP_UNPIN, &u.base);
	raw_expect_error(admin, ERROR_NO_OBJECT, "pin");
	u.pin = 0;
	u.label = (char *)"nobody";
	raw_send(admin, OP_UNPIN, &u.base);
	raw_expect_error(admin, ERROR_NO_OBJECT, "label");
	assert_int_equal(unpin(0, "", 1)->pins, 0);
	assert_int_equal(pins(0)->n_items, 0);
}

/* Many pins are listed page by page, each once. */
static void pins_are_paged(void **state)
{
	const Kvpool__PinsReply *r;
	uint64_t after = 0, expected = 1;
	char label[PROTO_TEXT_MAX + 1];

	pattern_publish(ns, 1, LEN);
	for (unsigned int i = 1; i <= 150; i++) {
		memset(label, 'x', sizeof(label));
		snprintf(label + PROTO_TEXT_MAX - 4, 5, "%04u", i);
		assert_int_equal(pin(1, 1 + i % LEN, label)->pin, i);
	}
	do {
		r = pins(after);
		for (size_t i = 0; i < r->n_items; i++)
			assert_int_equal(r->items[i]->pin, expected++);
		after = r->next;
	} while (after);
	assert_int_equal(expected, 151);
	assert_int_equal(r->used_bytes, LEN * BYTES);
}

static void a_flush_drops_pins(void **state)
{
	const Kvpool__FlushReply *r;

	pattern_publish(ns, 1, LEN);
	pin(1, 60, "a");
	pin(1, 70, "b");
	r = admin_flush(&d);
	assert_int_equal(r->dropped_pins, 2);
	assert_int_equal(r->freed_blocks, LEN);
	assert_int_equal(pins(0)->n_items, 0);
}

static void pins_end_with_their_time(void **state)
{
	struct kvpool_key keys[LEN];
	Kvpool__Pin m;

	pattern_publish(ns, 1, LEN);
	pin_init(&m, keys, 1, 60);
	m.ttl_s = 1;
	raw_call(admin, OP_PIN, &m.base);
	for (unsigned int i = 0; i < 200 && pins(0)->n_items; i++)
		usleep(50000);
	assert_int_equal(pins(0)->n_items, 0);
}

static uint64_t session_of(const char *name)
{
	Kvpool__Clients m = KVPOOL__CLIENTS__INIT;
	const Kvpool__ClientsReply *r = raw_call(admin, OP_CLIENTS, &m.base);

	for (size_t i = 0; i < r->n_items; i++)
		if (!strcmp(r->items[i]->name, name) && strcmp(r->items[i]->state, "draining"))
			return r->items[i]->session;
	assert(!"no such client");
	return 0;
}

/* A call that is under way when the connection ends fails; the next one connects. */
static void come_back(void)
{
	int r = kvpool_ping(pool);

	if (r < 0) {
		assert_int_equal(r, -ENOTCONN);
		r = kvpool_ping(pool);
	}
	assert_int_equal(r, 0);
}

static void who_is_kicked_goes_on(void **state)
{
	Kvpool__Kick m = KVPOOL__KICK__INIT;
	const Kvpool__KickReply *r;
	struct kvpool_lease *held;
	struct kvpool_stats stats = { .size = sizeof(stats) };

	pattern_publish(ns, 1, LEN);
	assert_int_equal(kvpool_lease_new(pool, 4096, &held), 0);
	assert_int_equal(pattern_acquire(ns, held, 1, LEN), LEN);
	m.session = session_of("engine");
	r = raw_call(admin, OP_KICK, &m.base);
	assert_string_equal(r->name, "engine");
	assert_int_equal(r->pid, getpid());
	assert_int_equal(r->leases, 1);
	raw_send(admin, OP_KICK, &m.base);
	raw_expect_error(admin, ERROR_NO_OBJECT, "session");
	/* It stores as before, on a new connection; what it reads stays where it is. */
	come_back();
	press();
	assert_int_equal(kvpool_get_stats(pool, &stats), 0);
	assert_int_equal(stats.reconnects, 1);
	assert_int_equal(kvpool_lease_blocks(held), LEN);
	for (size_t i = 0; i < LEN; i++)
		assert_true(pattern_check(1, i, kvpool_lease_block(held, i), BYTES));
	assert_int_equal(cached(1), LEN);
	assert_int_equal(admin_status(&d)->ended_kicked, 1);
	assert_int_equal(admin_status(&d)->draining, 1);
	kvpool_lease_free(held);
	kvpool_ping(pool);
	admin_wait_quiet(&d, 1);
	press();
	assert_int_equal(cached(1), 0);
}

static void only_clients_can_be_kicked(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 77, UINT64_MAX };
	Kvpool__Kick m = KVPOOL__KICK__INIT;
	uint64_t engine = session_of("engine");

	/* 1 is the connection of the admin socket that asks. */
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		m.session = numbers[i];
		if (m.session == engine)
			continue;
		raw_send(admin, OP_KICK, &m.base);
		raw_expect_error(admin, ERROR_NO_OBJECT, "session");
	}
	assert_int_equal(kvpool_ping(pool), 0);
}

/* A writer's reservations end with it, as when it hangs up. */
static void what_the_kicked_one_was_writing_is_free(void **state)
{
	Kvpool__Kick m = KVPOOL__KICK__INIT;
	int32_t tokens[LEN * BT + 1];
	struct kvpool_write *w;

	pattern_tokens(5, LEN, tokens);
	assert_int_equal(kvpool_reserve(ns, tokens, LEN * BT, 0, &w), LEN);
	m.session = session_of("engine");
	raw_call(admin, OP_KICK, &m.base);
	come_back();
	assert_int_equal(pattern_publish(ns, 5, LEN), LEN);
	assert_int_equal(cached(5), LEN);
	assert_int_equal(kvpool_write_verdict(w, 0), KVPOOL_STALE);
	kvpool_write_free(w);
}

static void counters_begin_again(void **state)
{
	Kvpool__StatsReset m = KVPOOL__STATS_RESET__INIT;
	Kvpool__Status raw = KVPOOL__STATUS__INIT;
	const Kvpool__StatusReply *s;
	struct raw *gone = raw_hello(d.socket, "gone");

	pattern_publish(ns, 1, LEN);
	assert_int_equal(cached(1), LEN);
	assert_int_equal(cached(2), 0);
	raw_close(gone);
	admin_wait_quiet(&d, 1);
	s = admin_status(&d);
	assert_int_equal(s->connects, 2);
	assert_int_equal(s->ended_crash, 1);
	assert_int_equal(s->published_blocks, LEN);
	assert_true(s->asked_tokens && s->hit_tokens && s->miss_tokens);
	assert_in_range(((const Kvpool__StatsResetReply *)raw_call(admin, OP_STATS_RESET, &m.base))
				->counters_ns,
			1, UINT64_MAX);
	s = admin_status(&d);
	admin_check_sums(s);
	assert_int_equal(s->connects, 1); /* who is connected now */
	assert_int_equal(s->ended_crash, 0);
	assert_int_equal(s->published_blocks, 0);
	assert_int_equal(s->asked_tokens, 0);
	assert_int_equal(s->lookups, 0);
	assert_int_equal(s->blocks, LEN); /* no counter */
	assert_true(s->counters_ns < s->uptime_ns);
	assert_int_equal(cached(1), LEN);
	assert_int_equal(cached(2), 0);
	s = admin_status(&d);
	admin_check_sums(s);
	assert_int_equal(s->hit_tokens, LEN * BT);
	assert_int_equal(s->lookups, 2);
	raw.raw = 1;
	s = raw_call(admin, OP_STATUS, &raw.base);
	admin_check_sums(s);
	assert_int_equal(s->published_blocks, LEN);
	assert_int_equal(s->hit_tokens, 2 * LEN * BT);
	assert_int_equal(s->connects, 2);
	assert_int_equal(s->counters_ns, s->uptime_ns);
}

static int hint(uint64_t chain, unsigned int reuse_s, unsigned int priority, int ended)
{
	const struct kvpool_hint h = { sizeof(h), reuse_s, priority, ended };
	int32_t tokens[LEN * BT + 1];

	pattern_tokens(chain, LEN, tokens);
	return kvpool_hint(ns, tokens, LEN * BT, &h);
}

static void hints_change_what_goes(void **state)
{
	pattern_publish(ns, 1, LEN);
	pattern_publish(ns, 2, LEN);
	for (uint64_t c = 10; c < 10 + BLOCKS / LEN - 4; c++)
		pattern_publish(ns, c, LEN);
	assert_int_equal(kvpool_features(pool) & KVPOOL_HINTS, KVPOOL_HINTS);
	assert_int_equal(hint(1, 600, 0, 0), 1);
	assert_int_equal(hint(10, 0, 0, 1), LEN);
	assert_int_equal(hint(99, 600, 0, 0), 0);
	assert_int_equal(admin_status(&d)->hints, 2); /* what is not cached need not be told */
	assert_int_equal(cached(10), LEN);            /* not at once; and that revived it */
	assert_int_equal(hint(11, 0, 0, 1), LEN);
	for (uint64_t c = 200; c < 205; c++)
		pattern_publish(ns, c, LEN);
	assert_int_equal(cached(11), 0);
	assert_int_equal(cached(1), LEN);
	press();
	assert_int_equal(cached(1), LEN);
	assert_int_equal(cached(2), 0);
	assert_int_equal(hint(1, 0, 1, 0), LEN);
	press();
	assert_int_equal(cached(1), 0);
}

static int setup_expiring(void **state)
{
	static const char *const args[] = { "--cache.default_ttl=1s", "--namespace.slow*.ttl=1h",
					    "--namespace.slow*.priority=80", NULL };

	assert_int_equal(daemon_start(&d, args), 0);
	admin = raw_open(d.admin);
	pool = pattern_connect(d.socket, "engine");
	ns = pattern_ns(pool, "m", BYTES);
	assert_int_equal(kvpool_lease_new(pool, 4096, &lease), 0);
	return 0;
}

/* What nobody uses goes by itself; a reader, and another TTL, keep it. */
static void blocks_expire(void **state)
{
	struct kvpool_ns *slow = pattern_ns(pool, "slow-model", BYTES);
	Kvpool__Namespaces m = KVPOOL__NAMESPACES__INIT;
	const Kvpool__NamespacesReply *r;
	const Kvpool__StatusReply *s;

	pattern_publish(ns, 1, LEN);
	pattern_publish(ns, 2, LEN);
	pattern_publish(slow, 3, LEN);
	assert_int_equal(pattern_acquire(ns, lease, 1, LEN), LEN);
	for (unsigned int i = 0; i < 200 && admin_status(&d)->blocks > 2 * LEN; i++)
		usleep(50000);
	s = admin_status(&d);
	assert_int_equal(s->blocks, 2 * LEN);
	assert_int_equal(s->expired_blocks, LEN);
	assert_int_equal(s->evicted_blocks, LEN);
	assert_int_equal(kvpool_lease_blocks(lease), LEN);
	assert_true(pattern_check(1, LEN - 1, kvpool_lease_block(lease, LEN - 1), BYTES));
	r = raw_call(admin, OP_NAMESPACES, &m.base);
	assert_int_equal(r->n_items, 2);
	assert_int_equal(r->items[0]->ttl_ns, 1000000000);
	assert_int_equal(r->items[0]->priority, PROTO_PRIORITY_DEFAULT);
	assert_int_equal(r->items[0]->expired_blocks, LEN);
	assert_int_equal(r->items[1]->ttl_ns, 3600000000000);
	assert_int_equal(r->items[1]->priority, 80);
	assert_int_equal(r->items[1]->expired_blocks, 0);
	kvpool_release(lease);
	kvpool_ns_close(slow);
}

static void configure(const char *key, const char *value)
{
	Kvpool__ConfigSet m = KVPOOL__CONFIG_SET__INIT;

	m.key = (char *)key;
	m.value = (char *)value;
	raw_call(admin, OP_CONFIG_SET, &m.base);
}

/* Keys of the configuration count for what is there. */
static void another_configuration_counts_at_once(void **state)
{
	const Kvpool__PinsReply *r;

	pattern_publish(ns, 1, LEN);
	pattern_publish(ns, 2, LEN);
	pin(1, LEN, "first");
	pin(2, LEN, "second");
	configure("cache.pin_budget", "600KiB");
	r = pins(0);
	assert_int_equal(r->budget_bytes, 600 << 10);
	assert_int_equal(r->n_items, 1);
	assert_string_equal(r->items[0]->label, "first");
	configure("cache.default_ttl", "1s");
	for (unsigned int i = 0; i < 200 && admin_status(&d)->blocks > LEN; i++)
		usleep(50000);
	assert_int_equal(admin_status(&d)->expired_blocks, LEN);
	assert_int_equal(cached(1), LEN);
}

static void hints_that_are_none(void **state)
{
	struct raw *r = raw_hello(d.socket, "raw");
	uint32_t n = raw_ns(r, "raw");
	Kvpool__Hint m = KVPOOL__HINT__INIT;
	uint8_t key[32] = { 1 };

	m.ns = n;
	m.key = (ProtobufCBinaryData){ sizeof(key), key };
	raw_send(r, OP_HINT, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "ended");
	m.ended = 1;
	m.reuse_s = 5;
	raw_send(r, OP_HINT, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "ended");
	m.reuse_s = 0;
	assert_int_equal(((const Kvpool__HintReply *)raw_call(r, OP_HINT, &m.base))->blocks, 0);
	m.ns = n + 1;
	raw_send(r, OP_HINT, &m.base);
	raw_expect_error(r, ERROR_NO_NAMESPACE, "ns");
	m.ns = n;
	m.ended = 0;
	m.priority = PROTO_PRIORITY_MAX + 1;
	raw_send(r, OP_HINT, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "priority");
	m.priority = 1;
	m.key.len = 31;
	raw_send(r, OP_HINT, &m.base);
	raw_expect_error(r, ERROR_BAD_FIELD, "key");
	raw_close(r);
	admin_wait_quiet(&d, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_pinned_prefix_stays),
		TEST(a_pin_can_be_named_by_its_id),
		TEST(a_pin_goes_as_far_as_it_can),
		TEST(requests_for_pins_that_are_none),
		TEST(pins_are_paged),
		TEST(a_flush_drops_pins),
		TEST(pins_end_with_their_time),
		TEST(who_is_kicked_goes_on),
		TEST(only_clients_can_be_kicked),
		TEST(what_the_kicked_one_was_writing_is_free),
		TEST(counters_begin_again),
		TEST(hints_change_what_goes),
		cmocka_unit_test_setup_teardown(blocks_expire, setup_expiring, teardown),
		TEST(another_configuration_counts_at_once),
		TEST(hints_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
