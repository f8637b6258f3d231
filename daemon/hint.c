/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/model.h"

/* An end, or a low priority, is told to so many blocks at most: some 2 ms. */
#define LOWER_BLOCKS 16384u

/* Before all others: the time that makes a block of ns the first to go. */
static uint64_t before_all(const struct pool *p, const struct namespace *ns)
{
	uint32_t d = lru_oldest(&ns->lru);
	uint64_t used = d == LRU_NONE ? 0 : p->block[d].lru.used;

	return used ? used - 1 : 0;
}

/*
 * Whether d is a part of what only the one that hints used: last is the time of its last use, below
 * the block that it was reached from, DESC_NONE for the first.
 */
static int is_its_own(const struct pool *p, uint32_t d, uint32_t below, uint64_t last)
{
	if (pin_holds(&p->pin, d) || p->block[d].lru.used > last ||
	    block_child(&p->block[d]) != below)
		return 0;
	return below == DESC_NONE || p->block[below].next == DESC_NONE;
}

/*
 * A parent comes into the order with the latest of its own time and its children's: so all of it.
 */
static uint32_t lower(struct pool *p, struct namespace *ns, uint32_t d, uint64_t used)
{
	uint64_t last = p->block[d].lru.used;
	uint32_t n = 0, below = DESC_NONE;

	while (n < LOWER_BLOCKS && d != DESC_NONE && is_its_own(p, d, below, last)) {
		if (!n || p->block[d].lru.used > used)
			lru_set(&ns->lru, d, used);
		n++;
		below = d;
		d = block_parent(p, d);
	}
	return n;
}

uint32_t pool_hint(struct pool *p, uint32_t ns, const struct block_key *key,
		   const struct pool_hint *h, uint64_t now)
{
	struct namespace *x = namespace_get(p, ns);
	uint64_t used, gen;
	uint32_t d = x ? pool_find(p, ns, key, &gen) : DESC_NONE;

	if (d == DESC_NONE)
		return 0;
	if (h->ended)
		return lower(p, x, d, before_all(p, x));
	used = priority_shift(now + h->reuse_ns, h->priority ?: PRIORITY_DEFAULT);
	if (used < now)
		return lower(p, x, d, used);
	/* The extent notes what is true now, and is corrected when it is looked at. */
	block_touch(p, d, now);
	lru_set(&x->lru, d, MIN(used, now + POOL_HINT_MAX));
	return 1;
}
