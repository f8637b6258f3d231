/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: block tables of leased blocks and own slots, with a scripted daemon. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "client/seq.h"
#include "kernels/crc32c.h"
#include "shm/desc.h"
#include "shm/word.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 100u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_seq *seq;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static int setup_with(uint32_t max_keys)
{
	fake_start(&fake);
	fake.max_keys = max_keys;
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_seq_new(ns, BLOCKS, &seq), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	return 0;
}

static int setup(void **state)
{
	return setup_with(FRAME_KEYS_MAX);
}

/* Grows take several messages each. */
static int setup_short(void **state)
{
	return setup_with(7);
}

/* Hazard words that are set in the session. */
static uint32_t words(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < fake.session.hazard_count; i++)
		n += load_acquire(&fake.session.hazard[i]) != 0;
	return n;
}

static int pins(uint32_t desc)
{
	for (uint32_t i = 0; i < fake.session.hazard_count; i++)
		if (hazard_desc(load_acquire(&fake.session.hazard[i])) == desc)
			return 1;
	return 0;
}

/* Whatever a test does: at the end nothing is held. */
static int teardown(void **state)
{
	kvpool_seq_free(seq);
	seq = NULL;
	if (fake.listener >= 0 && kvpool_state(pool) == KVPOOL_CONNECTED) {
		assert_int_equal(words(), 0);
		assert_int_equal(fake.unnamed, 0);
	}
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static void fill(struct kvpool_seq *s, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		void *block = kvpool_seq_own_block(s, i);

		assert_non_null(block);
		memset(block, fake_byte(&keys[i]), BB);
	}
}

/* Blocks [0, n) hold what they should. */
static void check_bytes(const struct kvpool_seq *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *block = kvpool_seq_block(s, i);

		assert_non_null(block);
		for (size_t k = 0; k < BB; k += 512)
			assert_int_equal(block[k], fake_byte(&keys[i]));
	}
}

/* Of blocks [first, end) of a sequence. */
static void check_verdicts(enum kvpool_verdict v, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		assert_int_equal(kvpool_seq_verdict(seq, i), v);
}

static void a_new_one_is_empty(void **state)
{
	uint32_t table[1];

	assert_int_equal(kvpool_seq_blocks(seq), 0);
	assert_null(kvpool_seq_block(seq, 0));
	assert_null(kvpool_seq_own_block(seq, 0));
	assert_null(kvpool_seq_base(seq, NULL));
	assert_int_equal(kvpool_seq_verdict(seq, 0), KVPOOL_STALE);
	assert_int_equal(kvpool_seq_reason(seq), KVPOOL_BELOW_MIN);
	assert_int_equal(kvpool_seq_table(seq, 0, table, 1), 0);
	assert_int_equal(kvpool_seq_commit(seq, tokens, BT, 0), 0);
	assert_int_equal(kvpool_seq_truncate(seq, 0), 0);
	assert_int_equal(kvpool_seq_truncate(seq, 1), -EINVAL);
	assert_null(kvpool_seq_free(NULL));
	assert_int_equal(fake_seen(&fake, OP_RESERVE) + fake_seen(&fake, OP_COMMIT), 0);
}

static void sizes_are_bounded(void **state)
{
	struct kvpool_seq *s;

	assert_int_equal(kvpool_seq_new(ns, 0, &s), -EINVAL);
	assert_int_equal(kvpool_seq_new(ns, 1048577, &s), -EINVAL);
	assert_int_equal(kvpool_seq_grow(seq, BLOCKS + 1), -EINVAL);
	assert_int_equal(kvpool_seq_commit(seq, tokens, BT, 2), -EINVAL);
}

static void cached_and_own_blocks_make_one_table(void **state)
{
	uint32_t table[BLOCKS];
	const uint8_t *base;
	uint64_t bytes;

	fake_publish(&fake, keys, 0, 3);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 6 * BT + 1), 3 * BT);
	assert_int_equal(kvpool_seq_reason(seq), KVPOOL_NOT_CACHED);
	assert_int_equal(kvpool_seq_grow(seq, 6), 6);
	assert_int_equal(kvpool_seq_grow(seq, 2), 6);
	fill(seq, 3, 6);
	assert_null(kvpool_seq_own_block(seq, 2));
	check_verdicts(KVPOOL_PRESENT, 0, 3);
	check_verdicts(KVPOOL_GRANTED, 3, 6);
	check_bytes(seq, 6);
	base = kvpool_seq_base(seq, &bytes);
	assert_int_equal(bytes, FAKE_POOL_BYTES);
	assert_int_equal(kvpool_seq_table(seq, 0, table, BLOCKS), 6);
	for (size_t i = 0; i < 6; i++)
		assert_ptr_equal(base + (uint64_t)table[i] * KVPOOL_UNIT, kvpool_seq_block(seq, i));
	assert_int_equal(kvpool_seq_table(seq, 4, table, 1), 1);
	assert_ptr_equal(base + (uint64_t)table[0] * KVPOOL_UNIT, kvpool_seq_block(seq, 4));
	assert_int_equal(kvpool_seq_table(seq, 6, table, 1), 0);
}

static void acquire_asks_nobody(void **state)
{
	uint64_t before, after;
	struct kvpool_stats st = { .size = sizeof(st) };

	fake_publish(&fake, keys, 0, 8);
	kvpool_get_stats(pool, &st);
	before = st.requests;
	assert_int_equal(kvpool_seq_acquire_keys(seq, keys, 8), 8 * BT);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 8 * BT), 7 * BT);
	kvpool_get_stats(pool, &st);
	after = st.requests;
	assert_int_equal(before, after);
	assert_int_equal(words(), 1);
	check_bytes(seq, 7);
}

static void named_blocks_stay_where_they_are(void **state)
{
	const void *at[10];

	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_acquire(seq, tokens, 10 * BT + 1);
	kvpool_seq_grow(seq, 10);
	fill(seq, 2, 10);
	for (size_t i = 0; i < 10; i++)
		at[i] = kvpool_seq_block(seq, i);
	/* The last one is not full. */
	assert_int_equal(kvpool_seq_commit(seq, tokens, 10 * BT - 1, 0), 7);
	assert_int_equal(fake_seen(&fake, OP_COMMIT), 1);
	for (size_t i = 0; i < 10; i++)
		assert_ptr_equal(at[i], kvpool_seq_block(seq, i));
	check_verdicts(KVPOOL_COMMITTED, 2, 9);
	check_verdicts(KVPOOL_GRANTED, 9, 10);
	assert_null(kvpool_seq_own_block(seq, 8));
	assert_non_null(kvpool_seq_own_block(seq, 9));
	for (size_t i = 0; i < 9; i++)
		assert_ptr_equal(fake.m.pool + (uint64_t)fake_find(&fake, &keys[i]) * BB -
					 fake.m.pool,
				 (const uint8_t *)at[i] - (uint8_t *)kvpool_seq_base(seq, NULL));
	/* One word holds it all now: that of the deepest block. */
	assert_int_equal(words(), 1);
	assert_true(pins(fake_find(&fake, &keys[8])));
	assert_int_equal(kvpool_seq_commit(seq, tokens, 10 * BT - 1, 0), 0);
	assert_int_equal(fake_seen(&fake, OP_COMMIT), 1);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 10 * BT, 0), 1);
	assert_true(pins(fake_find(&fake, &keys[9])));
	assert_int_equal(words(), 1);
	check_bytes(seq, 10);
}

static void others_find_them(void **state)
{
	static uint8_t buf[6 * BB];
	struct iovec iov = { buf, sizeof(buf) };
	struct kvpool_lease *l;

	kvpool_seq_grow(seq, 6);
	fill(seq, 0, 6);
	assert_int_equal(kvpool_seq_commit_keys(seq, keys, BLOCKS, 0), 6);
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &l), 0);
	assert_int_equal(kvpool_acquire(ns, l, tokens, 9 * BT, 0), 6 * BT);
	assert_int_equal(kvpool_lease_read(l, 0, &iov, 1, KVPOOL_VERIFY), 0);
	kvpool_lease_free(l);
}

/* In the daemon's thread: each block of a COMMIT is pinned when it arrives. */
static enum fake_answer expect_pins(struct fake_request *rq, void *arg)
{
	const Kvpool__Commit *m = (const Kvpool__Commit *)rq->message;
	unsigned int *seen = arg;

	if (rq->head.op != OP_COMMIT)
		return FAKE_USUAL;
	for (size_t i = 0; i < m->n_desc; i++) {
		assert(pins(m->desc[i]));
		assert(word_state(fake.m.control.desc[m->desc[i]].word) == DESC_RESERVED);
	}
	*seen += (unsigned int)m->n_desc;
	return FAKE_USUAL;
}

static void each_block_is_pinned_before_its_commit(void **state)
{
	unsigned int seen = 0;

	kvpool_seq_grow(seq, 30);
	fill(seq, 0, 30);
	fake_set_script(&fake, expect_pins, &seen);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 30 * BT, 0), 30);
	assert_int_equal(seen, 30);
	/* There are 16 leases: it took more than one message. */
	assert_true(fake_seen(&fake, OP_COMMIT) > 1);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(words(), 1);
}

static void without_a_free_lease_nothing_is_named(void **state)
{
	struct kvpool_lease *l[16];
	size_t n = 0;

	kvpool_seq_grow(seq, 2);
	fill(seq, 0, 2);
	while (kvpool_lease_new(pool, 1, &l[n]) == 0)
		n++;
	assert_int_equal(n, 15);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 2 * BT, 0), -ENOSPC);
	check_verdicts(KVPOOL_GRANTED, 0, 2);
	kvpool_lease_free(l[--n]);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 2 * BT, 0), 1);
	kvpool_lease_free(l[--n]);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 2 * BT, 0), 1);
	while (n)
		kvpool_lease_free(l[--n]);
}

/* The daemon has fewer hazard words to give than there are leases. */
static void few_hazard_words(void **state)
{
	teardown(state);
	fake_start(&fake);
	fake.hazards_max = 6;
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_seq_new(ns, BLOCKS, &seq), 0);
	kvpool_seq_grow(seq, 8);
	fill(seq, 0, 8);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 8 * BT, 0), 8);
	assert_int_equal(words(), 1);
}

static void grows_in_messages_of_what_the_daemon_takes(void **state)
{
	assert_int_equal(kvpool_seq_grow(seq, 20), 20);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 3);
	assert_int_equal(fake.unnamed, 20);
	assert_int_equal(kvpool_seq_truncate(seq, 4), 0);
	assert_int_equal(fake.unnamed, 4);
	assert_int_equal(kvpool_seq_blocks(seq), 4);
}

static void a_quota_makes_it_shorter(void **state)
{
	char text[200];

	fake.unnamed_max = 5;
	assert_int_equal(kvpool_seq_grow(seq, 9), 5);
	kvpool_error(pool, text, sizeof(text));
	assert_non_null(strstr(text, "got 5 blocks of 9"));
	assert_non_null(strstr(text, "limits.client_unnamed_max"));
	assert_int_equal(kvpool_seq_grow(seq, 9), 5);
	fake.unnamed_max = 9;
	assert_int_equal(kvpool_seq_grow(seq, 9), 9);
}

/* Somebody else stored the first two meanwhile. */
static void a_duplicate_stays_own(void **state)
{
	const void *at;

	kvpool_seq_grow(seq, 4);
	fill(seq, 0, 4);
	fake_publish(&fake, keys, 0, 2);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), 2);
	check_verdicts(KVPOOL_PRESENT, 0, 2);
	check_verdicts(KVPOOL_COMMITTED, 2, 4);
	at = kvpool_seq_own_block(seq, 0);
	assert_non_null(at);
	assert_null(kvpool_seq_own_block(seq, 2));
	/* They are not asked about again and again. */
	assert_int_equal(kvpool_seq_grow(seq, 5), 5);
	fill(seq, 4, 5);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 5 * BT, 0), 1);
	assert_int_equal(fake.unnamed, 2);
	assert_int_equal(words(), 1);
	/* On request the cached blocks take their places. */
	assert_int_equal(kvpool_seq_commit(seq, tokens, 5 * BT, KVPOOL_SWAP), 0);
	assert_int_equal(fake.unnamed, 0);
	assert_null(kvpool_seq_own_block(seq, 0));
	assert_ptr_not_equal(kvpool_seq_block(seq, 0), at);
	check_verdicts(KVPOOL_PRESENT, 0, 2);
	check_bytes(seq, 5);
	assert_int_equal(words(), 1);
}

static void a_run_of_duplicates_at_the_end(void **state)
{
	fake_publish(&fake, keys, 0, 1);
	kvpool_seq_acquire(seq, tokens, BT + 1);
	kvpool_seq_grow(seq, 4);
	fill(seq, 1, 4);
	fake_publish(&fake, keys, 1, 4);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, KVPOOL_SWAP), 0);
	assert_int_equal(fake.unnamed, 0);
	check_bytes(seq, 4);
	assert_true(pins(fake_find(&fake, &keys[3])));
	assert_int_equal(words(), 1);
}

/* The cached block that a copy equals went: the copy can have its name after all. */
static void a_copy_whose_original_went(void **state)
{
	kvpool_seq_grow(seq, 2);
	fill(seq, 0, 2);
	fake_publish(&fake, keys, 0, 1);
	assert_int_equal(kvpool_seq_commit(seq, tokens, BT, 0), 0);
	check_verdicts(KVPOOL_PRESENT, 0, 1);
	fake_evict(&fake, &keys[0]);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 2 * BT, 0), 2);
	check_verdicts(KVPOOL_COMMITTED, 0, 2);
}

/* Answers a COMMIT with one verdict for all. */
static enum fake_answer answer_all(struct fake_request *rq, void *arg)
{
	const Kvpool__Commit *m = (const Kvpool__Commit *)rq->message;
	Kvpool__CommitReply r = KVPOOL__COMMIT_REPLY__INIT;
	uint8_t v[FRAME_KEYS_MAX];

	if (rq->head.op != OP_COMMIT)
		return FAKE_USUAL;
	memset(v, (int)fake_number(arg), sizeof(v));
	r.verdict = (ProtobufCBinaryData){ m->n_desc, v };
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void what_cannot_be_named_stays_own(void **state)
{
	static const enum kvpool_verdict all[] = { KVPOOL_BUSY, KVPOOL_FULL, KVPOOL_NO_PARENT,
						   KVPOOL_STALE };

	kvpool_seq_grow(seq, 3);
	fill(seq, 0, 3);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		fake_script_number(&fake, answer_all, all[i]);
		assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), 0);
		check_verdicts(all[i], 0, 3);
		assert_non_null(kvpool_seq_own_block(seq, 2));
		assert_int_equal(words(), 0);
	}
	fake_script_number(&fake, answer_all, VERDICT_NOT_OWNER);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), 0);
	check_verdicts(KVPOOL_STALE, 0, 3);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), 3);
}

static void nonsense_is_refused(void **state)
{
	kvpool_seq_grow(seq, 3);
	fill(seq, 0, 3);
	fake_script_number(&fake, answer_all, VERDICT_FREED);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), -EPROTO);
	check_bytes(seq, 3);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), -ENOTCONN);
}

/* It does what it is asked, and the answer does not come. */
static enum fake_answer commit_in_silence(struct fake_request *rq, void *arg)
{
	struct fake_request other = *rq;
	int nobody[2];

	if (rq->head.op != OP_COMMIT)
		return FAKE_USUAL;
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, nobody) == 0);
	other.sock = nobody[0];
	fake_usual(&other);
	close(nobody[0]);
	close(nobody[1]);
	return FAKE_SILENCE;
}

/* The blocks are pinned all the while, and the next commit finds out. */
static void a_commit_without_an_answer(void **state)
{
	kvpool_seq_free(seq);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	pool = fake_connect(&fake, 300);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_seq_new(ns, BLOCKS, &seq), 0);
	kvpool_seq_grow(seq, 3);
	fill(seq, 0, 3);
	fake_set_script(&fake, commit_in_silence, NULL);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), -ETIMEDOUT);
	fake_set_script(&fake, NULL, NULL);
	assert_int_equal(words(), 3);
	check_bytes(seq, 3);
	kvpool_seq_grow(seq, 4);
	fill(seq, 3, 4);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), 1);
	check_verdicts(KVPOOL_COMMITTED, 0, 4);
	assert_null(kvpool_seq_own_block(seq, 0));
	check_bytes(seq, 4);
	assert_int_equal(words(), 1);
	assert_true(pins(fake_find(&fake, &keys[3])));
	kvpool_seq_truncate(seq, 0);
	assert_int_equal(words(), 0);
}

/* The prefix was flushed and stored anew: what is below it is another copy's, and both are held. */
static void a_prefix_that_was_stored_anew(void **state)
{
	uint32_t old;

	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_acquire(seq, tokens, 2 * BT + 1);
	old = fake_find(&fake, &keys[1]);
	for (unsigned int i = 2; i-- > 0;)
		fake_evict(&fake, &keys[i]);
	fake_publish(&fake, keys, 0, 2);
	assert_int_not_equal(old, fake_find(&fake, &keys[1]));
	kvpool_seq_grow(seq, 3);
	fill(seq, 2, 3);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), 1);
	assert_int_equal(words(), 2);
	assert_true(pins(old) && pins(fake_find(&fake, &keys[2])));
	kvpool_seq_truncate(seq, 2);
	assert_int_equal(words(), 1);
	assert_true(pins(old));
}

static void truncate_and_go_on_with_other_tokens(void **state)
{
	static int32_t other[8 * BT];
	struct kvpool_key other_keys[8];

	memcpy(other, tokens, sizeof(other));
	other[4 * BT] ^= 1;
	kvpool_hash(ns, NULL, other, 8 * BT, other_keys, 8);
	kvpool_seq_grow(seq, 6);
	fill(seq, 0, 6);
	kvpool_seq_commit(seq, tokens, 6 * BT, 0);
	assert_int_equal(kvpool_seq_truncate(seq, 4), 0);
	assert_true(words() >= 1);
	kvpool_seq_grow(seq, 8);
	fill(seq, 4, 8);
	assert_int_equal(kvpool_seq_commit(seq, other, 8 * BT, 0), 4);
	assert_true(pins(fake_find(&fake, &other_keys[7])));
	assert_int_equal(words(), 1);
	check_bytes(seq, 8);
}

static void acquire_gives_back_what_there_was(void **state)
{
	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_grow(seq, 5);
	fill(seq, 0, 5);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 8 * BT), 2 * BT);
	assert_int_equal(fake.unnamed, 0);
	assert_int_equal(kvpool_seq_blocks(seq), 2);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 1), 0);
	assert_int_equal(kvpool_seq_blocks(seq), 0);
	assert_null(kvpool_seq_base(seq, NULL));
	assert_int_equal(words(), 0);
}

static void a_fork_shares_what_is_stored(void **state)
{
	struct kvpool_seq *copy;
	unsigned int reserves;

	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_acquire(seq, tokens, 2 * BT + 1);
	kvpool_seq_grow(seq, 5);
	fill(seq, 2, 5);
	kvpool_seq_commit(seq, tokens, 4 * BT + 3, 0);
	reserves = fake_seen(&fake, OP_RESERVE);
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), reserves + 1);
	assert_int_equal(kvpool_seq_blocks(copy), 5);
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(kvpool_seq_block(copy, i), kvpool_seq_block(seq, i));
	assert_ptr_not_equal(kvpool_seq_block(copy, 4), kvpool_seq_block(seq, 4));
	check_bytes(copy, 5);
	/* Each goes on for itself; the second one stores the same block: it has a copy. */
	assert_int_equal(kvpool_seq_commit(seq, tokens, 5 * BT, 0), 1);
	assert_int_equal(kvpool_seq_commit(copy, tokens, 5 * BT, KVPOOL_SWAP), 0);
	assert_ptr_equal(kvpool_seq_block(copy, 4), kvpool_seq_block(seq, 4));
	kvpool_seq_truncate(seq, 0);
	assert_int_equal(words(), 1);
	check_bytes(copy, 5);
	kvpool_seq_free(copy);
}

/* There is nothing to grow, and nothing was asked of the daemon yet. */
static void growing_what_is_long_enough(void **state)
{
	struct kvpool_op *op;

	fake_publish(&fake, keys, 0, 3);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 3 * BT + 1), 3 * BT);
	assert_int_equal(kvpool_seq_grow_start(seq, 2, 0, NULL, NULL, &op), 0);
	assert_int_equal(kvpool_op_done(op), 1);
	assert_int_equal(kvpool_seq_grow_finish(op), 3);
	check_bytes(seq, 3);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 0);
}

/* A fork lives on by what its parent acquired, and the parent acquires again. */
static void forks_in_any_order(void **state)
{
	struct kvpool_seq *a, *b;

	fake_publish(&fake, keys, 0, 3);
	kvpool_seq_acquire(seq, tokens, 3 * BT + 1);
	assert_int_equal(kvpool_seq_fork(seq, &a), 0);
	assert_int_equal(kvpool_seq_fork(a, &b), 0);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 0);
	assert_int_equal(words(), 1);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 2 * BT), BT);
	assert_int_equal(words(), 2);
	kvpool_seq_free(a);
	check_bytes(b, 3);
	assert_int_equal(words(), 2);
	assert_int_equal(kvpool_seq_acquire(b, tokens, 3 * BT), 2 * BT);
	assert_int_equal(words(), 2);
	kvpool_seq_free(b);
	assert_int_equal(words(), 1);
}

static void a_fork_without_room(void **state)
{
	struct kvpool_seq *copy;

	kvpool_seq_grow(seq, 3);
	fake.unnamed_max = 5;
	assert_int_equal(kvpool_seq_fork(seq, &copy), -ENOSPC);
	assert_int_equal(fake.unnamed, 3);
	fake.unnamed_max = 6;
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	kvpool_seq_free(copy);
}

static void no_daemon_is_a_miss(void **state)
{
	fake_stop(&fake);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 3 * BT), 0);
	assert_int_equal(kvpool_seq_grow(seq, 3), -ENOTCONN);
	assert_int_equal(kvpool_seq_blocks(seq), 0);
}

static void an_old_daemon(void **state)
{
	teardown(state);
	fake_start(&fake);
	fake.no_features = 1;
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_seq_new(ns, BLOCKS, &seq), 0);
	assert_int_equal(kvpool_seq_grow(seq, 1), -EOPNOTSUPP);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 0);
}

/* The bytes stay, and are worked with; a fork takes them along. */
static void over_the_death_of_the_daemon(void **state)
{
	struct kvpool_seq *copy;

	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_acquire(seq, tokens, 2 * BT + 1);
	kvpool_seq_grow(seq, 4);
	fill(seq, 2, 4);
	kvpool_seq_commit(seq, tokens, 3 * BT, 0);
	fake_stop(&fake);
	check_bytes(seq, 4);
	fill(seq, 3, 4);
	assert_int_equal(kvpool_seq_grow(seq, 5), -ENOTCONN);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), -ENOTCONN);
	assert_int_equal(kvpool_seq_fork(seq, &copy), -ENOTCONN);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_seq_grow(seq, 5), -ENOTCONN);
	check_bytes(seq, 4);
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	check_bytes(copy, 4);
	for (size_t i = 0; i < 4; i++)
		assert_non_null(kvpool_seq_own_block(copy, i));
	assert_ptr_not_equal(kvpool_seq_base(copy, NULL), kvpool_seq_base(seq, NULL));
	assert_int_equal(kvpool_seq_truncate(seq, 1), 0);
	kvpool_seq_free(seq);
	seq = copy;
	/* And is stored anew. */
	assert_int_equal(kvpool_seq_grow(seq, 5), 5);
	fill(seq, 4, 5);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 5 * BT, 0), 5);
	check_bytes(seq, 5);
}

/* One that was emptied after the death goes on with the new daemon. */
static void an_emptied_one_goes_on(void **state)
{
	kvpool_seq_grow(seq, 2);
	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_seq_truncate(seq, 0), 0);
	assert_int_equal(kvpool_seq_grow(seq, 2), 2);
	fake_publish(&fake, keys, 0, 1);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 2 * BT), BT);
}

/* Not a single own slot, and the connection is another one: all is copied there. */
static void a_fork_moves_what_was_acquired(void **state)
{
	struct kvpool_seq *copy;

	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_acquire(seq, tokens, 2 * BT + 1);
	fake_stop(&fake);
	/* Nowhere to go: shared. */
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	check_bytes(copy, 2);
	kvpool_seq_free(copy);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_seq_fork(seq, &copy), 0);
	kvpool_seq_free(seq);
	seq = copy;
	check_bytes(seq, 2);
	assert_int_equal(kvpool_seq_grow(seq, 3), 3);
	fill(seq, 2, 3);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), 3);
}

/* Leased on one connection, grown on the next. */
static void two_connections_do_not_mix(void **state)
{
	fake_publish(&fake, keys, 0, 2);
	kvpool_seq_acquire(seq, tokens, 2 * BT + 1);
	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(kvpool_reconnect(pool), 0);
	assert_int_equal(kvpool_seq_grow(seq, 4), -ENOTCONN);
	check_bytes(seq, 2);
	assert_int_equal(kvpool_seq_blocks(seq), 2);
}

static void a_child_has_nothing(void **state)
{
	struct kvpool_seq *copy;
	int status;
	pid_t pid;

	kvpool_seq_grow(seq, 2);
	fill(seq, 0, 2);
	kvpool_seq_commit(seq, tokens, BT, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		assert(kvpool_seq_blocks(seq) == 0 && !kvpool_seq_block(seq, 0));
		assert(!kvpool_seq_own_block(seq, 1) && !kvpool_seq_base(seq, NULL));
		assert(kvpool_seq_grow(seq, 3) == -ESTALE);
		assert(kvpool_seq_commit(seq, tokens, BT, 0) == -ESTALE);
		assert(kvpool_seq_commit_keys(seq, keys, 1, 0) == -ESTALE);
		assert(kvpool_seq_truncate(seq, 0) == -ESTALE);
		assert(kvpool_seq_fork(seq, &copy) == -ESTALE);
		assert(kvpool_seq_acquire(seq, tokens, BT) == 0);
		assert(kvpool_seq_reason(seq) == KVPOOL_FORKED);
		assert(kvpool_seq_new(ns, 1, &copy) == -ESTALE);
		kvpool_seq_free(seq);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(fake.unnamed, 1);
	assert_int_equal(words(), 1);
	check_bytes(seq, 2);
}

static long finish_grow(struct kvpool_op *op)
{
	while (!kvpool_op_done(op))
		assert_true(kvpool_dispatch(pool) >= 0);
	return kvpool_seq_grow_finish(op);
}

static struct kvpool_op *start_grow(size_t n)
{
	struct kvpool_op *op;

	assert_int_equal(kvpool_seq_grow_start(seq, n, 0, NULL, NULL, &op), 0);
	return op;
}

/* As the form that waits; what was started and given up goes back. */
static void grows_without_waiting(void **state)
{
	struct kvpool_op *op;

	assert_int_equal(finish_grow(start_grow(20)), 20);
	assert_int_equal(finish_grow(start_grow(5)), 20);
	memset(kvpool_seq_own_block(seq, 19), 1, BB);
	assert_int_equal(kvpool_seq_grow(seq, 30), 30);
	assert_int_equal(kvpool_seq_grow_start(seq, BLOCKS + 1, 0, NULL, NULL, &op), -EINVAL);
	op = start_grow(40);
	kvpool_op_cancel(op);
	assert_int_equal(kvpool_seq_grow_finish(op), -ECANCELED);
	kvpool_op_free(start_grow(40));
	assert_int_equal(finish_grow(start_grow(40)), 40);
	/* The daemon counts as many as the table has. */
	while (pool->ops.n_jobs)
		assert_true(kvpool_dispatch(pool) >= 0);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(fake.unnamed, 40);
	fake.unnamed_max = 44;
	assert_int_equal(finish_grow(start_grow(50)), 44);
	fake_stop(&fake);
	while (kvpool_seq_grow_start(seq, 50, 0, NULL, NULL, &op) == 0)
		(void)finish_grow(op);
	assert_int_equal(kvpool_seq_blocks(seq), 44);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_new_one_is_empty),
		TEST(sizes_are_bounded),
		TEST(cached_and_own_blocks_make_one_table),
		TEST(acquire_asks_nobody),
		TEST(named_blocks_stay_where_they_are),
		TEST(others_find_them),
		TEST(each_block_is_pinned_before_its_commit),
		TEST(without_a_free_lease_nothing_is_named),
		TEST(few_hazard_words),
		cmocka_unit_test_setup_teardown(grows_in_messages_of_what_the_daemon_takes,
						setup_short, teardown),
		TEST(grows_without_waiting),
		cmocka_unit_test_setup_teardown(grows_without_waiting, setup_short, teardown),
		TEST(a_quota_makes_it_shorter),
		TEST(a_duplicate_stays_own),
		TEST(a_run_of_duplicates_at_the_end),
		TEST(a_copy_whose_original_went),
		TEST(what_cannot_be_named_stays_own),
		TEST(nonsense_is_refused),
		TEST(a_commit_without_an_answer),
		TEST(a_prefix_that_was_stored_anew),
		TEST(truncate_and_go_on_with_other_tokens),
		TEST(acquire_gives_back_what_there_was),
		TEST(a_fork_shares_what_is_stored),
		TEST(growing_what_is_long_enough),
		TEST(forks_in_any_order),
		TEST(a_fork_without_room),
		TEST(no_daemon_is_a_miss),
		TEST(an_old_daemon),
		TEST(over_the_death_of_the_daemon),
		TEST(an_emptied_one_goes_on),
		TEST(a_fork_moves_what_was_acquired),
		TEST(two_connections_do_not_mix),
		TEST(a_child_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
