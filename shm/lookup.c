/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/atomic.h"
#include "shm/lookup.h"

#define PIN_TRIES  3u
#define MISS_TRIES 3u
/* Keys whose loads are on their way together. */
#define WINDOW 32u

/* One pass over both buckets; true when the key is there and readable. */
static int probe_readable(const struct control *c, const struct block_key *key, enum tier tier,
			  struct lookup_note *note)
{
	uint32_t d;
	uint64_t w;

	if (!index_probe(c, key, &d, &w) || !word_readable(w, tier))
		return 0;
	note->desc = d;
	note->word = w;
	return 1;
}

/* *moved is the value of head->moved from before the first pass; the last one seen on return. */
static int find_from(const struct control *c, const struct block_key *key, enum tier tier,
		     struct lookup_note *note, uint64_t *moved)
{
	for (unsigned int i = 0; i < MISS_TRIES; i++) {
		uint64_t now;

		if (probe_readable(c, key, tier, note))
			return 1;
		/*
		 * The probes above are acquire loads, so this load is behind them. Pairs with
		 * bucket_displace.
		 */
		now = load_acquire(&c->head->moved);
		if (now == *moved)
			return 0;
		*moved = now;
	}
	return 0;
}

int lookup_find(const struct control *c, const struct block_key *key, enum tier tier,
		struct lookup_note *note)
{
	uint64_t moved = load_acquire(&c->head->moved);

	return find_from(c, key, tier, note, &moved);
}

/* Brings the index lines of keys [i, i + WINDOW) nearer. */
static void scan_index(const struct control *c, const struct block_key *keys, uint32_t i,
		       uint32_t n)
{
	for (uint32_t end = MIN(n, i + WINDOW); i < end; i++)
		index_touch(c, &keys[i]);
}

/* Notes what the index suggests for keys [i, i + WINDOW), and brings those descriptors nearer. */
static void scan_hints(const struct control *c, const struct block_key *keys, uint32_t i,
		       uint32_t n, struct lookup_note *notes)
{
	uint32_t end = MIN(n, i + WINDOW);

	for (uint32_t k = i; k < end; k++) {
		notes[k].desc = index_hint(c, &keys[k]);
		if (unlikely(notes[k].desc == DESC_NONE))
			index_touch_second(c, &keys[k]);
	}
	for (uint32_t k = i; k < end; k++)
		touch_line(&c->desc[notes[k].desc < c->max_blocks ? notes[k].desc : 0].word);
}

/* Makes sure of keys [i, i + WINDOW). Returns the first one that is not readable. */
static uint32_t scan_confirm(const struct control *c, const struct block_key *keys, uint32_t i,
			     uint32_t n, enum tier tier, struct lookup_note *notes, uint64_t *moved)
{
	for (uint32_t end = MIN(n, i + WINDOW); i < end; i++) {
		struct lookup_note *note = &notes[i];

		if (likely(index_confirm(c, note->desc, &keys[i], &note->word) &&
			   word_readable(note->word, tier)))
			continue;
		if (!find_from(c, &keys[i], tier, note, moved))
			break;
	}
	return i;
}

/*
 * Three windows are on their way at once: index lines of the one after the next, descriptors of the
 * next one, and this one is compared.
 */
uint32_t lookup_scan(const struct control *c, const struct block_key *keys, uint32_t n,
		     enum tier tier, struct lookup_note *notes)
{
	uint64_t moved = load_acquire(&c->head->moved);
	uint32_t i, stop;

	/* The first key alone decides a cold prompt: no more is done before it is found. */
	if (!n || !find_from(c, &keys[0], tier, &notes[0], &moved))
		return 0;
	scan_index(c, keys, 0, n);
	scan_index(c, keys, WINDOW, n);
	scan_hints(c, keys, 0, n, notes);
	for (i = 0; i < n; i = stop) {
		scan_index(c, keys, i + 2 * WINDOW, n);
		scan_hints(c, keys, i + WINDOW, n, notes);
		stop = scan_confirm(c, keys, i, n, tier, notes, &moved);
		if (stop < MIN(n, i + WINDOW))
			return stop;
	}
	return n;
}

uint32_t lookup_gallop(const struct control *c, const struct block_key *keys, uint32_t n,
		       enum tier tier, struct lookup_note *notes)
{
	uint32_t lo = 0, hi = n, step = 1;
	struct lookup_note note = {.desc = DESC_NONE}, best = note;

	/* Keys below lo are readable, the key at hi is not (or there is none). */
	while (lo < hi) {
		uint32_t at = step ? MIN(lo + step, hi) - 1 : lo + (hi - lo - 1) / 2;

		if (lookup_find(c, &keys[at], tier, &note)) {
			best = note;
			lo = at + 1;
			step *= 4;
		} else {
			hi = at;
			step = 0;
		}
	}
	if (lo)
		notes[lo - 1] = best;
	return lo;
}

/* The pin of one block. True: pinned. */
static int pin_one(const struct control *c, uint64_t *hazard, const struct lookup_note *note,
		   enum tier tier)
{
	uint64_t w;

	store_release(hazard, hazard_make(note->desc, tier, 0));
	fence_seq_cst(); /* pairs with those in evict_mark and doom_mark: see shm/lookup.h */
	w = load_acquire(&c->desc[note->desc].word);
	if (word_gen(w) == word_gen(note->word) && word_readable(w, tier))
		return 1;
	store_release(hazard, 0);
	return 0;
}

/* The deepest block below depth that is still what its note says. */
static uint32_t shallower(const struct control *c, const struct lookup_note *notes, uint32_t depth,
			  enum tier tier)
{
	while (depth) {
		const struct lookup_note *n = &notes[depth - 1];
		uint64_t w = load_acquire(&c->desc[n->desc].word);

		if (word_gen(w) == word_gen(n->word) && word_readable(w, tier))
			break;
		depth--;
	}
	return depth;
}

uint32_t lookup_pin(const struct control *c, uint64_t *hazard, const struct lookup_note *notes,
		    uint32_t depth, uint32_t have, enum tier tier)
{
	for (unsigned int i = 0; depth && i < PIN_TRIES; i++) {
		if (pin_one(c, hazard, &notes[depth - 1], tier))
			return depth;
		if (have < depth)
			return 0; /* nothing is known of the blocks before it */
		depth = shallower(c, notes, depth - 1, tier);
	}
	return 0;
}

int lookup_resolve(const struct control *c, struct lookup_note *notes, uint32_t first,
		   uint32_t depth, enum tier tier)
{
	for (uint32_t i = depth; i-- > first;) {
		uint32_t d = notes[i].desc, link;

		if (unlikely(d >= c->max_blocks))
			return -EIO;
		notes[i].slot = load_relaxed(control_slot(c, d, tier));
		link = load_relaxed(&c->desc[d].parent);
		if (i == first)
			return first && link != notes[first - 1].desc ? LOOKUP_OTHER_PREFIX : 0;
		/*
		 * The link is what counts. Where the note says the same, as it nearly always does,
		 * nothing is stored and the next round takes its number from the note: its loads
		 * need not wait for this link.
		 */
		if (unlikely(notes[i - 1].desc != link))
			notes[i - 1].desc = link;
		compiler_barrier();
	}
	return 0;
}

void lookup_unpin(uint64_t *hazard)
{
	/* Release: the reads of the block are over before the daemon sees the word empty. */
	store_release(hazard, 0);
}
