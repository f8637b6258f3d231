/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: key -> descriptor, two choices of bucket, eight entries each.
 *
 * A key's entry stands in its first bucket when that had room, so that most hits read one line;
 * otherwise in its second. When both are full, one entry of them moves to its own other bucket. A
 * move is copy, raise head->moved, clear: a reader that looked into the new bucket before the copy
 * and into the old one after the clear sees another value of moved and looks again.
 * (tests/models/index.pml)
 */
#ifndef KVP_SHM_INDEX_H
#define KVP_SHM_INDEX_H

#include "shm/control.h"
#include "shm/word.h"

/* A bucket at once, unless somebody has to see each word: a sanitizer, a simulated machine. */
#if defined(__SSE2__) && !defined(KVP_TSAN) && !defined(KVP_SIMULATED)
#define INDEX_WIDE
#include <emmintrin.h>
#endif

/*
 * Keys are uniform already; the salt makes their places differ from domain to domain, and one
 * multiplication spreads what made-up keys of a test have in few bits.
 */
static inline uint64_t index_hash(uint64_t word, uint64_t salt)
{
	uint64_t h = (word ^ salt) * UINT64_C(0x9e3779b97f4a7c15);

	return h ^ h >> 32;
}

/* Where a key may stand, and the tag that its entry carries. */
struct index_place {
	uint64_t bucket[2];
	uint32_t tag;
};

static inline struct index_place index_place(const struct control *c, const struct block_key *key)
{
	uint64_t h = index_hash(key->w[0], c->salt[0]);
	uint64_t g = index_hash(key->w[1], c->salt[1]);
	struct index_place p = { { h & c->bucket_mask, g & c->bucket_mask }, (uint32_t)(h >> 48) };

	if (p.bucket[0] == p.bucket[1])
		p.bucket[1] = (p.bucket[1] + 1) & c->bucket_mask;
	return p;
}

/* Readers. */

/* Brings the first bucket of key nearer, ahead of a probe. */
static inline void index_touch(const struct control *c, const struct block_key *key)
{
	touch_line(&c->index[index_hash(key->w[0], c->salt[0]) & c->bucket_mask].entry[0]);
}

/* The same for the second bucket, of a key that is not in the first. */
static inline void index_touch_second(const struct control *c, const struct block_key *key)
{
	touch_line(&c->index[index_hash(key->w[1], c->salt[1]) & c->bucket_mask].entry[0]);
}

/*
 * A bit for each entry of a bucket that has this tag, without a branch: which one it is cannot be
 * predicted. What it reads is only a hint, so that no order is asked for.
 */
#ifdef INDEX_WIDE
static inline unsigned int index_match(const struct bucket *b, uint32_t tag)
{
	const __m128 *e = (const __m128 *)b->entry;
	/* The high halves of four entries each: tag:16 | gen:16. */
	__m128i lo = _mm_castps_si128(_mm_shuffle_ps(e[0], e[1], _MM_SHUFFLE(3, 1, 3, 1)));
	__m128i hi = _mm_castps_si128(_mm_shuffle_ps(e[2], e[3], _MM_SHUFFLE(3, 1, 3, 1)));
	__m128i t = _mm_set1_epi32((int)tag);
	__m128i both = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_srli_epi32(lo, 16), t),
				       _mm_cmpeq_epi32(_mm_srli_epi32(hi, 16), t));

	return (unsigned int)_mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128()));
}
#else
static inline unsigned int index_match(const struct bucket *b, uint32_t tag)
{
	unsigned int match = 0;

#pragma GCC unroll 8
	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++)
		match |= (unsigned int)(entry_tag(load_relaxed(&b->entry[i])) == tag) << i;
	return match;
}
#endif

/* A bit for each entry of a bucket that is empty: it names no descriptor. */
#ifdef INDEX_WIDE
static inline unsigned int index_empty(const struct bucket *b)
{
	const __m128 *e = (const __m128 *)b->entry;
	__m128i lo = _mm_castps_si128(_mm_shuffle_ps(e[0], e[1], _MM_SHUFFLE(2, 0, 2, 0)));
	__m128i hi = _mm_castps_si128(_mm_shuffle_ps(e[2], e[3], _MM_SHUFFLE(2, 0, 2, 0)));
	__m128i zero = _mm_setzero_si128();
	__m128i both = _mm_packs_epi32(_mm_cmpeq_epi32(lo, zero), _mm_cmpeq_epi32(hi, zero));

	return (unsigned int)_mm_movemask_epi8(_mm_packs_epi16(both, zero));
}
#else
static inline unsigned int index_empty(const struct bucket *b)
{
	unsigned int empty = 0;

	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++)
		empty |= (unsigned int)!(uint32_t)load_relaxed(&b->entry[i]) << i;
	return empty;
}
#endif

/*
 * The descriptor that the first bucket suggests for key, DESC_NONE when it has none. Only a
 * suggestion: ask index_confirm.
 */
static inline uint32_t index_hint(const struct control *c, const struct block_key *key)
{
	uint64_t h = index_hash(key->w[0], c->salt[0]);
	const struct bucket *b = &c->index[h & c->bucket_mask];
	unsigned int match = index_match(b, (uint32_t)(h >> 48));

	/* Acquire: pairs with the release in index_publish, as in index_probe. */
	return match ? (uint32_t)load_acquire(&b->entry[__builtin_ctz(match)]) - 1 : DESC_NONE;
}

/*
 * True when descriptor d has this key; *ret_word is the word that it had before the key was read.
 * That suffices without the entry's gen: a key of another life of d than *ret_word fails at the
 * pin.
 */
static inline int index_confirm(const struct control *c, uint32_t d, const struct block_key *key,
				uint64_t *ret_word)
{
	const struct desc *k;

	if (d >= c->max_blocks)
		return 0;
	k = &c->desc[d];
	*ret_word = load_acquire(&k->word);
	/* Relaxed: the caller loads the word again behind a fence, which catches a torn key. */
	return !((load_relaxed(&k->key[0]) ^ key->w[0]) | (load_relaxed(&k->key[1]) ^ key->w[1]) |
		 (load_relaxed(&k->key[2]) ^ key->w[2]) | (load_relaxed(&k->key[3]) ^ key->w[3]));
}

/*
 * Finds the descriptor whose key is key and stores its number and the word that it had. Returns 1
 * when found, in whatever state, 0 when no entry matches. Compares the full key. A single pass: see
 * lookup_find for the miss rule.
 */
int index_probe(const struct control *c, const struct block_key *key, uint32_t *ret_desc,
		uint64_t *ret_word);

/*
 * The daemon: the descriptor that is listed under key, DESC_NONE when none is. Between two of its
 * own changes no entry is stale or on the move, so a single pass tells.
 */
uint32_t index_find(const struct control *c, const struct block_key *key);

/*
 * The daemon's changes. claimed counts, per bucket, places that are promised to reserved blocks and
 * hold no entry yet; it lies in the daemon's memory, bucket_mask + 1 bytes, zeroed at the start.
 */
struct index_writer {
	struct control *c;
	uint8_t *claimed;
};

/*
 * Promises a place for key. Returns 1 and the bucket, or 0 when there is none (the index is full
 * around this key). May move one entry.
 */
int index_claim(struct index_writer *w, const struct block_key *key, uint64_t *ret_bucket);

/* Gives a promise back unused. */
void index_unclaim(struct index_writer *w, uint64_t bucket);

/* Turns a promise into an entry. desc must be COMMITTED by now: what is listed can be read. */
void index_publish(struct index_writer *w, uint64_t bucket, const struct block_key *key,
		   uint32_t desc, uint64_t gen);

/* Takes the entries of desc out, if there are any. key is its key. */
void index_remove(struct index_writer *w, const struct block_key *key, uint32_t desc);

#endif
