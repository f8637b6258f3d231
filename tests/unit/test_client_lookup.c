/* SPDX-License-Identifier: Apache-2.0 */
/* kvpool_acquire, kvpool_extend and what a lease offers, on a pool of a scripted daemon. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shm/word.h"
#include "tests/client/fake.h"

#define BT     FAKE_BLOCK_TOKENS
#define BB     FAKE_BLOCK_BYTES
#define BLOCKS 300u

static struct fake fake;
static struct kvpool *pool;
static struct kvpool_ns *ns;
static struct kvpool_lease *lease;
static int32_t tokens[BLOCKS * BT + 1];
static struct kvpool_key keys[BLOCKS];

static int setup(void **state)
{
	fake_start(&fake);
	pool = fake_connect(&fake, 0);
	ns = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	fake_tokens(tokens, BLOCKS * BT + 1, 1);
	assert_int_equal(kvpool_hash(ns, NULL, tokens, BLOCKS * BT, keys, BLOCKS), BLOCKS);
	return 0;
}

static int teardown(void **state)
{
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	fake_end(&fake);
	return 0;
}

/* The hazard word that the lease of index i uses, or 0. */
static uint64_t hazard_of(uint32_t i)
{
	uint64_t a = fake.session.hazard[2 * i], b = fake.session.hazard[2 * i + 1];

	assert_true(!a || !b);
	return a | b;
}

static void check_bytes(const struct kvpool_lease *l)
{
	for (size_t i = 0; i < kvpool_lease_blocks(l); i++) {
		const uint8_t *b = kvpool_lease_block(l, i);

		assert_non_null(b);
		assert_int_equal(b[0], fake_byte(&keys[i]));
		assert_int_equal(b[BB - 1], fake_byte(&keys[i]));
	}
	assert_null(kvpool_lease_block(l, kvpool_lease_blocks(l)));
}

static void check_lease(size_t blocks, enum kvpool_reason reason)
{
	assert_int_equal(kvpool_lease_blocks(lease), blocks);
	assert_int_equal(kvpool_lease_tokens(lease), blocks * BT);
	assert_string_equal(kvpool_reason_name(kvpool_lease_reason(lease)),
			    kvpool_reason_name(reason));
	assert_int_equal(hazard_desc(hazard_of(0)),
			 blocks ? fake_find(&fake, &keys[blocks - 1]) : DESC_NONE);
}

static void test_new_lease_is_empty(void **state)
{
	check_lease(0, KVPOOL_BELOW_MIN);
	assert_null(kvpool_lease_block(lease, 0));
	assert_int_equal(kvpool_extend(lease, tokens, BLOCKS * BT), 0);
	kvpool_release(lease);
	check_lease(0, KVPOOL_BELOW_MIN);
}

/* Prefixes of many lengths, cached to a depth that is less, equal or more. */
static void test_every_depth(void **state)
{
	static const size_t depths[] = { 1, 2, 3, 8, 9, 40, 41, 104, 105, 127, 128, 299 };
	uint32_t have = 0;

	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		size_t d = depths[i];

		fake_publish(&fake, keys, have, (uint32_t)d);
		have = (uint32_t)d;
		assert_int_equal(kvpool_acquire(ns, lease, tokens, BLOCKS * BT, 0), d * BT);
		check_lease(d, d < BLOCKS - 1 ? KVPOOL_NOT_CACHED : KVPOOL_PARTIAL_BLOCK);
		check_bytes(lease);
		assert_int_equal(kvpool_acquire(ns, lease, tokens, d * BT + 1, 0), d * BT);
		check_lease(d, KVPOOL_COMPLETE);
		assert_int_equal(kvpool_acquire_keys(ns, lease, keys, d, 0), d * BT);
		check_lease(d, KVPOOL_COMPLETE);
		check_bytes(lease);
		assert_int_equal(kvpool_acquire_keys(ns, lease, keys, BLOCKS, 0), d * BT);
		check_lease(d, KVPOOL_NOT_CACHED);
	}
	kvpool_release(lease);
	check_lease(0, KVPOOL_NOT_CACHED);
}

static void test_depth_only(void **state)
{
	fake_publish(&fake, keys, 0, 77);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, BLOCKS, KVPOOL_DEPTH_ONLY), 77 * BT);
	check_lease(77, KVPOOL_NOT_CACHED);
	assert_null(kvpool_lease_block(lease, 0));
	assert_null(kvpool_lease_block(lease, 76));
	fake_publish(&fake, keys, 77, 80);
	assert_int_equal(kvpool_extend_keys(lease, keys, 79), 79 * BT);
	check_lease(79, KVPOOL_COMPLETE);
	assert_int_equal(kvpool_extend(lease, tokens, BLOCKS * BT), 80 * BT);
	check_lease(80, KVPOOL_NOT_CACHED);
	assert_null(kvpool_lease_block(lease, 0));
	/* The flag belongs to the keys form. */
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BLOCKS * BT, KVPOOL_DEPTH_ONLY),
			 80 * BT);
	check_bytes(lease);
}

static void test_at_most_all_but_one(void **state)
{
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 4 * BT, 0), 3 * BT);
	check_lease(3, KVPOOL_PARTIAL_BLOCK);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 4 * BT + 1, 0), 4 * BT);
	check_lease(4, KVPOOL_COMPLETE);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 4 * BT + 7, 0), 4 * BT);
	check_lease(4, KVPOOL_PARTIAL_BLOCK);
}

static void test_short_prompts(void **state)
{
	fake_publish(&fake, keys, 0, 2);
	for (size_t n = 0; n <= BT; n++) {
		assert_int_equal(kvpool_acquire(ns, lease, tokens, n, 0), 0);
		check_lease(0, KVPOOL_BELOW_MIN);
	}
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 0, 0), 0);
	check_lease(0, KVPOOL_BELOW_MIN);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BT + 1, 0), BT);
	check_lease(1, KVPOOL_COMPLETE);
}

static void test_other_tokens(void **state)
{
	static const size_t depths[] = { 0, 20, 39 };
	int32_t other[40 * BT + 1];

	fake_publish(&fake, keys, 0, 40);
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		memcpy(other, tokens, sizeof(other));
		other[depths[i] * BT + BT / 2] ^= 1;
		assert_int_equal(kvpool_acquire(ns, lease, other, 40 * BT + 1, 0), depths[i] * BT);
		check_lease(depths[i], KVPOOL_NOT_CACHED);
	}
}

static void test_other_namespace(void **state)
{
	struct kvpool_ns *other = fake_ns(pool, "another");

	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(kvpool_acquire(other, lease, tokens, 4 * BT + 1, 0), 0);
	check_lease(0, KVPOOL_NOT_CACHED);
	kvpool_ns_close(other);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 4 * BT + 1, 0), 4 * BT);
	kvpool_lease_free(lease);
	/* A namespace that is closed while a lease is of it. */
	other = fake_ns(pool, "m");
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &lease), 0);
	assert_int_equal(kvpool_acquire(other, lease, tokens, 2 * BT + 1, 0), 2 * BT);
	kvpool_ns_close(other);
	check_bytes(lease);
	assert_int_equal(kvpool_extend(lease, tokens, 4 * BT + 1), 4 * BT);
	check_bytes(lease);
}

static void test_another_pools_namespace(void **state)
{
	struct kvpool *second = fake_connect(&fake, 0);
	struct kvpool_ns *theirs = fake_ns(second, "m");

	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(kvpool_acquire(theirs, lease, tokens, 4 * BT + 1, 0), 0);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_NAMESPACE);
	kvpool_ns_close(theirs);
	kvpool_close(second);
}

static void test_small_lease(void **state)
{
	struct kvpool_lease *small;

	fake_publish(&fake, keys, 0, 10);
	assert_int_equal(kvpool_lease_new(pool, 4, &small), 0);
	assert_int_equal(kvpool_acquire(ns, small, tokens, 10 * BT + 1, 0), 4 * BT);
	assert_int_equal(kvpool_lease_reason(small), KVPOOL_PINS);
	assert_int_equal(kvpool_extend(small, tokens, 10 * BT + 1), 4 * BT);
	assert_int_equal(kvpool_lease_reason(small), KVPOOL_PINS);
	assert_int_equal(kvpool_acquire_keys(ns, small, keys, 4, 0), 4 * BT);
	assert_int_equal(kvpool_lease_reason(small), KVPOOL_COMPLETE);
	check_bytes(small);
	kvpool_lease_free(small);
	assert_int_equal(hazard_of(1), 0);
}

static void test_extend(void **state)
{
	const void *first;
	uint64_t before;

	/* A miss is extended from nothing. */
	assert_int_equal(kvpool_acquire(ns, lease, tokens, BLOCKS * BT, 0), 0);
	check_lease(0, KVPOOL_NOT_CACHED);
	fake_publish(&fake, keys, 0, 5);
	assert_int_equal(kvpool_extend(lease, tokens, BLOCKS * BT), 5 * BT);
	check_lease(5, KVPOOL_NOT_CACHED);
	first = kvpool_lease_block(lease, 0);
	before = hazard_of(0);
	/* Nothing new: nothing changes. */
	assert_int_equal(kvpool_extend(lease, tokens, BLOCKS * BT), 5 * BT);
	check_lease(5, KVPOOL_NOT_CACHED);
	assert_int_equal(hazard_of(0), before);
	/* Only what follows is looked at. */
	memset(tokens, 0xff, 5 * BT * sizeof(*tokens));
	fake_publish(&fake, keys, 5, 150);
	assert_int_equal(kvpool_extend(lease, tokens, 150 * BT + 1), 150 * BT);
	check_lease(150, KVPOOL_COMPLETE);
	check_bytes(lease);
	assert_ptr_equal(kvpool_lease_block(lease, 0), first);
	fake_publish(&fake, keys, 150, 152);
	assert_int_equal(kvpool_extend_keys(lease, keys, 152), 152 * BT);
	check_lease(152, KVPOOL_COMPLETE);
	check_bytes(lease);
	/* A shorter prompt does not make it shorter. */
	assert_int_equal(kvpool_extend(lease, tokens, 3 * BT), 152 * BT);
	check_lease(152, KVPOOL_PARTIAL_BLOCK);
}

/* A block that was doomed and stored anew under the lease: its prefix is another copy. */
static void test_extend_over_another_copy(void **state)
{
	uint32_t d, last;

	fake_publish(&fake, keys, 0, 3);
	last = fake_find(&fake, &keys[2]);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 3, 0), 3 * BT);
	for (size_t i = 3; i-- > 0;) {
		d = fake_find(&fake, &keys[i]);
		store_release(&fake.m.control.desc[d].word,
			      word_with_state(fake.m.control.desc[d].word, DESC_DOOMED));
		index_remove(&fake.m.index, (struct block_key *)&keys[i], d);
	}
	fake_publish(&fake, keys, 0, 6);
	assert_int_equal(kvpool_extend_keys(lease, keys, 6), 3 * BT);
	assert_int_equal(kvpool_lease_reason(lease), KVPOOL_RACED);
	assert_int_equal(hazard_desc(hazard_of(0)), last);
	check_bytes(lease);
	kvpool_release(lease);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 6, 0), 6 * BT);
	check_bytes(lease);
}

static void test_evicted_is_a_miss(void **state)
{
	fake_publish(&fake, keys, 0, 6);
	fake_evict(&fake, &keys[5]);
	fake_evict(&fake, &keys[4]);
	assert_int_equal(kvpool_acquire(ns, lease, tokens, 6 * BT + 1, 0), 4 * BT);
	check_lease(4, KVPOOL_NOT_CACHED);
}

static void test_many_leases(void **state)
{
	struct kvpool_lease *l[16];
	char text[200];

	fake_publish(&fake, keys, 0, 20);
	for (size_t i = 0; i < 15; i++) {
		assert_int_equal(kvpool_lease_new(pool, BLOCKS, &l[i]), 0);
		assert_int_equal(kvpool_acquire_keys(ns, l[i], keys, i + 1, 0), (i + 1) * BT);
		assert_int_equal(hazard_desc(hazard_of((uint32_t)i + 1)),
				 fake_find(&fake, &keys[i]));
	}
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &l[15]), -ENOSPC);
	kvpool_error(pool, text, sizeof(text));
	assert_string_equal(text,
			    "all 16 leases of this pool exist: free some, or raise max_leases in "
			    "struct kvpool_options");
	kvpool_lease_free(l[3]);
	assert_int_equal(hazard_of(4), 0);
	assert_int_equal(kvpool_lease_new(pool, BLOCKS, &l[3]), 0);
	for (size_t i = 0; i < 15; i++)
		kvpool_lease_free(l[i]);
	assert_int_equal(kvpool_lease_new(pool, 0, &l[0]), -EINVAL);
	assert_int_equal(kvpool_lease_new(pool, 1048577, &l[0]), -EINVAL);
}

/* Numbers of the handle, which are those of its session here. */
static void test_numbers_add_up(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };

	fake_publish(&fake, keys, 0, 4);
	kvpool_acquire(ns, lease, tokens, 0, 0);
	kvpool_acquire(ns, lease, tokens, 5, 0);          /* 5 asked */
	kvpool_acquire(ns, lease, tokens, 4 * BT + 3, 0); /* 67 asked, 64 hit */
	kvpool_acquire(ns, lease, tokens, 4 * BT, 0);     /* 64 asked, 48 hit */
	kvpool_acquire_keys(ns, lease, keys, 2, 0);       /* 32 asked, 32 hit */
	kvpool_extend_keys(lease, keys, 6);               /* 64 asked, 32 hit */
	kvpool_extend_keys(lease, keys, 4);               /* nothing asked */
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.lookups, 5);
	assert_int_equal(s.asked_tokens, 5 + 67 + 64 + 32 + 64);
	assert_int_equal(s.hit_tokens, 64 + 48 + 32 + 32);
	assert_int_equal(s.asked_tokens, s.hit_tokens + s.miss_tokens);
	assert_int_equal(s.shared_tokens, s.hit_tokens);
	assert_int_equal(fake.session.head->counter[COUNTER_ASKED_TOKENS], s.asked_tokens);
	s.size--;
	assert_int_equal(kvpool_get_stats(pool, &s), -EINVAL);
}

static void pop(uint64_t *place, struct touch *t)
{
	uint64_t lost = 0;

	assert_int_equal(touch_pop(&fake.session, place, &lost, t), 1);
	assert_int_equal(lost, 0);
}

static void test_touches(void **state)
{
	uint64_t place = 0, lost = 0;
	struct touch t;

	fake_publish(&fake, keys, 0, 4);
	kvpool_acquire(ns, lease, tokens, 6 * BT + 3, 0);
	pop(&place, &t);
	assert_int_equal(t.desc, fake_find(&fake, &keys[3]));
	assert_int_equal(t.ns, 3);
	assert_int_equal(t.asked_tokens, 6 * BT + 3);
	assert_int_equal(t.hit_tokens, 4 * BT);
	assert_int_equal(t.from_token, 0);
	assert_int_equal(touch_reason(&t), KVPOOL_NOT_CACHED);
	assert_int_equal(touch_tail(&t), 3);
	assert_memory_equal(t.miss_key, &keys[4], sizeof(t.miss_key));
	kvpool_acquire(ns, lease, tokens, 5, 0);
	pop(&place, &t);
	assert_int_equal(t.desc, DESC_NONE);
	assert_int_equal(t.asked_tokens, 5);
	assert_int_equal(touch_reason(&t), KVPOOL_BELOW_MIN);
	assert_int_equal(touch_tail(&t), 5);
	assert_int_equal(t.miss_key[0], 0);
	kvpool_acquire_keys(ns, lease, keys + 10, 2, KVPOOL_DEPTH_ONLY);
	pop(&place, &t);
	assert_memory_equal(t.miss_key, &keys[10], sizeof(t.miss_key));
	assert_int_equal(touch_tail(&t), 0);
	kvpool_acquire(ns, lease, tokens, 0, 0);
	kvpool_release(lease);
	assert_int_equal(touch_pop(&fake.session, &place, &lost, &t), 0);
}

static void test_errno_is_left_alone(void **state)
{
	fake_publish(&fake, keys, 0, 4);
	errno = 4711;
	kvpool_acquire(ns, lease, tokens, 6 * BT, 0);
	kvpool_extend(lease, tokens, 6 * BT);
	kvpool_lease_block(lease, 0);
	kvpool_release(lease);
	assert_int_equal(errno, 4711);
}

static void test_retired_region(void **state)
{
	fake_publish(&fake, keys, 0, 4);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 2, 0), 2 * BT);
	fake_retire(&fake);
	/* What is held stays, but nothing new is found. */
	assert_int_equal(kvpool_extend_keys(lease, keys, 4), 2 * BT);
	check_lease(2, KVPOOL_NO_DAEMON);
	check_bytes(lease);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 4, 0), 0);
	check_lease(0, KVPOOL_NO_DAEMON);
}

/* A slot number outside the pool, as an unsound region might have it. */
static void test_slot_outside(void **state)
{
	fake_publish(&fake, keys, 0, 4);
	fake.m.control.desc[fake_find(&fake, &keys[1])].slot[0] = FAKE_BLOCKS;
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 4, 0), 0);
	assert_int_equal(hazard_of(0), 0);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 1, 0), BT);
	check_bytes(lease);
}

static void read_range(uint64_t offset, size_t n, size_t cut, unsigned flags)
{
	uint8_t *buf = malloc(n + 1);
	struct iovec iov[3] = {
		{ buf, cut }, { NULL, 0 }, { buf + cut, n - cut },
	};

	buf[n] = 0xa5;
	assert_int_equal(kvpool_lease_read(lease, offset, iov, 3, flags), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf[i], fake_byte(&keys[(offset + i) / BB]));
	assert_int_equal(buf[n], 0xa5);
	free(buf);
}

static void test_read(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };
	struct iovec iov = { NULL, 0 };
	uint8_t byte;

	fake_publish(&fake, keys, 0, 200);
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 200, 0), 200 * BT);
	for (unsigned flags = 0; flags <= KVPOOL_VERIFY; flags++) {
		read_range(0, 200 * BB, 0, flags);
		read_range(0, 200 * BB, 77, flags);
		read_range(0, 200 * BB, 3 * BB + 1, flags);
		read_range(5, 1, 0, flags);
		read_range(BB - 1, 2, 1, flags);
		read_range(199 * BB, BB, BB / 2, flags);
	}
	assert_int_equal(kvpool_lease_read(lease, 200 * BB, &iov, 1, 0), 0);
	iov = (struct iovec){ &byte, 1 };
	assert_int_equal(kvpool_lease_read(lease, 200 * BB, &iov, 1, 0), -ERANGE);
	assert_int_equal(kvpool_lease_read(lease, UINT64_MAX, &iov, 1, 0), -ERANGE);
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, -1, 0), -EINVAL);
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, 2), -EINVAL);
	iov.iov_len = SIZE_MAX;
	assert_int_equal(kvpool_lease_read(lease, 1, &iov, 1, 0), -ERANGE);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.copies_out, 12);
	assert_int_equal(s.copied_out_bytes, 2 * (3 * 200 * BB + 3 + BB));
	assert_int_equal(s.checksum_errors, 0);
	kvpool_acquire_keys(ns, lease, keys, 3, KVPOOL_DEPTH_ONLY);
	iov.iov_len = 1;
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, 0), -ENODATA);
	kvpool_release(lease);
	assert_int_equal(kvpool_lease_read(lease, 0, &iov, 1, 0), -ERANGE);
}

static void test_read_finds_a_changed_byte(void **state)
{
	struct kvpool_stats s = { .size = sizeof(s) };
	uint8_t buf[3 * BB];
	struct iovec split[2] = { { buf, BB + 100 }, { buf + BB + 100, 2 * BB - 100 } };

	fake_publish(&fake, keys, 0, 3);
	fake.m.pool[(uint64_t)fake_find(&fake, &keys[1]) * BB + 4000] ^= 1;
	assert_int_equal(kvpool_acquire_keys(ns, lease, keys, 3, 0), 3 * BT);
	assert_int_equal(kvpool_lease_read(lease, 0, split, 2, 0), 0);
	assert_int_equal(kvpool_lease_read(lease, 0, split, 2, KVPOOL_VERIFY), -EBADMSG);
	/* A part of a block cannot be checked. */
	split[0] = (struct iovec){ buf, BB - 1 };
	assert_int_equal(kvpool_lease_read(lease, BB, split, 1, KVPOOL_VERIFY), 0);
	assert_int_equal(kvpool_get_stats(pool, &s), 0);
	assert_int_equal(s.checksum_errors, 1);
	assert_int_equal(kvpool_ping(pool), 0);
	assert_int_equal(fake_seen(&fake, OP_REPORT), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_new_lease_is_empty),
		TEST(test_every_depth),
		TEST(test_depth_only),
		TEST(test_at_most_all_but_one),
		TEST(test_short_prompts),
		TEST(test_other_tokens),
		TEST(test_other_namespace),
		TEST(test_another_pools_namespace),
		TEST(test_small_lease),
		TEST(test_extend),
		TEST(test_extend_over_another_copy),
		TEST(test_evicted_is_a_miss),
		TEST(test_many_leases),
		TEST(test_numbers_add_up),
		TEST(test_touches),
		TEST(test_errno_is_left_alone),
		TEST(test_retired_region),
		TEST(test_slot_outside),
		TEST(test_read),
		TEST(test_read_finds_a_changed_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
