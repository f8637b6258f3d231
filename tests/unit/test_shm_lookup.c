/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's path: find the depth, pin, resolve; and chains that change between these steps. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shm/desc.h"
#include "shm/word.h"
#include "tests/shm/region.h"

#define BLOCKS 8192u
#define LONGEST 4096u

static struct region r;
static struct block_key keys[LONGEST], other[LONGEST];
static uint32_t descs[LONGEST], batch[LONGEST];
static struct lookup_note notes[LONGEST], gallop[LONGEST];

static int setup(void **state)
{
	region_init(&r, &(struct region_config){ .max_blocks = BLOCKS, .sessions = 2 });
	region_keys(1, 1000, LONGEST, keys);
	memset(notes, 0xa5, sizeof(notes));
	memset(gallop, 0xa5, sizeof(gallop));
	return 0;
}

static int teardown(void **state)
{
	region_fini(&r);
	return 0;
}

static uint64_t *hazard(unsigned int i)
{
	return &r.session[0].hazard[i];
}

/* Both ways to find the depth, which must agree; notes is the scan's. */
static uint32_t depth(const struct block_key *k, uint32_t n)
{
	uint32_t by_scan = lookup_scan(&r.c, k, n, TIER_HOST, notes);
	uint32_t by_gallop = lookup_gallop(&r.c, k, n, TIER_HOST, gallop);

	assert_int_equal(by_scan, by_gallop);
	if (by_scan) {
		assert_int_equal(notes[by_scan - 1].desc, gallop[by_scan - 1].desc);
		assert_int_equal(notes[by_scan - 1].word, gallop[by_scan - 1].word);
	}
	return by_scan;
}

/* Every slot of the pinned prefix holds the bytes of its key. */
static void check_bytes(const struct lookup_note *n, const struct block_key *k, uint32_t first,
			uint32_t count)
{
	for (uint32_t i = first; i < count; i++)
		assert_true(region_bytes_are(&r, n[i].slot, &k[i]));
}

/* The whole hit path on a prompt of n keys; returns the depth. */
static uint32_t acquire(const struct block_key *k, uint32_t n, uint64_t *h)
{
	uint32_t found = lookup_scan(&r.c, k, n, TIER_HOST, notes);
	uint32_t pinned = lookup_pin(&r.c, h, notes, found, found, TIER_HOST);

	assert_int_equal(pinned, found);
	if (pinned) {
		assert_int_equal(lookup_resolve(&r.c, notes, 0, pinned, TIER_HOST), 0);
		check_bytes(notes, k, 0, pinned);
		assert_int_equal(hazard_desc(*h), notes[pinned - 1].desc);
	} else {
		assert_int_equal(*h, 0);
	}
	return pinned;
}

static void prefixes_of_every_length(void **state)
{
	static const uint32_t lengths[] = { 1, 2, 3, 31, 32, 33, 64, 65, 96, 127, 128, 4096 };

	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint32_t n = lengths[i];

		region_publish(&r, keys, n, descs);
		assert_int_equal(depth(keys, n), n);
		assert_int_equal(depth(keys, LONGEST), n);     /* asks for more than there is */
		assert_int_equal(depth(keys, n - 1), n - 1);   /* and for less */
		assert_int_equal(acquire(keys, LONGEST, hazard(0)), n);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(notes[k].desc, descs[k]);
		lookup_unpin(hazard(0));
		assert_int_equal(*hazard(0), 0);
	}
}

static void no_blocks(void **state)
{
	assert_int_equal(depth(keys, 0), 0);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 0, 0, TIER_HOST), 0);
	assert_int_equal(lookup_resolve(&r.c, notes, 0, 0, TIER_HOST), 0);
	assert_int_equal(depth(keys, LONGEST), 0); /* an empty pool */
	region_publish(&r, keys, 4, descs);
	assert_int_equal(depth(keys, 0), 0);
	assert_int_equal(*hazard(0), 0);
}

static void another_namespace_has_other_keys(void **state)
{
	region_publish(&r, keys, 128, descs);
	region_keys(2, 1000, 128, other);
	assert_int_equal(depth(other, 128), 0);
	region_publish(&r, other, 64, batch);
	assert_int_equal(depth(other, 128), 64);
	assert_int_equal(depth(keys, 128), 128);
}

/* Another token in block i: all keys from i on are others. */
static void a_token_that_differs(void **state)
{
	static const uint32_t at[] = { 0, 1, 64, 126, 127 };

	region_publish(&r, keys, 128, descs);
	for (unsigned int i = 0; i < ARRAY_SIZE(at); i++) {
		memcpy(other, keys, sizeof(other));
		for (uint32_t k = at[i]; k < 128; k++)
			other[k].w[3] ^= 1;
		assert_int_equal(depth(other, 128), at[i]);
		assert_int_equal(acquire(other, 128, hazard(0)), at[i]);
		lookup_unpin(hazard(0));
	}
}

static void only_committed_in_the_tier_is_found(void **state)
{
	struct lookup_note note;
	uint32_t d = region_reserve(&r, &keys[0], DESC_NONE, 0);

	assert_false(lookup_find(&r.c, &keys[0], TIER_HOST, &note));
	region_commit(&r, d);
	assert_true(lookup_find(&r.c, &keys[0], TIER_HOST, &note));
	assert_int_equal(note.desc, d);
	assert_int_equal(note.word, r.c.desc[d].word);
	assert_false(lookup_find(&r.c, &keys[0], TIER_DEVICE, &note));
	for (int s = DESC_FREE; s <= DESC_STATE_MAX; s++) {
		desc_set_state(&r.c, d, (enum desc_state)s);
		assert_int_equal(lookup_find(&r.c, &keys[0], TIER_HOST, &note),
				 s == DESC_COMMITTED);
	}
}

/* Evicted between the look and the pin: the pin falls back to what is left, and says so. */
static void cut_before_the_pin(void **state)
{
	region_publish(&r, keys, 10, descs);
	assert_int_equal(depth(keys, 10), 10);
	region_deepest_first(descs, 10, batch);
	assert_int_equal(region_evict(&r, batch, 3), 3);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 10, 10, TIER_HOST), 7);
	assert_int_equal(hazard_desc(*hazard(0)), descs[6]);
	assert_int_equal(lookup_resolve(&r.c, notes, 0, 7, TIER_HOST), 0);
	check_bytes(notes, keys, 0, 7);
	lookup_unpin(hazard(0));
	/* Nothing is known of the blocks above after a gallop: a miss. */
	assert_int_equal(lookup_pin(&r.c, hazard(0), gallop, 10, 1, TIER_HOST), 0);
	assert_int_equal(*hazard(0), 0);
}

static void all_gone_before_the_pin(void **state)
{
	region_publish(&r, keys, 10, descs);
	assert_int_equal(depth(keys, 10), 10);
	region_deepest_first(descs, 10, batch);
	assert_int_equal(region_evict(&r, batch, 10), 10);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 10, 10, TIER_HOST), 0);
	assert_int_equal(*hazard(0), 0);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 1, 1, TIER_HOST), 0);
}

/* The same descriptor with the same key again: another life, and the note is of the last one. */
static void published_again_before_the_pin(void **state)
{
	uint64_t gen;

	region_publish(&r, keys, 1, descs);
	assert_int_equal(depth(keys, 1), 1);
	gen = word_gen(r.c.desc[descs[0]].word);
	assert_int_equal(region_evict(&r, descs, 1), 1);
	region_publish(&r, keys, 1, batch);
	assert_int_equal(batch[0], descs[0]);
	assert_int_equal(word_gen(r.c.desc[descs[0]].word), gen + 1);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 1, 1, TIER_HOST), 0);
	assert_int_equal(depth(keys, 1), 1);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 1, 1, TIER_HOST), 1);
}

/* Restored by the daemon meanwhile (same gen): the note is as good as before. */
static void evicting_and_back(void **state)
{
	region_publish(&r, keys, 2, descs);
	assert_int_equal(depth(keys, 2), 2);
	desc_set_state(&r.c, descs[1], DESC_EVICTING);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 2, 2, TIER_HOST), 1);
	lookup_unpin(hazard(0));
	desc_set_state(&r.c, descs[1], DESC_COMMITTED);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 2, 2, TIER_HOST), 2);
}

static void flushed_before_the_pin(void **state)
{
	region_publish(&r, keys, 6, descs);
	assert_int_equal(depth(keys, 6), 6);
	region_deepest_first(descs, 6, batch);
	doom_mark(&r.index, batch, 4); /* the last four */
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 6, 6, TIER_HOST), 2);
	assert_int_equal(depth(keys, 6), 2);
	assert_int_equal(region_doom_settle(&r, batch, 4), 0);
}

/* The ancestors of a pinned block are those that its links name, whatever was noted. */
static void notes_of_ancestors_are_not_believed(void **state)
{
	region_publish(&r, keys, 5, descs);
	assert_int_equal(depth(keys, 5), 5);
	assert_int_equal(lookup_pin(&r.c, hazard(0), notes, 5, 5, TIER_HOST), 5);
	notes[3].desc = descs[0];
	notes[2].desc = BLOCKS + 5;
	notes[1].desc = DESC_NONE;
	assert_int_equal(lookup_resolve(&r.c, notes, 0, 5, TIER_HOST), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(notes[i].desc, descs[i]);
	check_bytes(notes, keys, 0, 5);
	/* After a gallop only the deepest note is filled. */
	assert_int_equal(lookup_resolve(&r.c, gallop, 0, 5, TIER_HOST), 0);
	check_bytes(gallop, keys, 0, 5);
}

static void link_that_leads_nowhere(void **state)
{
	region_publish(&r, keys, 3, descs);
	assert_int_equal(depth(keys, 3), 3);
	r.c.desc[descs[1]].parent = DESC_NONE;
	assert_int_equal(lookup_resolve(&r.c, notes, 0, 3, TIER_HOST), -EIO);
	r.c.desc[descs[1]].parent = BLOCKS;
	assert_int_equal(lookup_resolve(&r.c, notes, 0, 3, TIER_HOST), -EIO);
}

/* A lease of 4 blocks grows to 9 in place: second word, then the first is cleared. */
static void extend_a_lease(void **state)
{
	uint32_t more;

	region_publish(&r, keys, 9, descs);
	assert_int_equal(acquire(keys, 4, hazard(0)), 4);
	more = lookup_scan(&r.c, keys + 4, 5, TIER_HOST, notes + 4);
	assert_int_equal(more, 5);
	assert_int_equal(lookup_pin(&r.c, hazard(1), notes + 4, more, more, TIER_HOST), 5);
	assert_int_equal(lookup_resolve(&r.c, notes, 4, 9, TIER_HOST), 0);
	lookup_unpin(hazard(0));
	check_bytes(notes, keys, 0, 9);
	region_deepest_first(descs, 9, batch);
	assert_int_equal(region_evict(&r, batch, 9), 0); /* all of it is held by the second word */
	check_bytes(notes, keys, 0, 9);
	lookup_unpin(hazard(1));
	assert_int_equal(region_evict(&r, batch, 9), 9);
}

/*
 * The prefix of a lease is flushed and published again elsewhere, then the lease is extended: the
 * new pin is on another copy of the prefix, and the old word must stay.
 */
static void extend_over_a_flushed_prefix(void **state)
{
	uint32_t again[6];

	region_publish(&r, keys, 2, descs);
	assert_int_equal(acquire(keys, 2, hazard(0)), 2);
	region_deepest_first(descs, 2, batch);
	doom_mark(&r.index, batch, 2);
	assert_int_equal(region_doom_settle(&r, batch, 2), 2);
	region_publish(&r, keys, 6, again);
	assert_int_not_equal(again[1], descs[1]);
	assert_int_equal(lookup_scan(&r.c, keys + 2, 4, TIER_HOST, notes + 2), 4);
	assert_int_equal(lookup_pin(&r.c, hazard(1), notes + 2, 4, 4, TIER_HOST), 4);
	assert_int_equal(lookup_resolve(&r.c, notes, 2, 6, TIER_HOST), LOOKUP_OTHER_PREFIX);
	assert_int_equal(notes[1].desc, descs[1]); /* the lease's own note is as it was */
	lookup_unpin(hazard(1));
	check_bytes(notes, keys, 0, 2);
	assert_int_equal(region_doom_settle(&r, batch, 2), 2);
	lookup_unpin(hazard(0));
	assert_int_equal(region_doom_settle(&r, batch, 2), 0);
}

/* Two copies of one key: flushed and pinned, and the new one, which is what others find. */
static void flushed_and_published_again(void **state)
{
	uint32_t again[3];

	region_publish(&r, keys, 3, descs);
	assert_int_equal(acquire(keys, 3, hazard(0)), 3);
	region_deepest_first(descs, 3, batch);
	doom_mark(&r.index, batch, 3);
	assert_int_equal(depth(keys, 3), 0);
	region_publish(&r, keys, 3, again);
	assert_int_equal(acquire(keys, 3, hazard(1)), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(notes[i].desc, again[i]);
	lookup_unpin(hazard(0));
	assert_int_equal(region_doom_settle(&r, batch, 3), 0);
	assert_int_equal(depth(keys, 3), 3); /* the old copy's end does not unlist the new one */
	check_bytes(notes, keys, 0, 3);
}

/* Branches share a prefix; each is found to its own end. */
static void branches(void **state)
{
	uint32_t trunk = 40;

	memcpy(other, keys, sizeof(other));
	for (uint32_t i = trunk; i < 100; i++)
		other[i].w[2] ^= 77;
	region_publish(&r, keys, 80, descs);
	region_publish(&r, other, 60, batch);
	assert_int_equal(depth(keys, 100), 80);
	assert_int_equal(depth(other, 100), 60);
	assert_int_equal(acquire(other, 100, hazard(0)), 60);
	for (uint32_t i = 0; i < trunk; i++)
		assert_int_equal(notes[i].desc, descs[i]);
}

/* The prefetch of a scan reads entries of any kind; none may lead it out of the region. */
static void scan_over_garbage_entries(void **state)
{
	region_publish(&r, keys, 100, descs);
	for (uint32_t i = 50; i < 100; i++) {
		struct index_place p = index_place(&r.c, &keys[i]);

		for (unsigned int b = 0; b < 2; b++)
			for (unsigned int e = 0; e < BUCKET_ENTRIES; e++)
				r.c.index[p.bucket[b]].entry[e] =
					entry_make(p.tag, i, e % 2 ? CONTROL_BLOCKS_MAX : BLOCKS);
	}
	assert_true(lookup_scan(&r.c, keys, 100, TIER_HOST, notes) <= 50);
}

int main(void)
{
#define WITH_REGION(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_REGION(prefixes_of_every_length),
		WITH_REGION(no_blocks),
		WITH_REGION(another_namespace_has_other_keys),
		WITH_REGION(a_token_that_differs),
		WITH_REGION(only_committed_in_the_tier_is_found),
		WITH_REGION(cut_before_the_pin),
		WITH_REGION(all_gone_before_the_pin),
		WITH_REGION(published_again_before_the_pin),
		WITH_REGION(evicting_and_back),
		WITH_REGION(flushed_before_the_pin),
		WITH_REGION(notes_of_ancestors_are_not_believed),
		WITH_REGION(link_that_leads_nowhere),
		WITH_REGION(extend_a_lease),
		WITH_REGION(extend_over_a_flushed_prefix),
		WITH_REGION(flushed_and_published_again),
		WITH_REGION(branches),
		WITH_REGION(scan_over_garbage_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
