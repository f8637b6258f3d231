/* SPDX-License-Identifier: Apache-2.0 */
/*
 * p->doomed holds all DOOMED blocks, each before its parent: a batch is added behind the ones of
 * before, and what is below one of its members was doomed with it or earlier. So the whole chain is
 * one batch for doom_settle, which takes it in parts and with one snapshot: a pin holds what is
 * above it in a later part, too, and what it does not hold is freed before its parent.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/doom.h"
#include "daemon/model.h"
#include "daemon/reserve.h"
#include "daemon/stats.h"
#include "shm/desc.h"
#include "shm/evict.h"

/* When pinned ones are looked at again: longer when they are many, so that it takes little time. */
#define AGAIN       (100 * NSEC_PER_MSEC)
#define AGAIN_BLOCK (5 * NSEC_PER_USEC)

/* So many are marked at a time: what that touches is loaded before, and fits the cache. */
#define PART 128u

/* What a walk has found, each before its parent. */
struct gathered {
	struct pool_chain chain;
	uint32_t n, room;
	uint32_t voided, pins;
	uint32_t flush; /* its number */
	enum miss_reason why;
	uint64_t now;
};

static void push(struct pool *p, struct pool_chain *c, uint32_t d)
{
	p->block[d].after = DESC_NONE;
	if (c->last == DESC_NONE)
		c->first = d;
	else
		p->block[c->last].after = d;
	c->last = d;
}

static void join(struct pool *p, struct pool_chain *c, const struct pool_chain *more)
{
	if (more->first == DESC_NONE)
		return;
	if (c->last == DESC_NONE)
		c->first = more->first;
	else
		p->block[c->last].after = more->first;
	c->last = more->last;
}

/* Up to PART blocks from d on; *d is the one after them. */
static uint32_t part_of(const struct pool *p, uint32_t *d, uint32_t *part)
{
	uint32_t n = 0;

	for (; *d != DESC_NONE && n < PART; *d = p->block[*d].after)
		part[n++] = *d;
	return n;
}

static int gather_one(struct pool *p, uint32_t d, void *arg)
{
	struct gathered *g = arg;

	switch (block_state(p, d)) {
	case DESC_RESERVED:
		reserve_void(p, d, g->why, g->now);
		g->voided++;
		return 0;
	case DESC_DOOMED: /* earlier: it is in p->doomed */
		return 0;
	default:
		break;
	}
	lru_remove(&block_namespace(p, d)->lru, d);
	g->pins += pin_drop(p, d);
	owner_uncached(p, d);
	block_note_gone(p, d, g->why, g->now);
	block_count(p, d, DESC_COMMITTED, DESC_DOOMED);
	block_pass(p, d);
	push(p, &g->chain, d);
	p->block[d].flush = g->flush;
	return ++g->n == g->room;
}

/*
 * Free of pins: slot and number go back. So does the extent if nothing else is in it; but a
 * namespace that is in use keeps its last one, to be written to while the others are punched.
 */
static void release(struct pool *p, uint32_t d)
{
	struct namespace *ns = block_namespace(p, d);
	struct extent *e = block_extent(p, d);
	uint32_t first = e->first, count = e->count;

	if (p->block[d].flush && p->block[d].flush == ns->flush)
		ns->flush_kept--;
	block_unhang(p, d);
	block_leaf(p, block_parent(p, d));
	block_release(p, d, DESC_DOOMED, 0);
	if (e->taken || (ns->holds && ns->extents.n_extents == 1))
		return;
	extent_retire(&p->extents, &ns->extents, e);
	extent_punch(&p->extents, first, count);
}

/* A doomed block that stays keeps its parent from being evicted. */
static void hold_parent(struct pool *p, uint32_t d)
{
	uint32_t parent = block_parent(p, d);

	if (!block_loose(&p->block[d]) || parent == DESC_NONE)
		return;
	if (block_state(p, parent) == DESC_COMMITTED)
		block_hang(p, d);
}

/* A part of p->doomed, which is behind it by now; those that stay go to its end again. */
static void settle_part(struct pool *p, const uint32_t *part, uint32_t n)
{
	uint32_t batch[PART], stay;

	memcpy(batch, part, n * sizeof(*batch));
	stay = doom_settle(&p->control, batch, n, &p->pins);
	for (uint32_t i = 0; i < stay; i++)
		push(p, &p->doomed, batch[i]);
	p->n_doomed += stay;
	for (uint32_t i = 0; i < n; i++)
		if (block_state(p, part[i]) == DESC_FREE)
			release(p, part[i]);
}

/* Frees what nobody reads any more. */
static void settle(struct pool *p, uint64_t now)
{
	uint32_t d = p->doomed.first, part[PART], n;

	if (d == DESC_NONE)
		return;
	pool_scan_pins(p);
	chain_init(&p->doomed);
	p->n_doomed = 0;
	while ((n = part_of(p, &d, part)) != 0)
		settle_part(p, part, n);
	for (d = p->doomed.first; d != DESC_NONE; d = p->block[d].after)
		hold_parent(p, d);
	p->doom_again = p->n_doomed ? now + AGAIN + p->n_doomed * AGAIN_BLOCK : UINT64_MAX;
}

/* A part of a batch that is closed below; unlisted: its keys are free. */
static void mark_part(struct pool *p, const uint32_t *part, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct block_key key = desc_key(&p->control, part[i]);

		pool_near_key(p, &key);
	}
	doom_mark(&p->index, part, n);
}

static void doom(struct pool *p, const struct gathered *g, uint64_t now)
{
	uint32_t d = g->chain.first, part[PART], n;

	while ((n = part_of(p, &d, part)) != 0)
		mark_part(p, part, n);
	join(p, &p->doomed, &g->chain);
	p->n_doomed += g->n;
	p->count.flushed += g->n;
	settle(p, now);
}

/* One step of a flush. Returns 1 when there is more. */
static int flush_step(struct pool *p, struct namespace *ns, uint64_t now, struct pool_flushed *f)
{
	struct gathered g = {
		.chain = { DESC_NONE, DESC_NONE },
		.room = p->flush_step,
		.flush = ns->flush,
		.why = MISS_FLUSHED,
		.now = now,
	};
	uint64_t before = ns->flush_kept, freed;

	while (ns->flush_roots != DESC_NONE)
		if (block_prune(p, ns->flush_roots, gather_one, &g))
			break;
	ns->flush_kept += g.n;
	doom(p, &g, now);
	/* Blocks that were doomed before it are none of its. */
	freed = before + g.n - ns->flush_kept;
	f->freed_blocks += freed;
	f->freed_bytes += freed * ns->stride;
	f->kept_blocks = ns->flush_kept;
	f->voided_blocks += g.voided;
	f->dropped_pins += g.pins;
	ns->flushing = ns->flush_roots != DESC_NONE;
	return ns->flushing;
}

static void flush_count(struct pool *p, const struct namespace *ns, struct pool_flushed *f)
{
	uint64_t kept;

	pool_count_leased(p);
	kept = ns->leased;
	f->freed_blocks += ns->n[DESC_COMMITTED] - kept;
	f->freed_bytes += (ns->n[DESC_COMMITTED] - kept) * ns->stride;
	f->kept_blocks = kept;
	f->voided_blocks += ns->n[DESC_RESERVED] - ns->n_unnamed;
	f->dropped_pins += pin_count_ns(&p->pin, ns->number);
}

int pool_flush(struct pool *p, uint32_t ns, int dry_run, uint64_t now, struct pool_flushed *ret)
{
	struct namespace *x = namespace_get(p, ns);

	if (!x)
		return -ENOENT;
	if (dry_run) {
		flush_count(p, x, ret);
		return 0;
	}
	/* What is there now; what comes later is no part of it. */
	if (!x->flushing) {
		x->flushing = 1;
		if (!++p->flushes)
			p->flushes = 1;
		x->flush = p->flushes;
		x->flush_kept = 0;
		x->flush_roots = x->roots;
		x->roots = DESC_NONE;
	}
	return flush_step(p, x, now, ret);
}

uint64_t doom_flushes(struct pool *p, uint64_t now)
{
	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		struct pool_flushed nobody_asked = { .freed_blocks = 0 };

		if (ns->flushing) {
			flush_step(p, ns, now, &nobody_asked);
			return now;
		}
	}
	return UINT64_MAX;
}

uint64_t doom_again(struct pool *p, uint64_t now)
{
	if (now >= p->doom_again)
		settle(p, now);
	return p->doom_again;
}

static struct verify_pin *find_verify(struct pool *p, uint32_t d, uint64_t gen)
{
	for (uint32_t i = 0; i < p->n_verify; i++)
		if (p->verify[i].desc == d && p->verify[i].gen == gen)
			return &p->verify[i];
	return NULL;
}

int pool_pin_for_verify(struct pool *p, uint32_t desc, uint64_t gen, uint64_t *ret_offset,
			uint64_t *ret_bytes, uint32_t *ret_crc)
{
	const struct desc *k;

	if (desc >= p->cfg.max_blocks || block_gen(p, desc) != gen ||
	    block_state(p, desc) != DESC_COMMITTED)
		return -ENOENT;
	if (p->n_verify == POOL_VERIFY_MAX)
		return -EBUSY;
	p->verify[p->n_verify++] = (struct verify_pin){ .desc = desc, .gen = gen };
	k = &p->control.desc[desc];
	*ret_offset = slot_offset(load_relaxed(&k->slot[TIER_HOST]));
	*ret_bytes = block_namespace(p, desc)->block_bytes;
	*ret_crc = load_relaxed(&k->crc);
	return 0;
}

int pool_verify_done(struct pool *p, uint32_t desc, uint64_t gen, int wrong, uint64_t now)
{
	struct verify_pin *v = find_verify(p, desc, gen);
	struct gathered g = {
		.chain = { DESC_NONE, DESC_NONE },
		.room = UINT32_MAX,
		.why = MISS_CORRUPT,
		.now = now,
	};

	if (!v)
		return 0;
	*v = p->verify[--p->n_verify];
	if (!wrong || block_state(p, desc) != DESC_COMMITTED)
		return 0;
	block_prune(p, desc, gather_one, &g);
	doom(p, &g, now);
	p->count.dooms++;
	return 1;
}
