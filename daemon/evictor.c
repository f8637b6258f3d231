/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "daemon/evictor.h"
#include "daemon/model.h"
#include "shm/evict.h"

/* Blocks expire up to this much late. */
#define EXPIRE_PAUSE (100 * NSEC_PER_MSEC)

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
	p->count.evicted++;
	p->count.resized += why == MISS_RESIZED;
	if (why == MISS_EXPIRED) {
		p->count.expired++;
		block_namespace(p, d)->expired++;
	}
	block_release(p, d, DESC_COMMITTED, 0);
}

static void prefetch(const struct pool *p, const uint32_t *batch, uint32_t n)
{
	for (uint32_t i = 0; i < MIN(n, EVICTOR_BATCH); i++) {
		struct block_key key = desc_key(&p->control, batch[i]);

		pool_near_key(p, &key);
		ghost_prefetch(&p->ghost, &key);
	}
}

/* As evictor_take; the parents of its members know already that those go. */
static uint32_t take(struct pool *p, const uint32_t *batch, uint32_t n, enum miss_reason why,
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

uint32_t evictor_take(struct pool *p, const uint32_t *batch, uint32_t n, enum miss_reason why,
		      uint64_t now)
{
	uint32_t freed;

	/* Deepest first, so that a time goes up to the one that stays. */
	for (uint32_t i = 0; i < n; i++)
		block_pass(p, batch[i]);
	freed = take(p, batch, n, why, now);
	for (uint32_t i = 0; freed && i < n; i++)
		block_leaf(p, block_parent(p, batch[i]));
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

/* What an eviction is after. */
struct prey {
	struct namespace *ns;
	uint32_t want;
	uint64_t before; /* used before */
	enum miss_reason why;
};

/* The oldest leaves; a parent follows when its last child is in the batch. */
static uint32_t gather(struct pool *p, const struct prey *prey, uint32_t *batch,
		       struct pool_chain *aside)
{
	struct namespace *ns = prey->ns;
	uint32_t n = 0, d;

	while (n < prey->want && (d = lru_oldest(&ns->lru)) != LRU_NONE &&
	       p->block[d].lru.used < prey->before) {
		if (pinset_has(&p->pins, d)) {
			set_aside(p, ns, aside, d);
			continue;
		}
		block_unhang(p, d);
		block_leaves(p, d);
		batch[n++] = d;
	}
	return n;
}

static uint32_t hunt(struct pool *p, const struct prey *prey, uint64_t now)
{
	uint32_t batch[EVICTOR_BATCH], n, freed = 0;
	struct pool_chain aside;

	chain_init(&aside);
	pool_scan_pins(p);
	/* Again when all of a batch was pinned between the two snapshots. */
	for (unsigned int i = 0; i < TRIES && !freed; i++) {
		n = gather(p, prey, batch, &aside);
		freed = take(p, batch, n, prey->why, now);
	}
	put_back(p, &aside, now);
	return freed;
}

uint32_t evictor_run(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now)
{
	const struct prey prey = {
		.ns = ns,
		.want = MIN(want, EVICTOR_BATCH),
		.before = UINT64_MAX,
		.why = MISS_EVICTED,
	};

	return lru_oldest(&ns->lru) == LRU_NONE ? 0 : hunt(p, &prey, now);
}

/* When the first block of ns expires. */
static uint64_t expires_at(const struct pool *p, const struct namespace *ns)
{
	uint32_t d = lru_oldest(&ns->lru);

	return d == LRU_NONE || !ns->ttl_ns ? UINT64_MAX : p->block[d].lru.used + ns->ttl_ns;
}

static uint64_t expire(struct pool *p, struct namespace *ns, uint64_t now)
{
	const struct prey prey = {
		.ns = ns,
		.want = EVICTOR_BATCH,
		.before = pool_since(ns->ttl_ns, now),
		.why = MISS_EXPIRED,
	};
	uint64_t at = expires_at(p, ns);

	if (at < now) {
		hunt(p, &prey, now);
		at = expires_at(p, ns);
	}
	/* The next ones expire soon after one another, and may as well together. */
	return at < now || at == UINT64_MAX ? MAX(at, now) : MAX(at + 1, now + EXPIRE_PAUSE);
}

uint64_t evictor_expire(struct pool *p, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		next = MIN(next, expire(p, ns, now));
	return next;
}

struct namespace *evictor_coldest(struct pool *p)
{
	struct namespace *best = NULL;
	uint64_t least = 0, order;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		uint32_t d = lru_oldest(&ns->lru);

		if (d == LRU_NONE)
			continue;
		order = namespace_order(ns, p->block[d].lru.used);
		if (!best || order < least) {
			best = ns;
			least = order;
		}
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
	const struct extent_set *s = &ns->extents;

	return s->n_free < evictor_low_water(ns) && s->n_closed < s->n_extents &&
	       !extent_room_soon(&p->extents, s->granules) &&
	       extent_run(&p->extents, s->granules) == EXTENT_NONE;
}

/*
 * A step: a request that arrives meanwhile waits for no more than this. In a small namespace it is
 * less, or it would take all of it.
 */
static uint64_t refill(struct pool *p, struct namespace *ns, uint64_t now)
{
	uint32_t step = MIN(STEP, 2 * evictor_low_water(ns));

	if (now < ns->evict_after)
		return ns->evict_after;
	if (evictor_run(p, ns, step, now))
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
