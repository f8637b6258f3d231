/* SPDX-License-Identifier: Apache-2.0 */
/* The index: claims, entries, displacement, and what a probe believes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "shm/desc.h"
#include "shm/word.h"
#include "tests/shm/region.h"

#define BLOCKS 512u

static struct region r;

static int setup(void **state)
{
	region_init(&r, &(struct region_config){ .max_blocks = BLOCKS });
	return 0;
}

static int teardown(void **state)
{
	region_fini(&r);
	return 0;
}

/* A region with one bucket pair for everybody: 4 descriptors or fewer share bucket 0. */
static void tiny(uint32_t blocks)
{
	region_fini(&r);
	region_init(&r, &(struct region_config){ .max_blocks = blocks });
}

static void key_of_number(uint64_t n, struct block_key *key)
{
	region_keys(n + 1, 0, 1, key);
}

/* Keys that all may stand in bucket b, first or second. */
static void key_for_bucket(uint64_t b, uint64_t *seed, struct block_key *key)
{
	struct index_place p;

	do {
		key_of_number((*seed)++, key);
		p = index_place(&r.c, key);
	} while (p.bucket[0] != b && p.bucket[1] != b);
}

static int found(const struct block_key *key, uint32_t d)
{
	uint32_t got;
	uint64_t word;

	return index_probe(&r.c, key, &got, &word) && got == d && word == r.c.desc[d].word &&
	       index_find(&r.c, key) == d;
}

static uint32_t publish(const struct block_key *key)
{
	uint32_t d = region_reserve(&r, key, DESC_NONE, 0);

	if (d != DESC_NONE)
		region_commit(&r, d);
	return d;
}

static unsigned int entries(void)
{
	unsigned int n = 0;

	for (uint64_t b = 0; b <= r.c.bucket_mask; b++)
		for (unsigned int i = 0; i < BUCKET_ENTRIES; i++)
			n += r.c.index[b].entry[i] != 0;
	return n;
}

static void two_places_for_every_key(void **state)
{
	struct block_key key;

	for (uint64_t i = 0; i < 2000; i++) {
		struct index_place p;

		key_of_number(i, &key);
		p = index_place(&r.c, &key);
		assert_true(p.bucket[0] <= r.c.bucket_mask && p.bucket[1] <= r.c.bucket_mask);
		assert_int_not_equal(p.bucket[0], p.bucket[1]);
		assert_true(p.tag <= 0xffff);
	}
}

/* Another domain has another salt: who floods a bucket here floods nothing there. */
static void places_depend_on_the_salt(void **state)
{
	struct control other = r.c;
	unsigned int same = 0;
	struct block_key key;

	other.salt[0] ^= 0x5555;
	other.salt[1] ^= 0x5555;
	for (uint64_t i = 0; i < 200; i++) {
		key_of_number(i, &key);
		same += index_place(&r.c, &key).bucket[0] == index_place(&other, &key).bucket[0];
	}
	assert_true(same < 50);
}

static void publish_probe_remove(void **state)
{
	struct block_key key, absent;
	uint32_t d, got = 4711;
	uint64_t word = 4711;

	key_of_number(1, &key);
	key_of_number(2, &absent);
	assert_false(index_probe(&r.c, &key, &got, &word));
	d = publish(&key);
	assert_true(found(&key, d));
	assert_false(index_probe(&r.c, &absent, &got, &word));
	assert_int_equal(index_find(&r.c, &absent), DESC_NONE);
	assert_int_equal(got, 4711); /* a miss writes nothing */
	assert_int_equal(word, 4711);
	index_remove(&r.index, &key, d + 1);
	assert_true(found(&key, d)); /* another descriptor's removal leaves it alone */
	index_remove(&r.index, &key, d);
	assert_false(index_probe(&r.c, &key, &got, &word));
	assert_int_equal(entries(), 0);
	index_remove(&r.index, &key, d); /* twice is harmless */
}

static void whole_key_counts(void **state)
{
	struct block_key key, near;
	uint32_t d, got;
	uint64_t word;

	key_of_number(1, &key);
	d = publish(&key);
	for (unsigned int i = 0; i < KEY_WORDS * 64; i++) {
		near = key;
		near.w[i / 64] ^= UINT64_C(1) << i % 64;
		assert_false(index_probe(&r.c, &near, &got, &word));
		assert_int_equal(index_find(&r.c, &near), DESC_NONE);
	}
	assert_true(found(&key, d));
}

/* The last two words choose neither bucket nor tag: such keys meet in one entry's neighbourhood. */
static void same_bucket_and_tag(void **state)
{
	struct block_key key[4];
	uint32_t d[4];

	key_of_number(1, &key[0]);
	for (unsigned int i = 1; i < 4; i++) {
		key[i] = key[0];
		key[i].w[2 + i % 2] ^= i;
	}
	for (unsigned int i = 0; i < 4; i++)
		d[i] = publish(&key[i]);
	for (unsigned int i = 0; i < 4; i++)
		assert_true(found(&key[i], d[i]));
	index_remove(&r.index, &key[1], d[1]);
	assert_false(found(&key[1], d[1]));
	assert_true(found(&key[2], d[2]));
}

static void stale_and_foreign_entries_never_match(void **state)
{
	struct block_key key;
	struct index_place p;
	uint64_t *e, good, word;
	uint32_t d, got;

	key_of_number(1, &key);
	d = publish(&key);
	p = index_place(&r.c, &key);
	e = &r.c.index[p.bucket[0]].entry[0];
	good = *e;
	assert_int_equal(good, entry_make(p.tag, word_gen(r.c.desc[d].word), d));
	*e = entry_make(p.tag, word_gen(r.c.desc[d].word) + 1, d);
	assert_false(index_probe(&r.c, &key, &got, &word));
	*e = entry_make(p.tag ^ 1, word_gen(r.c.desc[d].word), d);
	assert_false(index_probe(&r.c, &key, &got, &word));
	*e = entry_make(p.tag, word_gen(r.c.desc[d].word), BLOCKS);
	assert_false(index_probe(&r.c, &key, &got, &word));
	*e = entry_make(p.tag, word_gen(r.c.desc[d].word), CONTROL_BLOCKS_MAX);
	assert_false(index_probe(&r.c, &key, &got, &word));
	*e = good & ~UINT64_C(0xffffffff); /* names nobody */
	assert_false(index_probe(&r.c, &key, &got, &word));
	*e = good;
	assert_true(found(&key, d));
	desc_free(&r.c, d);
	desc_reserve(&r.c, d, &(struct desc_identity){ .key = key }, TIER_HOST, 0);
	assert_false(index_probe(&r.c, &key, &got, &word)); /* same key, next life */
}

static void a_claim_keeps_its_place(void **state)
{
	struct block_key key;
	uint64_t bucket[BUCKET_ENTRIES * 2], seed = 1, none;

	tiny(4);
	assert_int_equal(r.c.bucket_mask, 0);
	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++) {
		key_for_bucket(0, &seed, &key);
		assert_true(index_claim(&r.index, &key, &bucket[i]));
		assert_int_equal(bucket[i], 0);
	}
	assert_int_equal(r.index.claimed[0], BUCKET_ENTRIES);
	none = 4711;
	/* full of promises: nothing to displace */
	assert_false(index_claim(&r.index, &key, &none));
	assert_int_equal(none, 4711);
	index_unclaim(&r.index, bucket[0]);
	assert_true(index_claim(&r.index, &key, &none));
}

static void a_promise_is_kept_when_others_come_first(void **state)
{
	struct block_key early, key;
	uint64_t seed = 1;
	uint32_t d, mine;

	key_for_bucket(0, &seed, &early);
	mine = region_reserve(&r, &early, DESC_NONE, 0);
	for (unsigned int i = 0; i < 40; i++) {
		key_for_bucket(0, &seed, &key);
		d = publish(&key);
		if (d == DESC_NONE)
			break;
		assert_true(found(&key, d));
	}
	region_commit(&r, mine);
	assert_true(found(&early, mine));
}

static unsigned int used(uint64_t b)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++)
		n += r.c.index[b].entry[i] != 0;
	return n;
}

/*
 * Buckets 0 and 1 are full, and a key comes that may stand nowhere else: one entry moves to its
 * other bucket, moved is raised, and everybody is still found.
 */
static void displacement_moves_one_entry(void **state)
{
	struct block_key key[64], last;
	uint32_t d[64], n = 0;
	struct index_place p;
	uint64_t seed = 1;

	while (used(0) < BUCKET_ENTRIES || used(1) < BUCKET_ENTRIES) {
		key_for_bucket(used(0) == BUCKET_ENTRIES, &seed, &key[n]);
		d[n] = publish(&key[n]);
		assert_int_not_equal(d[n], DESC_NONE);
		assert_true(++n < 64);
	}
	assert_int_equal(r.c.head->moved, 0);
	do {
		key_for_bucket(0, &seed, &last);
		p = index_place(&r.c, &last);
	} while (p.bucket[0] + p.bucket[1] != 1);
	assert_true(found(&last, publish(&last)));
	assert_int_equal(r.c.head->moved, 1);
	assert_int_equal(entries(), n + 1);
	for (uint32_t i = 0; i < n; i++)
		assert_true(found(&key[i], d[i]));
}

/* A copy in both places, as a daemon that died while it moved an entry leaves it. */
static void entry_in_both_places(void **state)
{
	struct block_key key;
	struct index_place p;
	uint32_t d, got;
	uint64_t word;

	key_of_number(1, &key);
	d = publish(&key);
	p = index_place(&r.c, &key);
	r.c.index[p.bucket[1]].entry[3] = r.c.index[p.bucket[0]].entry[0];
	assert_true(found(&key, d));
	index_remove(&r.index, &key, d);
	assert_false(index_probe(&r.c, &key, &got, &word));
	assert_int_equal(entries(), 0);
}

/* What belongs to another bucket is not carried around when room is made. */
static void displacement_leaves_stale_entries(void **state)
{
	struct block_key key;
	uint64_t bucket, seed = 1;
	unsigned int n = 0;

	for (uint32_t d = 0; d < BUCKET_ENTRIES * 2; d++) {
		struct index_place p;

		do {
			key_of_number(seed++, &key);
			p = index_place(&r.c, &key);
		} while (p.bucket[0] <= 1 || p.bucket[1] <= 1);
		memcpy(r.c.desc[d].key, &key, sizeof(key));
		r.c.index[d / BUCKET_ENTRIES].entry[d % BUCKET_ENTRIES] = entry_make(p.tag, 9, d);
	}
	do {
		key_of_number(seed++, &key);
		n++;
	} while (index_place(&r.c, &key).bucket[0] + index_place(&r.c, &key).bucket[1] != 1);
	assert_true(n > 0);
	assert_false(index_claim(&r.index, &key, &bucket));
	assert_int_equal(r.c.head->moved, 0);
	assert_int_equal(entries(), BUCKET_ENTRIES * 2);
}

/* Far above the load that the daemon allows itself (50 %): places are found, keys too. */
static void load_beyond_half(void **state)
{
	uint64_t places = (r.c.bucket_mask + 1) * BUCKET_ENTRIES, taken = 0, seed = 0;
	struct block_key *key = calloc(places, sizeof(*key));
	uint64_t *bucket = calloc(places, sizeof(*bucket));
	struct block_key next;
	uint64_t b;

	assert_non_null(key);
	assert_non_null(bucket);
	/* Claims first, as many as there are; each is a promise that must come true below. */
	for (; taken < places; taken++) {
		key_of_number(seed++, &next);
		if (!index_claim(&r.index, &next, &b))
			break;
		key[taken] = next;
		bucket[taken] = b;
		if (taken < BLOCKS) { /* the first ones become entries at once, and may be moved */
			struct desc_identity id = { .key = next, .parent = DESC_NONE };
			uint64_t gen = desc_reserve(&r.c, (uint32_t)taken, &id, TIER_HOST, 0);

			desc_commit(&r.c, (uint32_t)taken, TIER_HOST, 0);
			index_publish(&r.index, b, &next, (uint32_t)taken, gen);
		}
	}
	assert_true(taken * 100 >= places * 80);
	for (uint32_t i = 0; i < BLOCKS; i++)
		assert_true(found(&key[i], i));
	for (uint64_t i = 0; i <= r.c.bucket_mask; i++) {
		unsigned int used = r.index.claimed[i];

		for (unsigned int k = 0; k < BUCKET_ENTRIES; k++)
			used += r.c.index[i].entry[k] != 0;
		assert_true(used <= BUCKET_ENTRIES);
	}
	for (uint64_t i = BLOCKS; i < taken; i++)
		index_unclaim(&r.index, bucket[i]);
	for (uint32_t i = 0; i < BLOCKS; i++)
		index_remove(&r.index, &key[i], i);
	assert_int_equal(entries(), 0);
	for (uint64_t i = 0; i <= r.c.bucket_mask; i++)
		assert_int_equal(r.index.claimed[i], 0);
	free(key);
	free(bucket);
}

/*
 * At the load that the layout promises no claim fails: 200 fillings with other keys. Some promises
 * are outstanding all the time: they cannot be moved.
 */
static void half_full_never_refuses(void **state)
{
	for (uint64_t round = 0; round < 200; round++) {
		struct block_key key;

		region_fini(&r);
		region_init(&r, &(struct region_config){ .max_blocks = BLOCKS });
		for (uint32_t i = 0; i < BLOCKS; i++) {
			uint32_t d;

			key_of_number(round << 32 | i, &key);
			d = region_reserve(&r, &key, DESC_NONE, 0);
			assert_int_not_equal(d, DESC_NONE);
			if (i % 16)
				region_commit(&r, d);
		}
	}
}

/* The vectors of doc/shared-memory.md, which doc/pages.py computes by itself. */
static void vectors_of_the_page(void **state)
{
	static const struct {
		const char *key; /* of doc/keys.md, its first 16 bytes */
		uint64_t bucket[2];
		uint32_t tag;
	} vectors[] = {
		{ "96a231236c91d696f2b94293ea3c11bf", { 2071, 3861 }, 34859 },
		{ "9a0f9cc1f8dfb3a05485b9459099dba8", { 3254, 1293 }, 35576 },
		{ "8dda62e93acafd5a112d7781135f78f8", { 284, 2660 }, 39457 },
		{ "2d6d79e0b58b6bb7a6ddaf2008b93990", { 691, 2003 }, 45144 },
	};
	struct control c = {
		.salt = { 0x0123456789abcdef, 0xfedcba9876543210 },
		.bucket_mask = 4095,
	};

	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		struct block_key key = { 0 };
		struct index_place p;
		uint8_t bytes[16];

		for (size_t k = 0; k < sizeof(bytes); k++)
			assert_int_equal(sscanf(vectors[i].key + 2 * k, "%2hhx", &bytes[k]), 1);
		memcpy(key.w, bytes, sizeof(bytes));
		p = index_place(&c, &key);
		assert_int_equal(p.bucket[0], vectors[i].bucket[0]);
		assert_int_equal(p.bucket[1], vectors[i].bucket[1]);
		assert_int_equal(p.tag, vectors[i].tag);
	}
}

int main(void)
{
#define WITH_REGION(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_REGION(two_places_for_every_key),
		WITH_REGION(places_depend_on_the_salt),
		WITH_REGION(publish_probe_remove),
		WITH_REGION(whole_key_counts),
		WITH_REGION(same_bucket_and_tag),
		WITH_REGION(stale_and_foreign_entries_never_match),
		WITH_REGION(a_claim_keeps_its_place),
		WITH_REGION(a_promise_is_kept_when_others_come_first),
		WITH_REGION(displacement_moves_one_entry),
		WITH_REGION(entry_in_both_places),
		WITH_REGION(displacement_leaves_stale_entries),
		WITH_REGION(load_beyond_half),
		WITH_REGION(half_full_never_refuses),
		cmocka_unit_test(vectors_of_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
