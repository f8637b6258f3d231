/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evictor.h"
#include "daemon/model.h"
#include "daemon/reclaim.h"

/* A namespace that found nothing looks again after this time, unless it has no extent. */
#define LOOK_AGAIN (100 * NSEC_PER_MSEC)

/* Who takes, and how cold is cold enough. */
struct taker {
	struct namespace *ns;
	uint64_t now, idle; /* idle: the least that a giver must have been */
};

struct window {
	uint32_t first;
	uint64_t used; /* the latest note of its extents, priorities counted */
};

static struct taker taker_of(const struct pool *p, struct namespace *ns, uint64_t now)
{
	uint32_t oldest = lru_oldest(&ns->lru);
	uint64_t own = oldest == LRU_NONE ? 0 : pool_since(p->block[oldest].lru.used, now);

	return (struct taker){ .ns = ns, .now = now, .idle = MAX(RECLAIM_IDLE, 2 * own + 1) };
}

/* How long nobody used e; and how long that is for the taker, priorities counted. */
static int is_idle(const struct taker *t, const struct namespace *giver, const struct extent *e)
{
	uint64_t seen = pool_since(namespace_order(giver, e->used), namespace_order(t->ns, t->now));

	return pool_since(e->used, t->now) >= RECLAIM_IDLE && seen >= t->idle;
}

static int cold_enough(const struct pool *p, const struct taker *t, const struct extent *e)
{
	const struct namespace *giver = &p->namespaces[e->ns];

	if (giver == t->ns || e->busy || e->kept == t->now)
		return 0;
	if (!e->taken || is_idle(t, giver, e))
		return 1;
	return !t->ns->extents.n_extents && giver->extents.n_extents > t->ns->extents.granules;
}

/* Whether the granules from first on may go. Returns 0, and where the first one is that may not. */
static int window_at(const struct pool *p, const struct taker *t, uint32_t first,
		     struct window *ret, uint32_t *ret_bad)
{
	struct window w = { .first = first };

	for (uint32_t g = first; g < first + t->ns->extents.granules; g++) {
		const struct extent *e = p->extents.of[g];

		if (p->extents.punching[g] || (e && !cold_enough(p, t, e))) {
			*ret_bad = g;
			return 0;
		}
		if (e && e->taken)
			w.used = MAX(w.used, namespace_order(&p->namespaces[e->ns], e->used));
	}
	*ret = w;
	return 1;
}

/* The window that was used longest ago; first is EXTENT_NONE when there is none that may go. */
static struct window window_find(const struct pool *p, const struct taker *t)
{
	struct window best = { .first = EXTENT_NONE }, w;
	uint32_t bad;

	for (uint32_t g = 0; g + t->ns->extents.granules <= p->extents.n_granules; g++) {
		if (!window_at(p, t, g, &w, &bad))
			g = bad;
		else if (best.first == EXTENT_NONE || w.used < best.used)
			best = w;
	}
	return best;
}

enum look {
	LOOK_FINE = 0,
	LOOK_KEEP = 1,  /* somebody reads, writes or waits below it */
	LOOK_LARGE = 2, /* p->batch is full */
};

/* All of a window's blocks and what is below them, in p->batch. */
struct gathered {
	uint32_t n;
	uint64_t used; /* the latest use in the extent at hand */
};

static int gather_one(struct pool *p, uint32_t d, void *arg)
{
	struct gathered *g = arg;
	int r = LOOK_FINE;

	if (block_state(p, d) != DESC_COMMITTED || pinset_has(&p->pins, d))
		r = LOOK_KEEP;
	else if (g->n == p->reclaim_blocks)
		r = LOOK_LARGE;
	if (r) {
		block_hang(p, d);
		return r;
	}
	lru_remove(&block_namespace(p, d)->lru, d);
	g->used = MAX(g->used, p->block[d].lru.used);
	p->batch[g->n++] = d;
	return LOOK_FINE;
}

static enum look gather_extent(struct pool *p, struct extent *e, struct gathered *g)
{
	const struct extent_set *s = &p->namespaces[e->ns].extents;

	g->used = 0;
	for (uint32_t i = 0; i < e->n_slots; i++) {
		uint32_t d = extent_block(&p->extents, s, e, i);
		int r;

		if (d == DESC_NONE)
			continue;
		if (block_state(p, d) != DESC_COMMITTED)
			return LOOK_KEEP;
		/* Loose: gathered before, below another one. */
		if (block_loose(&p->block[d]))
			continue;
		r = block_prune(p, d, gather_one, g);
		if (r)
			return (enum look)r;
	}
	return LOOK_FINE;
}

/* Gathers a window, and corrects the notes of its extents. */
static enum look gather_window(struct pool *p, const struct taker *t, const struct window *w,
			       struct gathered *g)
{
	struct extent *e = NULL;

	for (uint32_t i = 0; i < t->ns->extents.granules; i++) {
		enum look r;

		if (!p->extents.of[w->first + i] || p->extents.of[w->first + i] == e)
			continue;
		e = p->extents.of[w->first + i];
		r = gather_extent(p, e, g);
		e->used = MAX(e->used, g->used);
		if (r == LOOK_KEEP)
			e->used = e->kept = t->now;
		if (r)
			return r;
	}
	return LOOK_FINE;
}

/* Nothing of it goes: all back to where it was. */
static void put_back(struct pool *p, const struct gathered *g)
{
	for (uint32_t i = g->n; i-- > 0;)
		block_hang(p, p->batch[i]);
	for (uint32_t i = 0; i < g->n; i++)
		block_leaf(p, p->batch[i]);
}

/* The extents of a window, which are empty now, become granules; what sticks out is punched. */
static void retire_window(struct pool *p, const struct taker *t, const struct window *w)
{
	uint32_t end = w->first + t->ns->extents.granules;

	for (uint32_t g = w->first; g < end; g++) {
		struct extent *e = p->extents.of[g];
		uint32_t first, last;

		if (!e)
			continue;
		first = e->first;
		last = e->first + e->count;
		extent_retire(&p->extents, &p->namespaces[e->ns].extents, e);
		p->count.extents_taken++;
		if (first < w->first)
			extent_punch(&p->extents, first, w->first - first);
		if (last > end)
			extent_punch(&p->extents, end, last - end);
	}
}

static int hand_over(struct pool *p, const struct taker *t, const struct window *w)
{
	retire_window(p, t, w);
	if (namespace_grow(p, t->ns, w->first, t->now) == 0)
		return 1;
	extent_punch(&p->extents, w->first, t->ns->extents.granules);
	return 0;
}

enum outcome {
	OUTCOME_NONE, /* not this one: look on */
	OUTCOME_PART, /* a part of it went: later more */
	OUTCOME_TAKEN,
};

static enum outcome try_window(struct pool *p, const struct taker *t, const struct window *w,
			       uint32_t *budget)
{
	struct gathered g = { .n = 0 };
	enum look r = gather_window(p, t, w, &g);
	uint32_t bad;
	struct window now;

	*budget -= MIN(*budget, g.n + 1);
	/* Still cold when all is known; and the coldest, unless there is no time to look again. */
	if (r == LOOK_KEEP || !window_at(p, t, w->first, &now, &bad) ||
	    (r == LOOK_FINE && now.used > w->used && *budget)) {
		put_back(p, &g);
		return OUTCOME_NONE;
	}
	if (evictor_take(p, p->batch, g.n, MISS_EVICTED, t->now) != g.n)
		return OUTCOME_NONE;
	if (r == LOOK_LARGE)
		return OUTCOME_PART;
	return hand_over(p, t, w) ? OUTCOME_TAKEN : OUTCOME_PART;
}

int reclaim_extent(struct pool *p, struct namespace *ns, uint64_t now)
{
	struct taker t = taker_of(p, ns, now);
	uint32_t budget = p->reclaim_blocks;
	int scanned = 0;

	if (ns->extents.n_extents && now < ns->reclaim_after)
		return 0;
	while (budget) {
		struct window w = window_find(p, &t);
		enum outcome o;

		if (w.first == EXTENT_NONE)
			break;
		if (!scanned++)
			pool_scan_pins(p);
		o = try_window(p, &t, &w, &budget);
		if (o != OUTCOME_NONE)
			return o == OUTCOME_TAKEN;
	}
	ns->reclaim_after = now + LOOK_AGAIN;
	return 0;
}
