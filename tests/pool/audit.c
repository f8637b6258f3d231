/* SPDX-License-Identifier: Apache-2.0 */
/* What the model keeps, computed again from the descriptors alone. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/checker.h"
#include "shm/word.h"
#include "tests/pool/fixture.h"

#define expect(cond, ...)                                                       \
	do {                                                                    \
		if (!(cond)) {                                                  \
			fprintf(stderr, "audit: %s:%d: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                           \
			fputc('\n', stderr);                                    \
			abort();                                                \
		}                                                               \
	} while (0)

struct audit {
	struct fixture *f;
	struct pool *p;
	uint32_t *children;  /* by block: how many hang below it */
	uint8_t *in_tree, *in_chain, *in_heap, *doomed;
	uint8_t *unnamed; /* by block: it is in the chain of unnamed ones of its owner */
	uint64_t n[DESC_STATE_MAX + 1];
	uint64_t n_unnamed;
};

static void on_finding(void *ctx, const char *text)
{
	fprintf(stderr, "checker: %s\n", text);
}

static void check_region(struct audit *a)
{
	void *base = a->p->region;
	uint64_t size = a->p->region_bytes;
	struct checker k = {
		.mode = CHECKER_QUIET,
		.scratch_bytes = checker_scratch(base, size),
		.max_findings = 20,
		.found = on_finding,
	};
	int64_t n;

	k.scratch = aligned_alloc(64, ALIGN_UP(k.scratch_bytes, 64));
	assert(k.scratch);
	n = checker_run(&k, base, size);
	free(k.scratch);
	expect(n == 0, "%lld findings", (long long)n);
}

/* Hangs in a tree, and is under its key. */
static int hangs(const struct audit *a, uint32_t d, enum desc_state s)
{
	return (s == DESC_RESERVED && !a->unnamed[d]) || s == DESC_COMMITTED;
}

/* One list of siblings; all of them have that parent. */
static void walk_list(struct audit *a, uint32_t first, uint32_t parent)
{
	uint32_t prev = DESC_NONE;

	for (uint32_t d = first; d != DESC_NONE; d = a->p->block[d].next) {
		expect(!a->in_tree[d], "block %u hangs twice", d);
		a->in_tree[d] = 1;
		expect(a->p->block[d].prev == prev, "block %u: prev", d);
		expect(block_parent(a->p, d) == parent, "block %u hangs below another", d);
		if (parent != DESC_NONE)
			a->children[parent]++;
		prev = d;
	}
}

static void walk_trees(struct audit *a)
{
	struct pool *p = a->p;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		walk_list(a, ns->roots, DESC_NONE);
		walk_list(a, ns->flush_roots, DESC_NONE);
	}
	for (uint32_t d = 0; d < p->fresh_block; d++)
		if (block_state(p, d) != DESC_FREE)
			walk_list(a, block_child(&p->block[d]), d);
}

/* A doomed block keeps its parent; a block in quarantine nobody. */
static void check_tree(struct audit *a, uint32_t d, enum desc_state s)
{
	uint32_t parent = block_parent(a->p, d);
	int below = parent != DESC_NONE && s == DESC_DOOMED &&
		    block_state(a->p, parent) == DESC_COMMITTED;

	if (hangs(a, d, s) || below)
		expect(a->in_tree[d], "block %u, state %d, hangs nowhere", d, s);
	else
		expect(!a->in_tree[d], "block %u, state %d, hangs", d, s);
	expect(a->in_tree[d] == !block_loose(&a->p->block[d]), "block %u: loose", d);
}

static uint64_t used_of(const struct pool *p, uint32_t d)
{
	return p->block[d].lru.used;
}

static void check_heaps(struct audit *a)
{
	struct pool *p = a->p;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		expect(ns->lru.count <= ns->lru_room, "heap of namespace %u", ns->number);
		for (uint32_t i = 0; i < ns->lru.count; i++) {
			uint32_t d = ns->lru.heap[i];

			expect(p->block[d].lru.link == (LRU_HEAP | i), "block %u: place", d);
			expect(block_namespace(p, d) == ns, "block %u in a strange heap", d);
			expect(used_of(p, ns->lru.heap[i ? (i - 1) / 2 : 0]) <= used_of(p, d),
			       "heap order at %u", i);
			a->in_heap[d] = 1;
		}
	}
}

static void check_leaf(struct audit *a, uint32_t d, enum desc_state s)
{
	int leaf = s == DESC_COMMITTED && !a->children[d];

	expect(a->in_heap[d] == leaf, "block %u, state %d, %u children: in heap %d", d, s,
	       a->children[d], a->in_heap[d]);
	expect(leaf == lru_has(&a->p->block[d].lru), "block %u has a place", d);
}

static void check_key(struct audit *a, uint32_t d, enum desc_state s)
{
	struct block_key key = desc_key(&a->p->control, d);
	uint32_t mapped = keymap_find(&a->p->keymap, &key);

	expect((block_find(a->p, &key) == d) == hangs(a, d, s), "block %u, state %d, under its key",
	       d, s);
	expect((mapped == d) == (s == DESC_RESERVED && !a->unnamed[d]),
	       "block %u, state %d, in the map", d, s);
	expect((index_find(&a->p->control, &key) == d) == (s == DESC_COMMITTED),
	       "block %u, state %d, in the index", d, s);
}

static uint32_t walk_chain(struct audit *a, const struct pool_chain *c, uint64_t session,
			   enum desc_state s)
{
	uint32_t n = 0, before = DESC_NONE;

	for (uint32_t d = c->first; d != DESC_NONE; d = a->p->block[d].after, n++) {
		expect(block_state(a->p, d) == s, "block %u in a chain of state %d", d, s);
		expect(!session || a->p->control.aux[d].writer == session, "block %u: owner", d);
		expect(a->p->block[d].before == before, "block %u: before", d);
		expect(!a->in_chain[d], "block %u in two chains", d);
		a->in_chain[d] = 1;
		before = d;
	}
	expect(c->last == before, "end of a chain");
	return n;
}

static void check_unnamed(struct audit *a, const struct pool_owner *o)
{
	const struct block_key none = { { 0 } };

	expect(walk_chain(a, &o->unnamed, o->session, DESC_RESERVED) == o->n_unnamed,
	       "session %llu: n_unnamed", (unsigned long long)o->session);
	for (uint32_t d = o->unnamed.first; d != DESC_NONE; d = a->p->block[d].after) {
		struct block_key key = desc_key(&a->p->control, d);

		expect(!memcmp(&key, &none, sizeof(key)), "block %u is unnamed and has a key", d);
		expect(block_parent(a->p, d) == DESC_NONE, "block %u is unnamed, has a parent", d);
		expect(block_child(&a->p->block[d]) == DESC_NONE,
		       "block %u is unnamed, has children", d);
		a->unnamed[d] = 1;
		a->n_unnamed++;
	}
}

static void check_owner(struct audit *a, struct pool_owner *o)
{
	struct pool *p = a->p;
	uint64_t bytes = 0, cached = 0, cached_bytes = 0, unnamed_bytes = 0;

	check_unnamed(a, o);

	expect(walk_chain(a, &o->reserved, o->session, DESC_RESERVED) == o->n_reserved,
	       "session %llu: n_reserved", (unsigned long long)o->session);
	expect(walk_chain(a, &o->quarantine, o->session, DESC_QUARANTINE) == o->n_quarantine,
	       "session %llu: n_quarantine", (unsigned long long)o->session);
	for (uint32_t d = 0; d < p->fresh_block; d++) {
		enum desc_state s = block_state(p, d);

		if (s == DESC_FREE || p->control.aux[d].writer != o->session)
			continue;
		if (a->unnamed[d])
			unnamed_bytes += block_namespace(p, d)->stride;
		else if (s == DESC_RESERVED || s == DESC_QUARANTINE)
			bytes += block_namespace(p, d)->stride;
		cached += s == DESC_COMMITTED;
		cached_bytes += s == DESC_COMMITTED ? block_namespace(p, d)->stride : 0;
	}
	expect(o->reserved_bytes == bytes, "session %llu: reserved bytes",
	       (unsigned long long)o->session);
	expect(o->unnamed_bytes == unnamed_bytes, "session %llu: unnamed bytes",
	       (unsigned long long)o->session);
	expect(o->cached_blocks == cached && o->cached_bytes == cached_bytes,
	       "session %llu: cached %llu, expected %llu", (unsigned long long)o->session,
	       (unsigned long long)o->cached_blocks, (unsigned long long)cached);
}

static void check_owners(struct audit *a)
{
	struct pool *p = a->p;
	uint64_t last = 0;

	for (unsigned int i = 0; i < OWNER_BUCKETS; i++) {
		struct pool_owner *o;

		list_for_each(o, &p->owners.bucket[i], link)
			check_owner(a, o);
	}
	walk_chain(a, &p->orphans, 0, DESC_QUARANTINE);
	for (uint32_t d = p->orphans.first; d != DESC_NONE; d = p->block[d].after) {
		expect(block_time(p, d) >= last, "orphans out of order");
		last = block_time(p, d);
	}
}

static void check_doomed(struct audit *a)
{
	struct pool *p = a->p;

	uint32_t n = 0;

	for (uint32_t d = p->doomed.first; d != DESC_NONE; d = p->block[d].after, n++) {
		uint32_t parent = block_parent(p, d);

		expect(block_state(p, d) == DESC_DOOMED, "block %u in the list of doomed ones", d);
		expect(parent == DESC_NONE || !a->doomed[parent], "block %u behind its parent", d);
		expect(!a->doomed[d], "block %u doomed twice", d);
		a->doomed[d] = 1;
		expect(p->block[d].after != DESC_NONE || p->doomed.last == d, "end of the doomed");
	}
	expect(n == p->n_doomed, "%u doomed blocks, counted %u", n, p->n_doomed);
}

static void check_extent(struct audit *a, struct namespace *ns, struct extent *e)
{
	struct pool *p = a->p;
	uint32_t taken = 0, busy = 0, unnamed = 0, chained = 0;

	for (uint32_t i = 0; i < e->n_slots; i++) {
		uint32_t d = extent_block(&p->extents, &ns->extents, e, i);

		if (d == DESC_NONE)
			continue;
		taken++;
		busy += block_state(p, d) == DESC_RESERVED || block_state(p, d) == DESC_QUARANTINE;
		unnamed += a->unnamed[d];
	}
	for (uint32_t i = e->free_slot; i != EXTENT_NONE; i = e->slot[i])
		chained++;
	for (uint32_t i = e->late_slot; i != EXTENT_NONE; i = e->slot[i])
		chained++;
	expect(taken == e->taken && busy == e->busy, "extent %u: %u taken, %u busy", e->first,
	       taken, busy);
	expect(unnamed == e->unnamed, "extent %u: %u unnamed", e->first, unnamed);
	expect(list_empty(&e->packed) == !unnamed, "extent %u: packed", e->first);
	expect(taken + chained + e->n_slots - e->fresh == e->n_slots, "extent %u: slots", e->first);
	expect(list_empty(&e->ready) ==
	       (e->closed || (e->free_slot == EXTENT_NONE && e->fresh == e->n_slots)),
	       "extent %u: ready", e->first);
	expect(list_empty(&e->late) == (e->closed || e->late_slot == EXTENT_NONE),
	       "extent %u: late", e->first);
	for (uint32_t g = e->first; g < e->first + e->count; g++)
		expect(p->extents.of[g] == e && !p->extents.away[g] &&
		       p->control.granule[g].ns == ns->number, "granule %u", g);
}

/* Those with unnamed slots: the ones with room come first. */
static void check_packed(struct namespace *ns)
{
	struct extent *e;
	int room = 1;

	list_for_each(e, &ns->extents.packed, packed) {
		expect(room || list_empty(&e->ready), "extent %u: place among packed", e->first);
		room = !list_empty(&e->ready);
	}
}

static void check_extents(struct audit *a)
{
	struct pool *p = a->p;
	uint32_t handed = 0, mapped = 0, closed = 0, away[GRANULE_GONE + 1] = { 0 };

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		uint32_t n = 0, slots = 0, taken = 0, n_closed = 0, shut = 0;
		struct extent *e;

		check_packed(ns);
		list_for_each(e, &ns->extents.all, all) {
			check_extent(a, ns, e);
			n++;
			slots += e->n_slots;
			taken += e->taken;
			handed += e->count;
			n_closed += e->closed != 0;
			shut += e->closed ? e->n_slots - e->taken : 0;
			closed += e->closed ? e->count : 0;
		}
		expect(n == ns->extents.n_extents && slots == ns->extents.n_slots &&
		       slots - taken - shut == ns->extents.n_free, "extents of namespace %u",
		       ns->number);
		expect(n_closed == ns->extents.n_closed && shut == ns->extents.n_shut,
		       "closed extents of namespace %u", ns->number);
	}
	for (uint32_t g = 0; g < p->extents.n_granules; g++)
		mapped += p->extents.of[g] != NULL;
	for (uint32_t g = 0; g < p->extents.n_granules; g++)
		away[p->extents.away[g]]++;
	expect(handed == p->extents.n_handed && handed == mapped, "granules handed out");
	expect(closed == p->extents.n_closed, "granules of closed extents");
	expect(away[GRANULE_PUNCHED] + away[GRANULE_DROPPED] == p->extents.n_punching &&
	       away[GRANULE_DROPPED] == p->extents.n_dropping, "granules being punched");
	expect(away[GRANULE_GONE] == p->extents.n_gone, "granules that are gone");
}

/* Each entry of the map is found (check_key), and each has the promise that it says. */
static void check_map(struct audit *a)
{
	const struct keymap *m = &a->p->keymap;
	uint64_t n_buckets = a->p->control.bucket_mask + 1, entries = 0;
	uint8_t *claimed = calloc(n_buckets, 1);

	for (uint64_t i = 0; i <= m->mask; i++) {
		struct block_key key;
		int second;

		if (!m->entry[i])
			continue;
		key = desc_key(&a->p->control, keymap_desc(m->entry[i], &second));
		claimed[index_place(&a->p->control, &key).bucket[second]]++;
		entries++;
	}
	expect(entries == a->n[DESC_RESERVED] - a->n_unnamed && m->used == entries, "%llu entries of the map",
	       (unsigned long long)entries);
	expect(!memcmp(claimed, a->p->index.claimed, n_buckets), "places that are promised");
	free(claimed);
}

static void check_numbers(struct audit *a)
{
	struct pool *p = a->p;
	uint32_t free_numbers = 0;

	for (uint32_t d = p->free_block; d != DESC_NONE; d = p->block[d].after) {
		expect(block_state(p, d) == DESC_FREE, "block %u is free and not FREE", d);
		free_numbers++;
	}
	expect(free_numbers + p->n_blocks == p->fresh_block, "numbers of blocks");
}

static void check_stats(struct audit *a)
{
	struct pool_stats s = fixture_stats(a->f);

	expect(s.cached_bytes + s.writing_bytes + s.quarantined_bytes + s.doomed_bytes +
	       s.free_bytes == s.handed_bytes, "bytes do not add up");
	expect(s.leased_bytes <= s.cached_bytes, "more is leased than cached");
	expect(s.blocks == a->n[DESC_COMMITTED], "blocks");
	expect(s.published == s.blocks + s.evicted + s.flushed, "published blocks went nowhere");
}

/* Each pin's block is there, and each block knows in how many pins it is. */
static void check_pins(struct audit *a)
{
	struct pool *p = a->p;
	uint16_t *holds = calloc(p->cfg.max_blocks, sizeof(*holds));
	const struct pool_pin *x = NULL;
	uint64_t bytes = 0, last = 0;
	uint32_t n = 0;

	for (; (x = pool_pin_next(p, last)) != NULL; last = x->number, n++) {
		struct block_key key = desc_key(&p->control, x->desc);

		expect(block_state(p, x->desc) == DESC_COMMITTED, "the block of a pin is gone");
		expect(!memcmp(&key, &x->key, sizeof(key)), "pin %llu has another block",
		       (unsigned long long)x->number);
		for (uint32_t d = x->desc; d != DESC_NONE; d = block_parent(p, d))
			holds[d]++;
		holds[x->desc] |= PIN_IS_TIP;
	}
	expect(n == p->pin.count, "number of pins");
	for (uint32_t i = 0; i < n; i++)
		expect(holds[p->pin.tip[i]] & PIN_IS_TIP, "block %u is no pin's", p->pin.tip[i]);
	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		uint64_t blocks = 0;

		for (uint32_t d = 0; d < p->fresh_block; d++)
			blocks += holds[d] && block_namespace(p, d) == ns;
		expect(blocks == ns->pinned, "blocks that pins keep in a namespace");
		bytes += blocks * ns->stride;
	}
	expect(!memcmp(holds, p->pin.holds, p->cfg.max_blocks * sizeof(*holds)), "counts of pins");
	expect(bytes == p->pin.bytes && bytes <= p->pin.budget, "bytes that pins keep");
	free(holds);
}

static void check_counts(struct audit *a)
{
	struct pool *p = a->p;
	uint64_t unnamed = 0, unnamed_bytes = 0;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		unnamed += ns->n_unnamed;
		unnamed_bytes += ns->n_unnamed * ns->stride;
	}
	expect(unnamed == a->n_unnamed && unnamed_bytes == p->unnamed_bytes, "%llu unnamed blocks",
	       (unsigned long long)a->n_unnamed);
	for (unsigned int s = 1; s <= DESC_STATE_MAX; s++) {
		uint64_t blocks = 0, bytes = 0;

		for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
			blocks += ns->n[s];
			bytes += ns->n[s] * ns->stride;
		}
		expect(blocks == a->n[s], "%llu blocks in state %u, counted %llu",
		       (unsigned long long)a->n[s], s, (unsigned long long)blocks);
		expect(bytes == p->bytes[s], "bytes in state %u", s);
	}
}

static void check_blocks(struct audit *a)
{
	struct pool *p = a->p;

	for (uint32_t d = 0; d < p->fresh_block; d++) {
		enum desc_state s = block_state(p, d);

		a->n[s]++;
		if (s == DESC_FREE)
			continue;
		expect(s != DESC_EVICTING, "block %u is EVICTING", d);
		expect((s == DESC_DOOMED) == a->doomed[d], "block %u: doomed", d);
		check_tree(a, d, s);
		check_leaf(a, d, s);
		check_key(a, d, s);
		if (s == DESC_RESERVED || s == DESC_QUARANTINE)
			expect(a->in_chain[d], "block %u is nobody's", d);
	}
}

void fixture_audit(struct fixture *f)
{
	uint32_t n = f->p->cfg.max_blocks;
	struct audit a = {
		.f = f,
		.p = f->p,
		.children = calloc(n, sizeof(*a.children)),
		.in_tree = calloc(n, 1),
		.in_chain = calloc(n, 1),
		.in_heap = calloc(n, 1),
		.doomed = calloc(n, 1),
		.unnamed = calloc(n, 1),
	};

	check_region(&a);
	walk_trees(&a);
	check_heaps(&a);
	check_owners(&a);
	check_doomed(&a);
	check_blocks(&a);
	check_extents(&a);
	check_map(&a);
	check_numbers(&a);
	check_counts(&a);
	check_pins(&a);
	check_stats(&a);
	free(a.children);
	free(a.in_tree);
	free(a.in_chain);
	free(a.in_heap);
	free(a.doomed);
	free(a.unnamed);
}
