/* SPDX-License-Identifier: Apache-2.0 */
/* Reserving, filling, committing, publishing and waiting, with a scripted daemon. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "kernels/crc32c.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 40u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static struct kvpool_write *w;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static int setup_with(uint32_t max_keys, int read_only)
{
	fake_start(&fake);
	fake.max_keys = max_keys;
	fake.read_only = read_only;
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS);
	return 0;
}

static int setup(void **state)
{
	return setup_with(FRAME_KEYS_MAX, 0);
}

/* Runs take several messages each. */
static int setup_short(void **state)
{
	return setup_with(7, 0);
}

static int setup_read_only(void **state)
{
	return setup_with(FRAME_KEYS_MAX, 1);
}

static int teardown(void **state)
{
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

static void fill_block(size_t block, void *to)
{
	memset(to, fake_byte(&keys[block]), BB);
}

/* Blocks [0, n) are cached, with their bytes and checksums, and no more. */
static void check_cached(size_t n)
{
	static uint8_t buf[BLOCKS * BB];
	struct iovec iov = { buf, n * BB };

	assert_int_equal(kvpool_acquire(ns, lease, tokens, BLOCKS * BT + 1, 0), n * BT);
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, KVPOOL_VERIFY), 0);
	for (size_t i = 0; i < n * BB; i++)
		assert_int_equal(buf[i], fake_byte(&keys[i / BB]));
	kvpool_release(lease);
}

static void check_verdicts(size_t from, size_t to, enum kvpool_verdict v)
{
	for (size_t i = from; i < to; i++) {
		assert_string_equal(kvpool_verdict_name(kvpool_write_verdict(w, i)),
				    kvpool_verdict_name(v));
		assert_true(!kvpool_write_block(w, i) == (v != KVPOOL_GRANTED));
	}
}

static void check_error(const char *expected)
{
	char text[512];

	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void test_write_through_pointers(void **state)
{
	assert_int_equal(kvpool_reserve(ns, tokens, BLOCKS * BT + 1, 0, &w), BLOCKS);
	assert_int_equal(kvpool_write_blocks(w), BLOCKS);
	check_verdicts(0, BLOCKS, KVPOOL_GRANTED);
	check_cached(0);
	for (size_t i = 0; i < BLOCKS; i++)
		fill_block(i, kvpool_write_block(w, i));
	assert_int_equal(kvpool_commit(w, 3), 3);
	check_verdicts(0, 3, KVPOOL_COMMITTED);
	check_verdicts(3, BLOCKS, KVPOOL_GRANTED);
	check_cached(3);
	assert_int_equal(kvpool_commit(w, 3), 0);
	assert_int_equal(kvpool_commit(w, BLOCKS), BLOCKS - 3);
	check_verdicts(0, BLOCKS, KVPOOL_COMMITTED);
	kvpool_write_free(w);
	check_cached(BLOCKS);
}

static void test_copy(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };
	uint8_t buf[BB + 1];
	struct iovec iov[300];

	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 4);
	fill_block(0, buf);
	iov[0] = (struct iovec){ buf, BB };
	assert_int_equal(kvpool_write_copy(w, 0, iov, 1), 0);
	fill_block(1, buf);
	iov[0] = (struct iovec){ buf, 100 };
	iov[1] = (struct iovec){ buf, 0 };
	iov[2] = (struct iovec){ buf + 100, BB - 100 };
	assert_int_equal(kvpool_write_copy(w, 1, iov, 3), 0);
	fill_block(2, buf);
	for (size_t i = 0; i < 300; i++)
		iov[i] = (struct iovec){ buf + 13 * i, i < 299 ? 13 : BB - 299 * 13 };
	assert_int_equal(kvpool_write_copy(w, 2, iov, 300), 0);
	/* Another sum, or no such block. */
	iov[0] = (struct iovec){ buf, BB + 1 };
	assert_int_equal(kvpool_write_copy(w, 3, iov, 1), -EINVAL);
	check_error("block 3 of a write: buffers of 4096 bytes are needed");
	iov[0].iov_len = BB - 1;
	assert_int_equal(kvpool_write_copy(w, 3, iov, 1), -EINVAL);
	assert_int_equal(kvpool_write_copy(w, 3, iov, 0), -EINVAL);
	iov[0].iov_len = BB;
	assert_int_equal(kvpool_write_copy(w, 4, iov, 1), -EINVAL);
	check_error("block 4 of a write is stale: not to be filled");
	assert_int_equal(kvpool_commit(w, 3), 3);
	assert_int_equal(kvpool_write_copy(w, 0, iov, 1), -EINVAL);
	kvpool_write_free(w);
	check_cached(3);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.copies_in, 3);
	assert_int_equal(s.copied_in_bytes, 3 * BB);
}

/* Every checksum is that of the bytes, whichever way they came. */
static void test_checksums(void **state)
{
	uint8_t buf[BB];
	struct iovec iov = { buf, BB };

	for (size_t i = 0; i < BB; i++)
		buf[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(kvpool_reserve(ns, tokens, 2 * BT, 0, &w), 2);
	memcpy(kvpool_write_block(w, 0), buf, BB);
	assert_int_equal(kvpool_write_copy(w, 1, &iov, 1), 0);
	assert_int_equal(kvpool_commit(w, 2), 2);
	kvpool_write_free(w);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(fake.m.control.desc[fake_find(&fake, &keys[i])].crc,
				 crc32c(0, buf, BB));
}

static void test_given_back(void **state)
{
	assert_int_equal(kvpool_reserve(ns, tokens, 6 * BT, 0, &w), 6);
	for (size_t i = 0; i < 2; i++)
		fill_block(i, kvpool_write_block(w, i));
	assert_int_equal(kvpool_commit(w, 2), 2);
	assert_null(kvpool_write_free(w));
	for (size_t i = 2; i < 6; i++)
		assert_int_equal(fake_find(&fake, &keys[i]), DESC_NONE);
	check_cached(2);
	assert_int_equal(kvpool_reserve(ns, tokens, 6 * BT, 2, &w), 4);
	kvpool_write_free(w);
}

static void test_present_and_busy(void **state)
{
	struct kvpool_write *other;

	fake_publish(&fake, keys, 0, 3);
	assert_int_equal(kvpool_reserve(ns, tokens, 6 * BT, 3, &other), 3);
	assert_int_equal(kvpool_reserve(ns, tokens, 10 * BT, 0, &w), 0);
	check_verdicts(0, 3, KVPOOL_PRESENT);
	check_verdicts(3, 10, KVPOOL_BUSY);
	assert_int_equal(kvpool_commit(w, 10), 0);
	kvpool_write_free(w);
	kvpool_write_free(other);
}

static void test_no_parent(void **state)
{
	assert_int_equal(kvpool_reserve(ns, tokens, 10 * BT, 5, &w), 0);
	assert_int_equal(kvpool_write_blocks(w), 5);
	check_verdicts(0, 5, KVPOOL_NO_PARENT);
	kvpool_write_free(w);
	assert_int_equal(kvpool_reserve_keys(ns, &keys[4], &keys[5], 5, &w), 0);
	check_verdicts(0, 5, KVPOOL_NO_PARENT);
	kvpool_write_free(w);
	assert_int_equal(kvpool_reserve_keys(ns, NULL, keys, 5, &w), 5);
	kvpool_write_free(w);
}

/* Runs that take more than one message. */
static void test_several_messages(void **state)
{
	unsigned int before;

	assert_int_equal(kvpool_reserve(ns, tokens, BLOCKS * BT, 0, &w), BLOCKS);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 6);
	for (size_t i = 0; i < BLOCKS; i++)
		fill_block(i, kvpool_write_block(w, i));
	assert_int_equal(kvpool_commit(w, 16), 16);
	assert_int_equal(fake_seen(&fake, OP_COMMIT), 3);
	kvpool_write_free(w);
	assert_int_equal(fake_seen(&fake, OP_ABORT), 4);
	check_cached(16);
	/* Where it cannot go on, the rest need not be asked for. */
	assert_int_equal(kvpool_reserve(ns, tokens, 18 * BT, 16, &w), 2);
	{
		struct kvpool_write *mine = w;

		before = fake_seen(&fake, OP_RESERVE);
		assert_int_equal(kvpool_reserve(ns, tokens, BLOCKS * BT, 0, &w), 0);
		assert_int_equal(fake_seen(&fake, OP_RESERVE), before + 3);
		check_verdicts(0, 16, KVPOOL_PRESENT);
		check_verdicts(16, BLOCKS, KVPOOL_BUSY);
		kvpool_write_free(w);
		kvpool_write_free(mine);
	}
}

static void test_read_only(void **state)
{
	struct iovec iov = { tokens, BB };

	assert_int_equal(kvpool_reserve(ns, tokens, BT, 0, &w), -EROFS);
	assert_int_equal(kvpool_publish_iov(ns, tokens, BT, 0, &iov, 1), -EROFS);
	check_error("cannot store blocks of namespace \"m\": kvpoold lets this program only read");
}

static void test_full(void **state)
{
	struct kvpool_write *rest[2];
	int32_t other[1];
	struct kvpool_key *many = calloc(FAKE_BLOCKS, sizeof(*many));
	struct iovec iov = { tokens, BB };

	assert(many);
	for (size_t i = 0; i < FAKE_BLOCKS; i++)
		many[i].w[0] = i + 1;
	assert_int_equal(kvpool_reserve_keys(ns, NULL, many, FAKE_BLOCKS - 3, &rest[0]),
			 FAKE_BLOCKS - 3);
	assert_int_equal(kvpool_reserve(ns, tokens, 5 * BT, 0, &w), 3);
	check_verdicts(0, 3, KVPOOL_GRANTED);
	check_verdicts(3, 5, KVPOOL_FULL);
	assert_string_equal(kvpool_write_full(w), "pool");
	assert_string_equal(kvpool_write_full(rest[0]), "none");
	fake_tokens(other, 1, 9);
	assert_int_equal(kvpool_publish_iov(ns, tokens + BT, BT, 0, &iov, 1), -ENOSPC);
	check_error("no room for blocks of namespace \"m\": pool: all of it is being read, written "
		    "or kept; kvpoolctl clients shows by whom");
	kvpool_write_free(w);
	kvpool_write_free(rest[0]);
	free(many);
}

/* What came of a connection that was lost. */
static void test_stale(void **state)
{
	struct iovec iov = { tokens, BB };

	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 4);
	fill_block(0, kvpool_write_block(w, 0));
	assert_int_equal(kvpool_commit(w, 1), 1);
	fake_stop(&fake);
	fake_again(&fake);
	assert_int_equal(kvpool_ping(pool), 0);
	check_verdicts(0, 1, KVPOOL_COMMITTED);
	check_verdicts(1, 4, KVPOOL_STALE);
	assert_int_equal(kvpool_write_copy(w, 1, &iov, 1), -EINVAL);
	assert_int_equal(kvpool_commit(w, 4), -ENOTCONN);
	kvpool_write_free(w);
	assert_int_equal(fake_seen(&fake, OP_ABORT), 0);
	check_cached(0);
}

static enum fake_answer hang_up_on(struct fake_request *rq, void *arg)
{
	return rq->head.op == fake_number(arg) ? FAKE_HANG_UP : FAKE_USUAL;
}

static void test_hang_ups(void **state)
{
	fake_script_number(&fake, hang_up_on, OP_RESERVE);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), -ENOTCONN);
	check_error(
		"cannot reserve blocks: the connection to kvpoold is lost: the daemon closed it");
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 1000), BLOCKS * 0);
	fake_script_number(&fake, hang_up_on, OP_WAIT);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 1000), -ENOTCONN);
	fake_script_number(&fake, hang_up_on, OP_COMMIT);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 4);
	assert_int_equal(kvpool_commit(w, 4), -ENOTCONN);
	check_verdicts(0, 4, KVPOOL_STALE);
	kvpool_write_free(w);
	fake_script_number(&fake, hang_up_on, OP_ABORT);
	assert_int_equal(kvpool_reserve_keys(ns, NULL, keys + 10, 4, &w), 4);
	kvpool_write_free(w);
	assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
}

static enum fake_answer delay(struct fake_request *rq, void *arg)
{
	if (rq->head.op == fake_number(arg))
		usleep(900000);
	return FAKE_USUAL;
}

/* Grants that come too late are given back when they come. */
static void test_late_grants(void **state)
{
	struct kvpool *p = fake_connect(&fake, 300);
	struct kvpool_ns *n = fake_ns(p, "m");

	fake_script_number(&fake, delay, OP_RESERVE);
	assert_int_equal(kvpool_reserve(n, tokens, 4 * BT, 0, &w), -ETIMEDOUT);
	fake_set_script(&fake, NULL, NULL);
	while (fake_seen(&fake, OP_ABORT) < 1) {
		kvpool_ping(p);
		usleep(5000);
	}
	assert_int_equal(kvpool_ping(p), 0);
	assert_int_equal(kvpool_reserve(n, tokens, 4 * BT, 0, &w), 4);
	kvpool_write_free(w);
	kvpool_ns_close(n);
	kvpool_close(p);
}

/* Nothing is known of what was not answered; what turns out to be there is not given back. */
static void test_late_commit(void **state)
{
	struct kvpool *p = fake_connect(&fake, 300);
	struct kvpool_ns *n = fake_ns(p, "m");

	assert_int_equal(kvpool_reserve(n, tokens, 4 * BT, 0, &w), 4);
	for (size_t i = 0; i < 2; i++)
		fill_block(i, kvpool_write_block(w, i));
	fake_script_number(&fake, delay, OP_COMMIT);
	assert_int_equal(kvpool_commit(w, 2), -ETIMEDOUT);
	check_verdicts(0, 2, KVPOOL_STALE);
	check_verdicts(2, 4, KVPOOL_GRANTED);
	fake_set_script(&fake, NULL, NULL);
	usleep(1000000);
	kvpool_write_free(w);
	check_cached(2);
	assert_int_equal(fake_find(&fake, &keys[3]), DESC_NONE);
	kvpool_ns_close(n);
	kvpool_close(p);
}

/* Replies to RESERVE that cannot be. */
static enum fake_answer odd_grants(struct fake_request *rq, void *arg)
{
	Kvpool__ReserveReply r = KVPOOL__RESERVE_REPLY__INIT;
	static uint8_t v[4];
	static uint32_t desc[4], slot[4];
	static uint64_t gen[4];

	if (rq->head.op != OP_RESERVE)
		return FAKE_USUAL;
	memcpy(v, (uint8_t[]){ 1, 1, 2, 3 }, 4);
	desc[0] = slot[0] = 0;
	r.verdict = (ProtobufCBinaryData){ 4, v };
	r.n_desc = r.n_slot = r.n_gen = 2;
	r.desc = desc;
	r.slot = slot;
	r.gen = gen;
	switch (fake_number(arg)) {
	case 0:
		r.verdict.len = 3;
		break;
	case 1:
		r.n_desc = 1;
		break;
	case 2:
		r.n_desc = r.n_slot = r.n_gen = 3;
		break;
	case 3:
		r.n_desc = r.n_slot = r.n_gen = 1;
		break;
	case 4:
		v[2] = VERDICT_COMMITTED;
		break;
	case 5:
		v[2] = VERDICT_NONE;
		break;
	case 6:
		slot[0] = FAKE_BLOCKS;
		break;
	case 7:
		slot[0] = UINT32_MAX;
		break;
	case 8:
		desc[0] = FAKE_BLOCKS;
		break;
	default:
		break; /* a sound one */
	}
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void test_odd_grants(void **state)
{
	for (unsigned int row = 0; row < 9; row++) {
		fake_script_number(&fake, odd_grants, row);
		assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), -EPROTO);
		assert_int_equal(kvpool_state(pool), KVPOOL_DISCONNECTED);
	}
	fake_script_number(&fake, odd_grants, 9);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 2);
	check_verdicts(0, 2, KVPOOL_GRANTED);
	check_verdicts(2, 3, KVPOOL_PRESENT);
	check_verdicts(3, 4, KVPOOL_BUSY);
	kvpool_write_free(w);
}

static enum fake_answer odd_commit(struct fake_request *rq, void *arg)
{
	Kvpool__CommitReply r = KVPOOL__COMMIT_REPLY__INIT;
	static uint8_t v[4];

	if (rq->head.op != OP_COMMIT)
		return FAKE_USUAL;
	memcpy(v, arg, 4);
	r.verdict = (ProtobufCBinaryData){ v[3] ? 3 : 4, v };
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void test_commit_verdicts(void **state)
{
	static uint8_t three[4] = { VERDICT_COMMITTED, VERDICT_STALE, VERDICT_NO_PARENT, 1 };
	static uint8_t none[4] = { VERDICT_COMMITTED, VERDICT_STALE, VERDICT_NO_PARENT, 0 };

	/* 0 is no verdict, and for the fourth one there is none at all. */
	fake_set_script(&fake, odd_commit, none);
	assert_int_equal(kvpool_reserve(ns, tokens, 4 * BT, 0, &w), 4);
	assert_int_equal(kvpool_commit(w, 4), -EPROTO);
	kvpool_write_free(w);
	fake_set_script(&fake, odd_commit, three);
	assert_int_equal(kvpool_reserve_keys(ns, NULL, keys + 10, 4, &w), 4);
	assert_int_equal(kvpool_commit(w, 4), -EPROTO);
	kvpool_write_free(w);
	assert_int_equal(kvpool_reserve_keys(ns, NULL, keys + 20, 3, &w), 3);
	assert_int_equal(kvpool_commit(w, 3), 1);
	check_verdicts(0, 1, KVPOOL_COMMITTED);
	check_verdicts(1, 2, KVPOOL_STALE);
	check_verdicts(2, 3, KVPOOL_NO_PARENT);
	kvpool_write_free(w);
	/* Stale ones, and those without a parent, are given back. */
	assert_int_equal(fake_find(&fake, &keys[21]), DESC_NONE);
	assert_int_equal(fake_find(&fake, &keys[22]), DESC_NONE);
}

/* Counts its calls, and stops at a block. */
struct filler {
	size_t calls, next, stop;
};

static int fill(void *arg, size_t i, void *block)
{
	struct filler *f = arg;

	assert_int_equal(i, f->next);
	f->next++;
	f->calls++;
	if (i == f->stop)
		return 1;
	fill_block(i, block);
	return 0;
}

static void test_publish(void **state)
{
	struct filler f = { .stop = SIZE_MAX };
	unsigned int before;

	assert_int_equal(kvpool_publish(ns, tokens, 3 * BT + 5, fill, &f), 3);
	check_cached(3);
	assert_int_equal(kvpool_publish(ns, tokens, BLOCKS * BT, fill, &f), BLOCKS - 3);
	assert_int_equal(f.calls, BLOCKS);
	check_cached(BLOCKS);
	/* What is there is not asked for. */
	before = fake_seen(&fake, OP_RESERVE);
	assert_int_equal(kvpool_publish(ns, tokens, BLOCKS * BT, fill, &f), 0);
	assert_int_equal(f.calls, BLOCKS);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), before);
}

static void test_publish_stops(void **state)
{
	struct filler f = { .stop = 9 };

	assert_int_equal(kvpool_publish(ns, tokens, BLOCKS * BT, fill, &f), 9);
	assert_int_equal(f.calls, 10);
	check_cached(9);
	assert_int_equal(fake_find(&fake, &keys[9]), DESC_NONE);
	f = (struct filler){ .next = 9, .stop = 9 };
	assert_int_equal(kvpool_publish(ns, tokens, BLOCKS * BT, fill, &f), 0);
	check_cached(9);
}

static void test_publish_when_busy(void **state)
{
	struct filler f = { .stop = SIZE_MAX };

	assert_int_equal(kvpool_reserve(ns, tokens, 12 * BT, 0, &w), 12);
	assert_int_equal(kvpool_publish(ns, tokens, BLOCKS * BT, fill, &f), 0);
	assert_int_equal(f.calls, 0);
	kvpool_write_free(w);
}

/* The daemon no longer has what shared memory still showed: from the start, once. */
static enum fake_answer deny_parent(struct fake_request *rq, void *arg)
{
	const Kvpool__Reserve *m = (const Kvpool__Reserve *)rq->message;
	Kvpool__ReserveReply r = KVPOOL__RESERVE_REPLY__INIT;
	static uint8_t v[BLOCKS];

	if (rq->head.op != OP_RESERVE || !m->parent.len)
		return FAKE_USUAL;
	memset(v, VERDICT_NO_PARENT, sizeof(v));
	r.verdict = (ProtobufCBinaryData){ m->keys.len / 32, v };
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void test_publish_from_the_start(void **state)
{
	struct filler f = { .next = 5, .stop = SIZE_MAX };

	fake_publish(&fake, keys, 0, 5);
	fake_set_script(&fake, deny_parent, NULL);
	assert_int_equal(kvpool_publish(ns, tokens, 8 * BT, fill, &f), 3);
	assert_int_equal(fake_seen(&fake, OP_RESERVE), 2);
	check_cached(8);
}

static void publish_iov(size_t first, size_t n, int expected)
{
	static uint8_t buf[BLOCKS * BB];
	struct iovec iov[BLOCKS];

	for (size_t i = 0; i < n; i++) {
		iov[i] = (struct iovec){ buf + i * BB, BB };
		fill_block(first + i, buf + i * BB);
	}
	assert_int_equal(kvpool_publish_iov(ns, tokens, BLOCKS * BT + 1, first, iov, n), expected);
}

static void test_publish_iov(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };
	struct iovec iov = { tokens, BB - 1 };

	publish_iov(0, 2, 2);
	check_cached(2);
	publish_iov(2, 7, 7);
	publish_iov(0, BLOCKS, BLOCKS - 9);
	check_cached(BLOCKS);
	publish_iov(0, BLOCKS, 0);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.copies_in, BLOCKS);
	assert_int_equal(s.copied_in_bytes, BLOCKS * BB);
	assert_int_equal(s.stored_blocks, BLOCKS);
	assert_int_equal(s.stored_bytes, BLOCKS * BB);
	/* A program of before these were counted. */
	s = (struct kvpool_stats){ .size = offsetof(struct kvpool_stats, waits), .waits = 4711 };
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.copies_in, BLOCKS);
	assert_int_equal(s.waits, 4711);
	assert_int_equal(kvpool_publish_iov(ns, tokens, BT, 0, &iov, 1), -EINVAL);
	check_error("buffer 0 has 4095 bytes, not the 4096 of a block");
	iov.iov_len = BB;
	assert_int_equal(kvpool_publish_iov(ns, tokens, BT, 1, &iov, 1), -EINVAL);
	check_error("blocks from number 1 on: a prompt of 16 tokens has 1 full blocks");
}

static void test_publish_iov_behind_a_gap(void **state)
{
	publish_iov(3, 4, 0);
	check_cached(0);
}

static void test_wait(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };

	fake_publish(&fake, keys, 0, 6);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 100), 6 * BT);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 4, 0), 6 * BT);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 6, 100), 6 * BT);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, BLOCKS, 100), BLOCKS * BT);
	assert_int_equal(kvpool_wait(ns, tokens, 6 * BT + 5, 0, 100), 6 * BT);
	assert_int_equal(kvpool_reserve(ns, tokens, 8 * BT, 6, &w), 2);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 4, 100), -ETIMEDOUT);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.waits, 5);
	assert_true(s.waited_ns > 0);
	check_error(
		"blocks are still being written by another program: the time to wait for them is "
		"over");
	kvpool_write_free(w);
}

static enum fake_answer odd_wait(struct fake_request *rq, void *arg)
{
	const Kvpool__Wait *m = (const Kvpool__Wait *)rq->message;
	Kvpool__WaitReply r = KVPOOL__WAIT_REPLY__INIT;

	if (rq->head.op != OP_WAIT)
		return FAKE_USUAL;
	r.present = (uint32_t)(m->keys.len / 32) + 1;
	fake_reply(rq, &r.base);
	return FAKE_SILENCE;
}

static void test_odd_wait(void **state)
{
	fake_set_script(&fake, odd_wait, NULL);
	assert_int_equal(kvpool_wait(ns, tokens, BLOCKS * BT, 0, 100), -EPROTO);
}

#define TEST(f)       cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_SHORT(f) cmocka_unit_test_setup_teardown(f, setup_short, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write_through_pointers),
		TEST_SHORT(test_write_through_pointers),
		TEST(test_copy),
		TEST(test_checksums),
		TEST(test_given_back),
		TEST(test_present_and_busy),
		TEST_SHORT(test_present_and_busy),
		TEST(test_no_parent),
		TEST_SHORT(test_several_messages),
		cmocka_unit_test_setup_teardown(test_read_only, setup_read_only, teardown),
		TEST(test_full),
		TEST(test_stale),
		TEST(test_hang_ups),
		TEST(test_late_grants),
		TEST(test_late_commit),
		TEST(test_odd_grants),
		TEST(test_commit_verdicts),
		TEST(test_publish),
		TEST_SHORT(test_publish),
		TEST(test_publish_stops),
		TEST_SHORT(test_publish_stops),
		TEST(test_publish_when_busy),
		TEST(test_publish_from_the_start),
		TEST(test_publish_iov),
		TEST_SHORT(test_publish_iov),
		TEST(test_publish_iov_behind_a_gap),
		TEST(test_wait),
		TEST_SHORT(test_wait),
		TEST(test_odd_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
