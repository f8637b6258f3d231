/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gather.h"
#include "daemon/model.h"

static int gather_one(struct pool *p, uint32_t d, void *arg)
{
	struct gather *g = arg;
	int r = GATHER_FINE;

	if (block_state(p, d) != DESC_COMMITTED || pinset_has(&p->pins, d))
		r = GATHER_KEEP;
	else if (g->n == g->room)
		r = GATHER_LARGE;
	if (r) {
		block_hang(p, d);
		return r;
	}
	lru_remove(&block_namespace(p, d)->lru, d);
	g->used = MAX(g->used, p->block[d].lru.used);
	p->batch[g->n++] = d;
	return GATHER_FINE;
}

static enum gather_look gather_slots(struct pool *p, struct extent *e, struct gather *g)
{
	const struct extent_set *s = &p->namespaces[e->ns].extents;

	g->used = 0;
	for (uint32_t i = 0; i < e->n_slots; i++) {
		uint32_t d = extent_block(&p->extents, s, e, i);
		int r;

		if (d == DESC_NONE)
			continue;
		if (block_state(p, d) != DESC_COMMITTED)
			return GATHER_KEEP;
		/* Loose: gathered before, below another one. */
		if (block_loose(&p->block[d]))
			continue;
		r = block_prune(p, d, gather_one, g);
		if (r)
			return (enum gather_look)r;
	}
	return GATHER_FINE;
}

enum gather_look gather_extent(struct pool *p, struct extent *e, struct gather *g, uint64_t now)
{
	enum gather_look r = gather_slots(p, e, g);

	e->used = MAX(e->used, g->used);
	if (r == GATHER_KEEP)
		e->used = e->kept = now;
	return r;
}

void gather_put_back(struct pool *p, const struct gather *g)
{
	for (uint32_t i = g->n; i-- > 0;)
		block_hang(p, p->batch[i]);
	for (uint32_t i = 0; i < g->n; i++)
		block_leaf(p, p->batch[i]);
}
