/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "shm/index.h"
#include "shm/word.h"

/*
 * An entry is a hint: tag and gen only spare most wrong descriptors a look. What counts is the key
 * in the descriptor between two loads of its word with one gen.
 */
static int entry_matches(const struct control *c, uint64_t e, uint32_t tag,
			 const struct block_key *key, uint32_t *ret_desc, uint64_t *ret_word)
{
	uint32_t d = entry_desc(e);
	uint64_t w;

	if (!e || entry_tag(e) != tag || !index_confirm(c, d, key, &w) ||
	    (word_gen(w) & 0xffff) != entry_gen(e))
		return 0;
	*ret_desc = d;
	*ret_word = w;
	return 1;
}

int index_probe(const struct control *c, const struct block_key *key, uint32_t *ret_desc,
		uint64_t *ret_word)
{
	struct index_place p = index_place(c, key);

	for (unsigned int b = 0; b < 2; b++) {
		const struct bucket *k = &c->index[p.bucket[b]];

		for (unsigned int i = 0; i < BUCKET_ENTRIES; i++) {
			/*
			 * Acquire: pairs with the release in index_publish, the descriptor is as it
			 * was listed.
			 */
			uint64_t e = load_acquire(&k->entry[i]);

			if (entry_matches(c, e, p.tag, key, ret_desc, ret_word))
				return 1;
		}
	}
	return 0;
}

uint32_t index_find(const struct control *c, const struct block_key *key)
{
	struct index_place p = index_place(c, key);

	for (unsigned int b = 0; b < 2; b++) {
		const struct bucket *k = &c->index[p.bucket[b]];

		for (unsigned int m = index_match(k, p.tag); m; m &= m - 1) {
			uint32_t d = entry_desc(load_relaxed(&k->entry[__builtin_ctz(m)]));
			uint64_t w;

			if (index_confirm(c, d, key, &w))
				return d;
		}
	}
	return DESC_NONE;
}

static int bucket_room(const struct index_writer *w, uint64_t b)
{
	unsigned int empty = index_empty(&w->c->index[b]);

	/* Most often nothing is promised: then it is not counted. */
	return w->claimed[b] ? (unsigned int)__builtin_popcount(empty) > w->claimed[b] : empty != 0;
}

/* A free entry of a bucket that has one. */
static uint64_t *bucket_free(struct control *c, uint64_t b)
{
	return &c->index[b].entry[__builtin_ctz(index_empty(&c->index[b]))];
}

/* The other bucket of an entry that stands in b; b when it is stale and belongs nowhere. */
static uint64_t bucket_other(const struct control *c, uint64_t e, uint64_t b)
{
	struct block_key key = desc_key(c, entry_desc(e));
	struct index_place p = index_place(c, &key);

	if (p.bucket[0] == b)
		return p.bucket[1];
	return p.bucket[1] == b ? p.bucket[0] : b;
}

/* Moves an entry of the full bucket b to its other bucket. Returns 1 when one had room there. */
static int bucket_displace(struct index_writer *w, uint64_t b)
{
	struct control *c = w->c;

	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++) {
		uint64_t *from = &c->index[b].entry[i];
		uint64_t e = load_relaxed(from);
		uint64_t other = e ? bucket_other(c, e, b) : b;

		if (!bucket_room(w, other))
			continue;
		/*
		 * Pairs with the two loads of moved in lookup_find:
		 *	reader: other is empty	daemon: copy to other
		 *				daemon: moved + 1
		 *				daemon: clear b
		 *	reader: b is empty, so it sees moved + 1 and looks again
		 * (tests/models/index.pml, tests/litmus/listed.c)
		 */
		store_release(bucket_free(c, other), e);
		store_release(&c->head->moved, load_relaxed(&c->head->moved) + 1);
		store_release(from, 0);
		return 1;
	}
	return 0;
}

int index_claim(struct index_writer *w, const struct block_key *key, uint64_t *ret_bucket)
{
	struct index_place p = index_place(w->c, key);

	for (unsigned int b = 0; b < 2; b++)
		if (bucket_room(w, p.bucket[b])) {
			w->claimed[*ret_bucket = p.bucket[b]]++;
			return 1;
		}
	for (unsigned int b = 0; b < 2; b++)
		if (bucket_displace(w, p.bucket[b])) {
			w->claimed[*ret_bucket = p.bucket[b]]++;
			return 1;
		}
	return 0;
}

void index_unclaim(struct index_writer *w, uint64_t bucket)
{
	w->claimed[bucket]--;
}

void index_publish(struct index_writer *w, uint64_t bucket, const struct block_key *key,
		   uint32_t desc, uint64_t gen)
{
	uint64_t e = entry_make(index_place(w->c, key).tag, gen, desc);

	w->claimed[bucket]--;
	/*
	 * Release: whoever finds the entry finds the descriptor COMMITTED. Pairs with the acquire
	 * in index_probe.
	 */
	store_release(bucket_free(w->c, bucket), e);
}

void index_remove(struct index_writer *w, const struct block_key *key, uint32_t desc)
{
	struct index_place p = index_place(w->c, key);

	for (unsigned int b = 0; b < 2; b++) {
		struct bucket *k = &w->c->index[p.bucket[b]];

		for (unsigned int m = index_match(k, p.tag); m; m &= m - 1) {
			uint64_t *e = &k->entry[__builtin_ctz(m)];

			if (entry_desc(load_relaxed(e)) == desc)
				store_release(e, 0);
		}
	}
}
