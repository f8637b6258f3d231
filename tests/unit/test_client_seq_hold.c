/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds the blocks of a sequence when the prefix that they hang on is flushed and stored anew
 * meanwhile, with a scripted daemon: each block of the cache in the table is pinned, by its own
 * word or by that of a block below it.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/seq.h"
#include "shm/desc.h"
#include "shm/word.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 8u
#define SOON   50u /* ms, where no answer comes */

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_seq *seq;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static int setup_with(unsigned int timeout_ms)
{
	fake_start(&fake);
	pool = fake_connect(&fake, timeout_ms);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_seq_new(ns, BLOCKS, &seq), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	return 0;
}

static int setup(void **state)
{
	return setup_with(0);
}

static int setup_impatient(void **state)
{
	return setup_with(SOON);
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
		if (load_acquire(&fake.session.hazard[i]) &&
		    hazard_desc(load_acquire(&fake.session.hazard[i])) == desc)
			return 1;
	return 0;
}

static int teardown(void **state)
{
	kvpool_seq_free(seq);
	assert_int_equal(words(), 0);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static void grow(size_t n)
{
	size_t had = kvpool_seq_blocks(seq);

	assert_int_equal(kvpool_seq_grow(seq, n), n);
	for (size_t i = had; i < n; i++)
		memset(kvpool_seq_own_block(seq, i), fake_byte(&keys[i]), BB);
}

static void check_bytes(size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(*(const uint8_t *)kvpool_seq_block(seq, i), fake_byte(&keys[i]));
}

/* Of blocks [first, end). */
static void check_verdicts(enum kvpool_verdict v, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		assert_int_equal(kvpool_seq_verdict(seq, i), v);
}

/* What a flush does to a block that is pinned: nobody finds it any more. Deepest first. */
static void flush(uint32_t n)
{
	while (n-- > 0) {
		uint32_t d = fake_find(&fake, &keys[n]);

		desc_set_state(&fake.m.control, d, DESC_DOOMED);
		index_remove(&fake.m.index, (const struct block_key *)&keys[n], d);
	}
}

/* Whether some word keeps block i where it is: it, or one below it, is pinned. */
static int is_kept(uint32_t i)
{
	for (uint32_t w = 0; w < fake.session.hazard_count; w++) {
		uint32_t d = hazard_desc(load_acquire(&fake.session.hazard[w]));

		if (!load_acquire(&fake.session.hazard[w]))
			continue;
		while (d != DESC_NONE && d != seq->blocks[i].desc)
			d = fake.m.control.desc[d].parent;
		if (d != DESC_NONE)
			return 1;
	}
	return 0;
}

static void check_kept(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_true(kvpool_seq_own_block(seq, i) || is_kept(i));
}

/* What a sequence copied is swapped for blocks of another prefix than those behind it hang on. */
static void a_swap_after_a_flush(void **state)
{
	fake_publish(&fake, keys, 0, 2);
	grow(4);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), 2);
	check_verdicts(KVPOOL_PRESENT, 0, 2);
	check_verdicts(KVPOOL_COMMITTED, 2, 4);
	flush(4);
	fake_publish(&fake, keys, 0, 3);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, KVPOOL_SWAP), 0);
	assert_int_equal(kvpool_seq_truncate(seq, 2), 0);
	check_kept(2);
	check_bytes(2);
}

/* It does what it is asked, and the answer does not come. arg: for how many of the blocks. */
static enum fake_answer commit_in_silence(struct fake_request *rq, void *arg)
{
	Kvpool__Commit part = *(const Kvpool__Commit *)rq->message;
	struct fake_request other = *rq;
	int nobody[2];

	if (rq->head.op != OP_COMMIT)
		return FAKE_USUAL;
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, nobody) == 0);
	other.sock = nobody[0];
	other.message = &part.base;
	part.n_desc = part.n_gen = part.n_crc = MIN(part.n_desc, (size_t)fake_number(arg));
	part.keys.len = part.n_desc * sizeof(keys[0]);
	fake_usual(&other);
	close(nobody[0]);
	close(nobody[1]);
	return FAKE_SILENCE;
}

/* Commits the first n blocks, of which the daemon does so many, without an answer. */
static void commit_unanswered(size_t n, unsigned int does)
{
	fake_script_number(&fake, commit_in_silence, does);
	assert_int_equal(kvpool_seq_commit(seq, tokens, n * BT, 0), -ETIMEDOUT);
	fake_set_script(&fake, NULL, NULL);
	/* Behind it in the line: what the daemon did is done. */
	while (kvpool_ping(pool) < 0)
		;
}

/* Time after time no answer comes. Then it does, and one word is enough again. */
static void commits_without_an_answer(void **state)
{
	grow(BLOCKS);
	for (uint32_t n = 2; n <= 6; n += 2) {
		for (uint32_t k = 0; k < SEQ_HOLDS + 1; k++)
			commit_unanswered(n, n);
		assert_int_equal(words(), 2 + (n > 2));
		assert_int_equal(kvpool_seq_commit(seq, tokens, n * BT, 0), 0);
		assert_null(kvpool_seq_own_block(seq, n - 1));
		assert_int_equal(words(), 1);
	}
	assert_true(pins(fake_find(&fake, &keys[5])));
	assert_int_equal(kvpool_seq_commit(seq, tokens, BLOCKS * BT, 0), 2);
	assert_int_equal(words(), 1);
	check_bytes(BLOCKS);
}

/* The first block was stored, nobody said so, it was flushed and stored anew by somebody else. */
static void a_flush_before_the_answer(void **state)
{
	grow(3);
	commit_unanswered(2, 1);
	flush(1);
	fake_publish(&fake, keys, 0, 1);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 2 * BT, 0), 1);
	check_verdicts(KVPOOL_COMMITTED, 0, 2);
	assert_null(kvpool_seq_own_block(seq, 0));
	check_kept(2);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 3 * BT, 0), 1);
	check_kept(3);
	check_bytes(3);
}

/*
 * The table is cut to a copy of what was cached, which is then flushed; so the copy gets the name,
 * below a prefix that is another one than the one in the table.
 */
static void a_copy_that_gets_its_name_after_a_flush(void **state)
{
	fake_publish(&fake, keys, 0, 2);
	assert_int_equal(kvpool_seq_acquire(seq, tokens, 2 * BT + 1), 2 * BT);
	fake_publish(&fake, keys, 2, 3);
	grow(4);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), 1);
	check_verdicts(KVPOOL_PRESENT, 2, 3);
	assert_int_equal(kvpool_seq_truncate(seq, 3), 0);
	flush(4);
	fake_publish(&fake, keys, 0, 2);
	grow(4);
	assert_int_equal(kvpool_seq_commit(seq, tokens, 4 * BT, 0), 2);
	check_verdicts(KVPOOL_COMMITTED, 2, 4);
	check_kept(4);
	check_bytes(4);
}

int main(void)
{
#define TEST(t, setup) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_swap_after_a_flush, setup),
		TEST(a_copy_that_gets_its_name_after_a_flush, setup),
		TEST(commits_without_an_answer, setup_impatient),
		TEST(a_flush_before_the_answer, setup_impatient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
