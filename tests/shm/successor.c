/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "shm/desc.h"
#include "shm/word.h"
#include "tests/shm/successor.h"

/* Who died in the middle of a reservation never told anybody; the others are told STALE. */
static void end_reservations(struct region *r)
{
	for (uint32_t d = 0; d < r->cfg.max_blocks; d++) {
		if (region_state(r, d) != DESC_RESERVED)
			continue;
		if (REGION_PEEK(control_slot(&r->c, d, TIER_HOST)) == SLOT_NONE)
			desc_free(&r->c, d);
		else
			desc_set_state(&r->c, d, DESC_QUARANTINE);
	}
}

/* All blocks in a state, deepest first. */
static uint32_t blocks_in(const struct region *r, enum desc_state state, uint32_t *batch)
{
	uint32_t n = 0;

	for (uint32_t depth = TREE_DEPTH; depth-- > 0;)
		for (uint32_t d = 0; d < r->cfg.max_blocks; d++)
			if (region_state(r, d) == state &&
			    REGION_PEEK(&r->c.desc[d].depth) == depth)
				batch[n++] = d;
	return n;
}

/* An eviction in flight is decided anew, as one batch. */
static void finish_evictions(struct region *r)
{
	uint32_t batch[4 * TREE_NODES], n = blocks_in(r, DESC_EVICTING, batch);

	evict_mark(&r->c, batch, n);
	region_snapshot(r);
	evict_settle(&r->index, batch, n, &r->pins);
}

/* The entries of d; clears all but the first of them, and returns how many there were. */
static unsigned int only_entry(struct region *r, uint32_t d)
{
	unsigned int n = 0;

	for (uint64_t b = 0; b <= r->c.bucket_mask; b++)
		for (unsigned int i = 0; i < BUCKET_ENTRIES; i++) {
			uint64_t *e = &r->c.index[b].entry[i];
			uint64_t v = REGION_PEEK(e);

			if (v && entry_desc(v) == d && n++)
				store_release(e, 0);
		}
	return n;
}

/*
 * What is COMMITTED gets one entry, and never less than it had. A block that was in no entry has no
 * child: it was the last one to be published, or the next one to be freed. Without a place in the
 * index it goes.
 */
static void repair_index(struct tree *t)
{
	struct region *r = t->r;

	for (uint32_t d = 0; d < r->cfg.max_blocks; d++) {
		uint64_t word = REGION_PEEK(&r->c.desc[d].word), bucket;
		struct block_key key = desc_key(&r->c, d);

		if (word_state(word) != DESC_COMMITTED || only_entry(r, d))
			continue;
		if (index_claim(&r->index, &key, &bucket))
			index_publish(&r->index, bucket, &key, d, word_gen(word));
		else
			tree_add_doomed(t, d);
	}
}

static void take_tree(struct tree *t)
{
	struct region *r = t->r;

	t->n_quarantine = 0;
	for (uint32_t i = 0; i < TREE_NODES; i++)
		t->desc[i] = DESC_NONE;
	for (uint32_t d = 0; d < r->cfg.max_blocks; d++) {
		enum desc_state state = region_state(r, d);
		struct block_key key = desc_key(&r->c, d);

		if (state == DESC_QUARANTINE)
			t->quarantine[t->n_quarantine++] = d;
		for (uint32_t i = 0; i < TREE_NODES && state == DESC_COMMITTED; i++)
			if (!memcmp(&t->node[i].key, &key, sizeof(key)))
				t->desc[i] = d;
	}
}

void successor_take_over(struct tree *t)
{
	memset(t->r->index.claimed, (int)t->r->cfg.promised, t->r->c.bucket_mask + 1);
	end_reservations(t->r);
	finish_evictions(t->r);
	t->n_doomed = blocks_in(t->r, DESC_DOOMED, t->doomed);
	repair_index(t);
	doom_mark(&t->r->index, t->doomed, t->n_doomed);
	take_tree(t);
	region_adopt(t->r);
}
