/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors through their states, snapshots of pins, and batches: eviction and doom. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shm/desc.h"
#include "shm/word.h"
#include "tests/shm/region.h"

#define BLOCKS 4096u
#define CHAIN  6u

static struct region r;
static struct block_key keys[CHAIN];
static uint32_t descs[CHAIN], batch[CHAIN];

static int setup(void **state)
{
	region_init(&r, &(struct region_config){ .max_blocks = BLOCKS, .sessions = 3 });
	region_keys(1, 50, CHAIN, keys);
	region_publish(&r, keys, CHAIN, descs);
	region_deepest_first(descs, CHAIN, batch);
	return 0;
}

static int teardown(void **state)
{
	region_fini(&r);
	return 0;
}

static void pin(unsigned int session, uint32_t d)
{
	r.session[session].hazard[0] = hazard_make(d, TIER_HOST, 0);
}

/* The chain is COMMITTED and listed up to depth n, and gone behind it. */
static void expect_chain(uint32_t n)
{
	struct lookup_note note;

	for (uint32_t i = 0; i < CHAIN; i++) {
		assert_int_equal(region_state(&r, descs[i]), i < n ? DESC_COMMITTED : DESC_FREE);
		assert_int_equal(lookup_find(&r.c, &keys[i], TIER_HOST, &note), i < n);
	}
}

static void life_of_a_descriptor(void **state)
{
	struct desc_identity id = {
		.key.w = { 1, 2, 3, 4 }, .parent = 9, .ns = 1, .depth = 8, .writer = 77
	};
	struct desc *k = &r.c.desc[100];
	uint64_t gen;

	k->slot[0] = k->slot[1] = 4711;
	gen = desc_reserve(&r.c, 100, &id, TIER_DEVICE, 55);
	assert_int_equal(k->word, word_make(DESC_RESERVED, 0, gen));
	assert_memory_equal(k->key, &id.key, sizeof(id.key));
	assert_int_equal(k->parent, 9);
	assert_int_equal(k->depth, 8);
	assert_int_equal(k->ns, 1);
	assert_int_equal(r.c.aux[100].writer, 77);
	assert_int_equal(k->slot[0], SLOT_NONE);
	assert_int_equal(k->slot[1], 55);
	desc_commit(&r.c, 100, TIER_DEVICE, 0xabcd);
	assert_int_equal(k->word, word_make(DESC_COMMITTED, 1u << TIER_DEVICE, gen));
	assert_int_equal(k->crc, 0xabcd);
	assert_int_equal(r.c.aux[100].check, desc_check(&r.c, 100));
	desc_set_state(&r.c, 100, DESC_EVICTING);
	assert_int_equal(k->word, word_make(DESC_EVICTING, 1u << TIER_DEVICE, gen));
	desc_free(&r.c, 100);
	assert_int_equal(k->word, word_make(DESC_FREE, 0, gen));
	assert_int_equal(desc_reserve(&r.c, 100, &id, TIER_HOST, 1), gen + 1);
}

static void gen_comes_around(void **state)
{
	struct desc_identity id = { .parent = DESC_NONE };

	r.c.desc[100].word = word_make(DESC_FREE, 0, WORD_GEN_MAX);
	assert_int_equal(desc_reserve(&r.c, 100, &id, TIER_HOST, 1), 0);
	assert_int_equal(r.c.desc[100].word, word_make(DESC_RESERVED, 0, 0));
}

/* Each field that a successor relies on is under the check. */
static void check_covers_every_field(void **state)
{
	struct desc *k = &r.c.desc[descs[2]];
	uint32_t good = desc_check(&r.c, descs[2]);
	uint32_t *fields[] = { &k->parent, &k->crc, &k->depth, &k->ns };

	for (unsigned int i = 0; i < KEY_WORDS; i++) {
		k->key[i] ^= UINT64_C(1) << 40;
		assert_int_not_equal(desc_check(&r.c, descs[2]), good);
		k->key[i] ^= UINT64_C(1) << 40;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(fields); i++) {
		*fields[i] ^= 1;
		assert_int_not_equal(desc_check(&r.c, descs[2]), good);
		*fields[i] ^= 1;
	}
	r.c.aux[descs[2]].writer ^= 1;
	assert_int_not_equal(desc_check(&r.c, descs[2]), good);
	r.c.aux[descs[2]].writer ^= 1;
	assert_int_equal(desc_check(&r.c, descs[2]), good);
}

static void snapshot_ignores_nonsense(void **state)
{
	const uint64_t words[] = {
		UINT64_MAX,
		UINT64_MAX << 32,          /* names nobody */
		BLOCKS + 1ull,             /* one behind the last descriptor */
		0xfffffff0ull,
		1ull << 63,
		/* sound but for its tier */
		hazard_make(BLOCKS - 1, TIER_DEVICE, 12345) | 0xfull << 36,
		0,
	};
	uint32_t n = 0;

	pinset_clear(&r.pins);
	pinset_scan(&r.pins, words, ARRAY_SIZE(words));
	assert_int_equal(r.pins.count, 1);
	for (uint32_t d = 0; d < BLOCKS; d++)
		n += (uint32_t)pinset_has(&r.pins, d);
	assert_int_equal(n, 1);
	assert_true(pinset_has(&r.pins, BLOCKS - 1));
	pinset_add(&r.pins, DESC_NONE);
	assert_int_equal(r.pins.count, 1);
}

/* All words set, twice each: counted once, and cleared whether they fit the list or not. */
static void snapshot_of_many(void **state)
{
	static const uint32_t counts[] = { 1, PINSET_LIST - 1, PINSET_LIST, PINSET_LIST + 1,
					   BLOCKS };
	uint64_t *words = calloc(2 * BLOCKS, sizeof(*words));

	assert_non_null(words);
	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		for (uint32_t d = 0; d < counts[i]; d++)
			words[2 * d] = words[2 * d + 1] = hazard_make(d, TIER_HOST, d);
		pinset_clear(&r.pins);
		pinset_scan(&r.pins, words, 2 * counts[i]);
		assert_int_equal(r.pins.count, counts[i]);
		for (uint32_t d = 0; d < BLOCKS; d++)
			assert_int_equal(pinset_has(&r.pins, d), d < counts[i]);
		pinset_clear(&r.pins);
		assert_int_equal(r.pins.count, 0);
		for (uint32_t d = 0; d < BLOCKS; d++)
			assert_false(pinset_has(&r.pins, d));
	}
	free(words);
}

static void evict_all_of_a_chain(void **state)
{
	assert_int_equal(region_evict(&r, batch, CHAIN), CHAIN);
	expect_chain(0);
}

static void evict_nothing(void **state)
{
	assert_int_equal(region_evict(&r, batch, 0), 0);
	expect_chain(CHAIN);
}

/* A pin at each depth keeps exactly its prefix, whoever holds it. */
static void evict_below_a_pin(void **state)
{
	for (uint32_t i = 0; i < CHAIN; i++) {
		region_publish(&r, keys, CHAIN, descs);
		region_deepest_first(descs, CHAIN, batch);
		pin(i % 3, descs[i]);
		assert_int_equal(region_evict(&r, batch, CHAIN), CHAIN - 1 - i);
		expect_chain(i + 1);
		for (uint32_t k = 0; k <= i; k++)
			assert_true(pinset_has(&r.pins, descs[k]));
		pin(i % 3, descs[i]);
		r.session[i % 3].hazard[0] = 0;
		assert_int_equal(region_evict(&r, batch + CHAIN - 1 - i, i + 1), i + 1);
	}
}

/* The batch ends in the middle of the chain: what is above it is none of its business. */
static void evict_the_tail(void **state)
{
	pin(0, descs[4]);
	assert_int_equal(region_evict(&r, batch, 3), 1);
	expect_chain(5);
	pin(0, descs[1]);
	assert_int_equal(region_evict(&r, batch + 1, 2), 2);
	expect_chain(3);
}

static void marked_blocks_are_listed_and_not_found(void **state)
{
	struct lookup_note note;
	uint32_t d;
	uint64_t word;

	evict_mark(&r.c, batch, 2);
	assert_int_equal(region_state(&r, descs[5]), DESC_EVICTING);
	assert_true(index_probe(&r.c, &keys[5], &d, &word));
	assert_false(lookup_find(&r.c, &keys[5], TIER_HOST, &note));
	region_snapshot(&r);
	pin(1, descs[5]); /* behind the snapshot: this reader has seen EVICTING and given up */
	assert_int_equal(evict_settle(&r.index, batch, 2, &r.pins), 2);
	assert_false(index_probe(&r.c, &keys[5], &d, &word));
}

/* A successor finishes what it finds EVICTING by the same code, from any place it stopped at. */
static void finish_after_a_kill(void **state)
{
	pin(0, descs[3]);
	evict_mark(&r.c, batch, CHAIN);
	/* parents first: the first one was restored, then the daemon died */
	desc_set_state(&r.c, descs[0], DESC_COMMITTED);
	evict_mark(&r.c, batch, CHAIN - 1);
	region_snapshot(&r);
	assert_int_equal(evict_settle(&r.index, batch, CHAIN - 1, &r.pins), 2);
	expect_chain(4);
}

static void doom_unlists_at_once(void **state)
{
	uint32_t d;
	uint64_t word;

	pin(0, descs[3]);
	doom_mark(&r.index, batch, CHAIN);
	for (uint32_t i = 0; i < CHAIN; i++) {
		assert_int_equal(region_state(&r, descs[i]), DESC_DOOMED);
		assert_false(index_probe(&r.c, &keys[i], &d, &word));
	}
	assert_int_equal(region_doom_settle(&r, batch, CHAIN), 4);
	for (uint32_t i = 0; i < CHAIN; i++)
		assert_int_equal(region_state(&r, descs[i]), i < 4 ? DESC_DOOMED : DESC_FREE);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(batch[i], descs[3 - i]); /* what stays, still deepest first */
	pin(0, descs[1]);
	assert_int_equal(region_doom_settle(&r, batch, 4), 2);
	pin(0, 0);
	r.session[0].hazard[0] = 0;
	assert_int_equal(region_doom_settle(&r, batch, 2), 0);
	expect_chain(0);
}

/*
 * A subtree below a chain that stays, then all of it: what is left of the first goes into the
 * second.
 */
static void doom_above_a_doom(void **state)
{
	pin(0, descs[4]);
	doom_mark(&r.index, batch, 2);
	assert_int_equal(region_doom_settle(&r, batch, 2), 1);
	batch[0] = descs[4]; /* still pinned: part of the larger batch */
	region_deepest_first(descs, 4, batch + 1);
	doom_mark(&r.index, batch, 5);
	assert_int_equal(region_doom_settle(&r, batch, 5), 5);
	r.session[0].hazard[0] = 0;
	assert_int_equal(region_doom_settle(&r, batch, 5), 0);
	expect_chain(0);
}

/* A pin by two readers at two depths of two branches. */
static void branches_hold_their_trunk(void **state)
{
	struct block_key branch[CHAIN];
	uint32_t more[CHAIN], all[2 * CHAIN], n = 0;

	memcpy(branch, keys, sizeof(branch));
	for (uint32_t i = 3; i < CHAIN; i++)
		branch[i].w[1] ^= 99;
	region_publish(&r, branch, CHAIN, more);
	for (uint32_t i = CHAIN; i-- > 3;)
		all[n++] = more[i];
	for (uint32_t i = CHAIN; i-- > 0;)
		all[n++] = descs[i];
	pin(0, more[3]);
	pin(1, descs[1]);
	assert_int_equal(region_evict(&r, all, n), 2 + 3);
	expect_chain(3);
	assert_int_equal(region_state(&r, more[3]), DESC_COMMITTED);
	assert_int_equal(region_state(&r, more[4]), DESC_FREE);
}

int main(void)
{
#define WITH_REGION(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_REGION(life_of_a_descriptor),
		WITH_REGION(gen_comes_around),
		WITH_REGION(check_covers_every_field),
		WITH_REGION(snapshot_ignores_nonsense),
		WITH_REGION(snapshot_of_many),
		WITH_REGION(evict_all_of_a_chain),
		WITH_REGION(evict_nothing),
		WITH_REGION(evict_below_a_pin),
		WITH_REGION(evict_the_tail),
		WITH_REGION(marked_blocks_are_listed_and_not_found),
		WITH_REGION(finish_after_a_kill),
		WITH_REGION(doom_unlists_at_once),
		WITH_REGION(doom_above_a_doom),
		WITH_REGION(branches_hold_their_trunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
