/* SPDX-License-Identifier: Apache-2.0 */
/* Hints: which key is told, what is refused before it is sent, and daemons that know none. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/kvpool-hint.h"
#include "client/handle.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BLOCKS 40u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

/* The last hint that came. */
static struct {
	struct kvpool_key key;
	uint32_t ns, reuse_s, priority;
	int ended;
} came;

static enum fake_answer take_hint(struct fake_request *rq, void *arg)
{
	const Kvpool__Hint *m = (const Kvpool__Hint *)rq->message;
	Kvpool__HintReply r = KVPOOL__HINT_REPLY__INIT;

	if (rq->head.op != OP_HINT)
		return FAKE_USUAL;
	came.ns = m->ns;
	memcpy(&came.key, m->key.data, sizeof(came.key));
	came.reuse_s = m->reuse_s;
	came.priority = m->priority;
	came.ended = m->ended;
	r.blocks = fake_number(arg);
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static int setup(void **state)
{
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	fake_script_number(&fake, take_hint, 5);
	memset(&came, 0, sizeof(came));
	return 0;
}

static int teardown(void **state)
{
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static int hint(unsigned int reuse_s, unsigned int priority, int ended)
{
	const struct kvpool_hint h = { sizeof(h), reuse_s, priority, ended };

	return kvpool_hint(ns, tokens, BLOCKS * BT + 1, &h);
}

static void the_deepest_cached_block_is_told(void **state)
{
	for (uint32_t n = 1; n <= BLOCKS; n++) {
		fake_publish(&fake, keys, n - 1, n);
		assert_int_equal(hint(60, 0, 0), 5);
		assert_memory_equal(&came.key, &keys[n - 1], sizeof(came.key));
	}
	assert_int_equal(came.ns, FAKE_NS);
	assert_int_equal(came.reuse_s, 60);
	assert_int_equal(came.priority, 0);
	assert_int_equal(came.ended, 0);
	assert_int_equal(hint(0, 0, 1), 5);
	assert_int_equal(came.ended, 1);
	assert_int_equal(hint(1, 99, 0), 5);
	assert_int_equal(came.priority, 99);
}

static void what_is_not_cached_is_not_told(void **state)
{
	assert_int_equal(hint(60, 0, 0), 0);
	assert_int_equal(fake_seen(&fake, OP_HINT), 0);
}

static void keys_and_chains_do_as_well(void **state)
{
	const struct kvpool_hint h = { .size = sizeof(h), .ended = 1 };
	struct kvpool_chain *chain;

	fake_publish(&fake, keys, 0, 7);
	assert_int_equal(kvpool_hint_keys(ns, keys, 4, &h), 5);
	assert_memory_equal(&came.key, &keys[3], sizeof(came.key));
	assert_int_equal(kvpool_hint_keys(ns, keys, BLOCKS, &h), 5);
	assert_memory_equal(&came.key, &keys[6], sizeof(came.key));
	assert_int_equal(kvpool_hint_keys(ns, keys, 0, &h), 0);
	assert_int_equal(kvpool_chain_new(ns, &chain), 0);
	assert_int_equal(kvpool_hint_chain(chain, &h), 0);
	assert_int_equal(kvpool_chain_append(chain, tokens, 5 * BT + 3), 0);
	assert_int_equal(kvpool_hint_chain(chain, &h), 5);
	assert_memory_equal(&came.key, &keys[4], sizeof(came.key));
	kvpool_chain_free(chain);
}

static void hints_that_are_none(void **state)
{
	struct kvpool_hint h = { .size = sizeof(h) };
	char text[200];

	fake_publish(&fake, keys, 0, 7);
	assert_int_equal(hint(0, 0, 0), -EINVAL);
	assert_int_equal(hint(5, 0, 1), -EINVAL);
	assert_int_equal(hint(0, 5, 1), -EINVAL);
	assert_int_equal(hint(0, 100, 0), -EINVAL);
	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text, "hint: priority is above 99");
	h.size--;
	h.ended = 1;
	assert_int_equal(kvpool_hint_keys(ns, keys, 7, &h), -EINVAL);
	h = (struct kvpool_hint){ .size = sizeof(h), .ended = 1 };
	assert_int_equal(kvpool_hint_keys(ns, keys, 1048577, &h), -EINVAL);
	assert_int_equal(fake_seen(&fake, OP_HINT), 0);
}

static void settle(void)
{
	while (pool->ops.n_jobs)
		assert_int_equal(kvpool_dispatch(pool), 0);
}

static enum fake_answer silent(struct fake_request *rq, void *arg)
{
	return rq->head.op == OP_HINT ? FAKE_SILENCE : FAKE_USUAL;
}

/* There is nothing to finish, and nobody waits. */
static void told_without_waiting(void **state)
{
	const struct kvpool_hint h = { .size = sizeof(h), .reuse_s = 9 };
	struct kvpool_chain *chain;

	assert_int_equal(kvpool_hint_start(ns, tokens, BLOCKS * BT, &h), 0);
	settle();
	assert_int_equal(fake_seen(&fake, OP_HINT), 0); /* nothing is cached */
	fake_publish(&fake, keys, 0, 7);
	assert_int_equal(kvpool_hint_start(ns, tokens, BLOCKS * BT, &h), 0);
	settle();
	assert_int_equal(came.ns, FAKE_NS);
	assert_int_equal(came.reuse_s, 9);
	assert_memory_equal(&came.key, &keys[6], sizeof(came.key));
	assert_int_equal(kvpool_hint_keys_start(ns, keys, 4, &h), 0);
	settle();
	assert_memory_equal(&came.key, &keys[3], sizeof(came.key));
	assert_int_equal(kvpool_chain_new(ns, &chain), 0);
	assert_int_equal(kvpool_chain_append(chain, tokens, 5 * BT), 0);
	assert_int_equal(kvpool_hint_chain_start(chain, &h), 0);
	settle();
	assert_memory_equal(&came.key, &keys[4], sizeof(came.key));
	kvpool_chain_free(chain);
	assert_null(kvpool_next_done(pool));
}

static void told_to_nobody(void **state)
{
	struct kvpool_hint h = { .size = sizeof(h), .ended = 1 };
	struct kvpool *brief;
	struct kvpool_ns *other;

	fake_publish(&fake, keys, 0, 7);
	/* No answer: it is given up in time, and forgotten. */
	brief = fake_connect(&fake, 20);
	other = fake_ns(brief, "m");
	fake_set_script(&fake, silent, NULL);
	assert_int_equal(kvpool_hint_keys_start(other, keys, 7, &h), 0);
	while (brief->ops.n_jobs)
		assert_int_equal(kvpool_dispatch(brief), 0);
	assert_int_equal(kvpool_hint_keys_start(other, keys, 7, &h), 0);
	kvpool_ns_close(other);
	kvpool_close(brief);
	fake_stop(&fake);
	while (kvpool_state(pool) == KVPOOL_CONNECTED)
		kvpool_dispatch(pool);
	assert_int_equal(kvpool_hint_keys_start(ns, keys, 7, &h), -ENOTCONN);
	h.reuse_s = 1;
	assert_int_equal(kvpool_hint_keys_start(ns, keys, 7, &h), -EINVAL);
	fake_again(&fake);
}

/* A daemon of before there were hints. */
static enum fake_answer no_features(struct fake_request *rq, void *arg)
{
	return rq->head.op == OP_HINT ? FAKE_HANG_UP : FAKE_USUAL;
}

static void an_older_daemon_is_not_asked(void **state)
{
	struct kvpool *old;
	struct kvpool_ns *old_ns;
	const struct kvpool_hint h = { .size = sizeof(h), .ended = 1 };
	char text[200];

	fake_publish(&fake, keys, 0, 7);
	fake.no_features = 1;
	fake_set_script(&fake, no_features, NULL);
	old = fake_connect(&fake, 0);
	old_ns = fake_ns(old, "m");
	assert_int_equal(kvpool_features(old), 0);
	assert_int_equal(kvpool_hint_keys(old_ns, keys, 7, &h), -EOPNOTSUPP);
	kvpool_error(old, text, sizeof(text));
	assert_non_null(strstr(text, "older than the library"));
	assert_int_equal(fake_seen(&fake, OP_HINT), 0);
	kvpool_ns_close(old_ns);
	kvpool_close(old);
}

static void nobody_waits_for_long(void **state)
{
	struct kvpool *hasty = fake_connect(&fake, 50);
	struct kvpool_ns *hasty_ns = fake_ns(hasty, "m");
	const struct kvpool_hint h = { .size = sizeof(h), .ended = 1 };

	fake_publish(&fake, keys, 0, 7);
	fake_set_script(&fake, silent, NULL);
	assert_int_equal(kvpool_hint_keys(hasty_ns, keys, 7, &h), -ETIMEDOUT);
	fake_stop(&fake);
	assert_int_equal(kvpool_hint_keys(hasty_ns, keys, 7, &h), -ENOTCONN);
	kvpool_ns_close(hasty_ns);
	kvpool_close(hasty);
	fake_again(&fake);
}

static void an_odd_answer_is_none(void **state)
{
	fake_publish(&fake, keys, 0, 7);
	fake_script_number(&fake, take_hint, 1u << 21);
	assert_int_equal(hint(60, 0, 0), -EPROTO);
}

static void not_in_a_child(void **state)
{
	pid_t child;
	int status;

	fake_publish(&fake, keys, 0, 7);
	child = fork();
	if (!child)
		_exit(hint(60, 0, 0) == -ESTALE ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_deepest_cached_block_is_told),
		TEST(what_is_not_cached_is_not_told),
		TEST(keys_and_chains_do_as_well),
		TEST(hints_that_are_none),
		TEST(told_without_waiting),
		TEST(told_to_nobody),
		TEST(an_older_daemon_is_not_asked),
		TEST(nobody_waits_for_long),
		TEST(an_odd_answer_is_none),
		TEST(not_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
