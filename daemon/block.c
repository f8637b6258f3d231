/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/model.h"

uint32_t block_new(struct pool *p)
{
	uint32_t d = p->free_block;

	if (d != DESC_NONE)
		p->free_block = p->block[d].after;
	else if (p->fresh_block < p->cfg.max_blocks)
		d = p->fresh_block++;
	else
		return DESC_NONE;
	p->block[d] = (struct block){
		.lru.link = DESC_NONE,
		.next = DESC_NONE,
		.prev = BLOCK_LOOSE,
	};
	p->n_blocks++;
	return d;
}

void block_delete(struct pool *p, uint32_t d)
{
	p->block[d].after = p->free_block;
	p->free_block = d;
	p->n_blocks--;
}

uint32_t block_find(const struct pool *p, const struct block_key *key)
{
	uint32_t d = index_find(&p->control, key);

	return d != DESC_NONE ? d : keymap_find(&p->keymap, key);
}

enum desc_state block_state(const struct pool *p, uint32_t d)
{
	return word_state(load_relaxed(&p->control.desc[d].word));
}

uint64_t block_gen(const struct pool *p, uint32_t d)
{
	return word_gen(load_relaxed(&p->control.desc[d].word));
}

struct namespace *block_namespace(const struct pool *p, uint32_t d)
{
	return &p->namespaces[load_relaxed(&p->control.desc[d].ns)];
}

uint32_t block_parent(const struct pool *p, uint32_t d)
{
	return load_relaxed(&p->control.desc[d].parent);
}

uint64_t block_time(const struct pool *p, uint32_t d)
{
	return load_relaxed(&p->control.aux[d].check);
}

void block_set_time(struct pool *p, uint32_t d, uint64_t time)
{
	store_relaxed(&p->control.aux[d].check, time);
}

static uint32_t block_slot(const struct pool *p, uint32_t d)
{
	return load_relaxed(&p->control.desc[d].slot[TIER_HOST]);
}

struct extent *block_extent(const struct pool *p, uint32_t d)
{
	return extent_of(&p->extents, block_slot(p, d));
}

/*
 * The list that d goes into; its parent is not in the heap. While a flush is under way, a root that
 * an eviction gives back is the flush's, as it nearly surely was before.
 */
static uint32_t *siblings(struct pool *p, uint32_t d)
{
	uint32_t parent = block_parent(p, d);
	struct namespace *ns;

	if (parent != DESC_NONE)
		return &p->block[parent].lru.link;
	ns = block_namespace(p, d);
	if (ns->flushing && block_state(p, d) != DESC_RESERVED)
		return &ns->flush_roots;
	return &ns->roots;
}

void block_hang(struct pool *p, uint32_t d)
{
	struct block *b = &p->block[d];
	uint32_t parent = block_parent(p, d), *first;

	if (parent != DESC_NONE)
		lru_remove(&block_namespace(p, d)->lru, parent);
	first = siblings(p, d);
	b->prev = DESC_NONE;
	b->next = *first;
	if (*first != DESC_NONE)
		p->block[*first].prev = d;
	*first = d;
}

/* The list whose first element d is. */
static uint32_t *first_of(struct pool *p, uint32_t d)
{
	uint32_t parent = block_parent(p, d);
	struct namespace *ns;

	if (parent != DESC_NONE)
		return &p->block[parent].lru.link;
	ns = block_namespace(p, d);
	return ns->roots == d ? &ns->roots : &ns->flush_roots;
}

void block_unhang(struct pool *p, uint32_t d)
{
	struct block *b = &p->block[d];

	if (block_loose(b))
		return;
	if (b->prev == DESC_NONE)
		*first_of(p, d) = b->next;
	else
		p->block[b->prev].next = b->next;
	if (b->next != DESC_NONE)
		p->block[b->next].prev = b->prev;
	b->prev = BLOCK_LOOSE;
	b->next = DESC_NONE;
}

/* Whether d belongs in the heap and is not in it. */
static int is_new_leaf(const struct pool *p, uint32_t d)
{
	return d != DESC_NONE && d != p->held && p->block[d].lru.link == LRU_NONE &&
	       block_state(p, d) == DESC_COMMITTED;
}

void block_leaf(struct pool *p, uint32_t d)
{
	if (is_new_leaf(p, d))
		lru_insert(&block_namespace(p, d)->lru, d);
}

void block_touch(struct pool *p, uint32_t d, uint64_t now)
{
	struct extent *e = block_extent(p, d);

	lru_touch(&block_namespace(p, d)->lru, d, now);
	e->used = MAX(e->used, now);
}

void block_pass(struct pool *p, uint32_t d)
{
	uint32_t parent = block_parent(p, d);

	if (parent != DESC_NONE && block_state(p, parent) == DESC_COMMITTED)
		lru_touch(&block_namespace(p, d)->lru, parent, p->block[d].lru.used);
}

void block_leaves(struct pool *p, uint32_t d)
{
	struct lru *l = &block_namespace(p, d)->lru;
	uint32_t parent = block_parent(p, d);

	block_pass(p, d);
	if (is_new_leaf(p, parent))
		lru_replace(l, d, parent);
	else
		lru_remove(l, d);
}

int block_prune(struct pool *p, uint32_t top, int (*fn)(struct pool *p, uint32_t d, void *arg),
		void *arg)
{
	uint32_t d = top, parent;

	for (;;) {
		int r;

		while (block_child(&p->block[d]) != DESC_NONE)
			d = block_child(&p->block[d]);
		parent = block_parent(p, d);
		block_unhang(p, d);
		r = fn(p, d, arg);
		if (r || d == top)
			return r;
		d = parent;
	}
}

void block_note_gone(struct pool *p, uint32_t d, enum miss_reason why, uint64_t now)
{
	struct block_key key = desc_key(&p->control, d);

	ghost_note(&p->ghost, &key, block_namespace(p, d)->number, why, now);
}

void block_count(struct pool *p, uint32_t d, enum desc_state from, enum desc_state to)
{
	struct namespace *ns = block_namespace(p, d);

	if (from != DESC_FREE) {
		ns->n[from]--;
		p->bytes[from] -= ns->stride;
	}
	if (to != DESC_FREE) {
		ns->n[to]++;
		p->bytes[to] += ns->stride;
	}
}

void block_release(struct pool *p, uint32_t d, enum desc_state from, int late)
{
	struct namespace *ns = block_namespace(p, d);
	uint32_t slot = block_slot(p, d);

	if (from == DESC_RESERVED || from == DESC_QUARANTINE)
		extent_of(&p->extents, slot)->busy--;
	block_count(p, d, from, DESC_FREE);
	extent_put(&p->extents, &ns->extents, slot, late);
	block_delete(p, d);
}

void chain_init(struct pool_chain *c)
{
	*c = (struct pool_chain){ .first = DESC_NONE, .last = DESC_NONE };
}

void chain_append(struct pool *p, struct pool_chain *c, uint32_t d)
{
	struct block *b = &p->block[d];

	b->after = DESC_NONE;
	b->before = c->last;
	if (c->last == DESC_NONE)
		c->first = d;
	else
		p->block[c->last].after = d;
	c->last = d;
}

void chain_remove(struct pool *p, struct pool_chain *c, uint32_t d)
{
	struct block *b = &p->block[d];

	if (b->before == DESC_NONE)
		c->first = b->after;
	else
		p->block[b->before].after = b->after;
	if (b->after == DESC_NONE)
		c->last = b->before;
	else
		p->block[b->after].before = b->before;
	b->lru.used = 0;
}
