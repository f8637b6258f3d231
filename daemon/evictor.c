/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "daemon/evictor.h"
#include "daemon/model.h"
#include "shm/evict.h"

/* A namespace full of pins is looked at again after this time. */
#define PINNED_AGAIN (100 * NSEC_PER_MSEC)

#define TRIES 4u

/* What a put of an engine takes at once, twice; and what the background evicts at once. */
#define LOW_WATER_MAX 256u
#define STEP          64u

/* Pinned: back to its place, and used until this moment. */
static void restore(struct pool *p, uint32_t d, uint64_t now)
{
	block_hang(p, d);
	block_touch(p, d, now);
}

static void drop(struct pool *p, uint32_t d, enum miss_reason why, uint64_t now)
{
	block_note_gone(p, d, why, now);
	owner_uncached(p, d);
	block_left(p, d);
	block_release(p, d, DESC_COMMITTED, 0);
	p->count.evicted++;
}

static void prefetch(const struct pool *p, const uint32_t *batch, uint32_t n)
{
	for (uint32_t i = 0; i < MIN(n, EVICTOR_BATCH); i++) {
		struct block_key key = desc_key(&p->control, batch[i]);

		pool_prefetch_key(p, &key);
		ghost_prefetch(&p->ghost, &key);
	}
}

uint32_t evictor_take(struct pool *p, const uint32_t *batch, uint32_t n, enum miss_reason why,
		      uint64_t now)
{
	uint32_t freed;

	if (!n)
		return 0;
	evict_mark(&p->control, batch, n);
	prefetch(p, batch, n);
	pool_scan_pins(p);
	freed = evict_settle(&p->index, batch, n, &p->pins);
	/* Parents first, as they were restored. */
	for (uint32_t i = n; i-- > 0;)
		if (block_state(p, batch[i]) == DESC_COMMITTED)
			restore(p, batch[i], now);
	for (uint32_t i = 0; i < n; i++) {
		if (block_state(p, batch[i]) == DESC_COMMITTED)
			block_leaf(p, batch[i]);
		else
			drop(p, batch[i], why, now);
	}
	return freed;
}

/* Leaves that the snapshot has pinned, out of the heap until the batch is full. */
static void set_aside(struct pool *p, struct namespace *ns, struct pool_chain *aside, uint32_t d)
{
	lru_remove(&ns->lru, d);
	chain_append(p, aside, d);
}

static void put_back(struct pool *p, struct pool_chain *aside, uint64_t now)
{
	uint32_t d;

	while ((d = aside->first) != DESC_NONE) {
		chain_remove(p, aside, d);
		block_touch(p, d, now);
		block_leaf(p, d);
	}
}

/* The oldest leaves; a parent follows when its last child is in the batch. */
static uint32_t gather(struct pool *p, struct namespace *ns, uint32_t *batch, uint32_t want,
		       struct pool_chain *aside)
{
	uint32_t n = 0, d;

	while (n < want && (d = lru_oldest(&ns->lru)) != LRU_NONE) {
		if (pinset_has(&p->pins, d)) {
			set_aside(p, ns, aside, d);
			continue;
		}
		lru_remove(&ns->lru, d);
		block_unhang(p, d);
		block_left(p, d);
		batch[n++] = d;
	}
	return n;
}

uint32_t evictor_run(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now)
{
	uint32_t batch[EVICTOR_BATCH], n, freed = 0;
	struct pool_chain aside;

	if (lru_oldest(&ns->lru) == LRU_NONE)
		return 0;
	chain_init(&aside);
	pool_scan_pins(p);
	/* Again when all of a batch was pinned between the two snapshots. */
	for (unsigned int i = 0; i < TRIES && !freed; i++) {
		n = gather(p, ns, batch, MIN(want, EVICTOR_BATCH), &aside);
		freed = evictor_take(p, batch, n, MISS_EVICTED, now);
	}
	put_back(p, &aside, now);
	return freed;
}

struct namespace *evictor_coldest(struct pool *p)
{
	struct namespace *best = NULL;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		uint32_t d = lru_oldest(&ns->lru);

		if (d == LRU_NONE)
			continue;
		if (!best || p->node[d].used < p->node[lru_oldest(&best->lru)].used)
			best = ns;
	}
	return best;
}

uint32_t evictor_low_water(const struct namespace *ns)
{
	return MIN(ns->extents.n_slots / 32, LOW_WATER_MAX);
}

/* And cannot grow, now or as soon as memory that went back is punched. */
static int below_water(const struct pool *p, const struct namespace *ns)
{
	return ns->extents.n_free < evictor_low_water(ns) && !p->extents.n_punching &&
	       extent_run(&p->extents, ns->extents.granules) == EXTENT_NONE;
}

/* A step: a request that arrives meanwhile waits for no more than this. */
static uint64_t refill(struct pool *p, struct namespace *ns, uint64_t now)
{
	if (now < ns->evict_after)
		return ns->evict_after;
	if (evictor_run(p, ns, STEP, now))
		return below_water(p, ns) ? now : UINT64_MAX;
	ns->evict_after = now + PINNED_AGAIN;
	return ns->evict_after;
}

uint64_t evictor_background(struct pool *p, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		if (below_water(p, ns))
			next = MIN(next, refill(p, ns, now));
	return next;
}
