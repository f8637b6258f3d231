/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "base/hash.h"
#include "shm/desc.h"
#include "shm/word.h"

void desc_set_state(struct control *c, uint32_t d, enum desc_state state)
{
	struct desc *k = &c->desc[d];

	store_release(&k->word, word_with_state(load_relaxed(&k->word), state));
}

void desc_name(struct control *c, uint32_t d, const struct desc_identity *id)
{
	struct desc *k = &c->desc[d];

	/*
	 * The fence of desc_reserve orders these, too, behind the word: a reader that came here by
	 * a stale entry, and sees any of them, sees the new gen. Nobody else looks before the
	 * commit.
	 */
	for (unsigned int i = 0; i < KEY_WORDS; i++)
		store_relaxed(&k->key[i], id->key.w[i]);
	store_relaxed(&k->parent, id->parent);
	store_relaxed(&k->depth, id->depth);
}

uint64_t desc_reserve(struct control *c, uint32_t d, const struct desc_identity *id,
		      enum tier tier, uint32_t slot)
{
	struct desc *k = &c->desc[d];
	uint64_t gen = (word_gen(load_relaxed(&k->word)) + 1) & WORD_GEN_MAX;

	/*
	 * Nobody reads the slots of a FREE block. A daemon killed below leaves RESERVED without a
	 * slot, or with its own: never with the one of its last life, which may be another block's
	 * by now. (tests/models/reserve.pml)
	 */
	for (unsigned int t = 0; t < TIER_MEMORY_MAX; t++)
		store_relaxed(control_slot(c, d, (enum tier)t), SLOT_NONE);
	store_release(&k->word, word_make(DESC_RESERVED, 0, gen));
	/*
	 * A reader that sees any of the stores below sees the new gen when it loads the word behind
	 * its own fence: a key that is half old and half new never validates. Pairs with
	 * fence_seq_cst in pin_one. (Each way from COMMITTED to here crosses a full fence too, in
	 * evict_mark or doom_mark; this one spares the proof from knowing that.)
	 * (tests/models/reuse.pml)
	 */
	fence_release();
	desc_name(c, d, id);
	store_relaxed(&k->ns, id->ns);
	store_relaxed(&c->aux[d].writer, id->writer);
	/* Last, release: a reservation that has a slot is whole. */
	store_release(control_slot(c, d, tier), slot);
	return gen;
}

uint32_t desc_check(const struct control *c, uint32_t d)
{
	const struct desc *k = &c->desc[d];
	struct block_key key = desc_key(c, d);
	uint64_t h = load_relaxed(&c->aux[d].writer);

	for (unsigned int i = 0; i < KEY_WORDS; i++)
		h = mix64(h ^ key.w[i]);
	h = mix64(h ^ ((uint64_t)load_relaxed(&k->parent) << 32 | load_relaxed(&k->crc)));
	h = mix64(h ^ ((uint64_t)load_relaxed(&k->depth) << 32 | load_relaxed(&k->ns)));
	return (uint32_t)h;
}

void desc_commit(struct control *c, uint32_t d, enum tier tier, uint32_t crc)
{
	struct desc *k = &c->desc[d];
	uint64_t gen = word_gen(load_relaxed(&k->word));

	store_relaxed(&k->crc, crc);
	store_relaxed(&c->aux[d].check, desc_check(c, d));
	/*
	 * Release: key, slot, crc and the bytes are there before the word says so. Pairs with
	 * load_acquire in index_probe.
	 */
	store_release(&k->word, word_make(DESC_COMMITTED, 1u << tier, gen));
}

void desc_free(struct control *c, uint32_t d)
{
	struct desc *k = &c->desc[d];

	store_release(&k->word, word_make(DESC_FREE, 0, word_gen(load_relaxed(&k->word))));
}
