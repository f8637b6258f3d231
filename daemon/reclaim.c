/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evictor.h"
#include "daemon/gather.h"
#include "daemon/model.h"
#include "daemon/reclaim.h"

/* A namespace that found nothing looks again after this time, unless it has no extent. */
#define LOOK_AGAIN (100 * NSEC_PER_MSEC)

/* Who takes, and how cold is cold enough. */
struct taker {
	struct namespace *ns;
	uint32_t granules;  /* in a row */
	int scattered;      /* only to give them back: holes are of no use */
	int scanned;        /* the pins, which costs too much while nothing is cold enough */
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

	return (struct taker){
		.ns = ns,
		.granules = ns->extents.granules,
		.now = now,
		.idle = MAX(RECLAIM_IDLE, 2 * own + 1),
	};
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

	if (giver == t->ns || e->busy || e->closed || e->kept == t->now)
		return 0;
	if (!e->taken || is_idle(t, giver, e))
		return 1;
	return !t->ns->extents.n_extents && giver->extents.n_extents > t->ns->extents.granules;
}

/*
 * Whether the granules from first on may go, and the limit has room for those among them that have
 * no memory. Returns 0, and where the first window begins that may.
 */
static int window_at(const struct pool *p, const struct taker *t, uint32_t first,
		     struct window *ret, uint32_t *ret_next)
{
	struct window w = { .first = first };
	uint32_t holes = 0;

	for (uint32_t g = first; g < first + t->granules; g++) {
		const struct extent *e = p->extents.of[g];

		if (p->extents.away[g] || (e && !cold_enough(p, t, e))) {
			*ret_next = g + 1;
			return 0;
		}
		if (e && e->taken)
			w.used = MAX(w.used, namespace_order(&p->namespaces[e->ns], e->used));
		holes += !e;
	}
	if (holes && (t->scattered || !extent_room(&p->extents, holes))) {
		*ret_next = first + 1;
		return 0;
	}
	*ret = w;
	return 1;
}

/* The window that was used longest ago; first is EXTENT_NONE when there is none that may go. */
static struct window window_find(const struct pool *p, const struct taker *t)
{
	struct window best = { .first = EXTENT_NONE }, w;
	uint32_t g = 0, next;

	while (g < p->extents.top && g + t->granules <= p->extents.n_granules) {
		if (!window_at(p, t, g, &w, &next)) {
			g = next;
			continue;
		}
		if (best.first == EXTENT_NONE || w.used < best.used)
			best = w;
		g++;
	}
	return best;
}

static enum gather_look gather_window(struct pool *p, const struct taker *t,
				      const struct window *w, struct gather *g)
{
	struct extent *e = NULL;

	for (uint32_t i = 0; i < t->granules; i++) {
		enum gather_look r;

		if (!p->extents.of[w->first + i] || p->extents.of[w->first + i] == e)
			continue;
		e = p->extents.of[w->first + i];
		r = gather_extent(p, e, g, t->now);
		if (r)
			return r;
	}
	return GATHER_FINE;
}

/* The extents of a window, which are empty now, become granules; what sticks out is punched. */
static void retire_window(struct pool *p, const struct taker *t, const struct window *w)
{
	uint32_t end = w->first + t->granules;

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
	if (!t->scattered && namespace_grow(p, t->ns, w->first, t->now) == 0)
		return 1;
	extent_punch(&p->extents, w->first, t->granules);
	return t->scattered;
}

enum outcome {
	OUTCOME_NONE, /* not this one: look on */
	OUTCOME_PART, /* a part of it went: later more */
	OUTCOME_TAKEN,
};

static enum outcome try_window(struct pool *p, const struct taker *t, const struct window *w,
			       uint32_t *budget)
{
	struct gather g = { .room = p->reclaim_blocks };
	enum gather_look r = gather_window(p, t, w, &g);
	uint32_t next;
	struct window now;

	*budget -= MIN(*budget, g.n + 1);
	/* Still cold when all is known; and the coldest, unless there is no time to look again. */
	if (r == GATHER_KEEP || !window_at(p, t, w->first, &now, &next) ||
	    (r == GATHER_FINE && now.used > w->used && *budget)) {
		gather_put_back(p, &g);
		return OUTCOME_NONE;
	}
	if (evictor_take(p, p->batch, g.n, MISS_EVICTED, t->now) != g.n)
		return OUTCOME_NONE;
	if (r == GATHER_LARGE)
		return OUTCOME_PART;
	return hand_over(p, t, w) ? OUTCOME_TAKEN : OUTCOME_PART;
}

/* NONE: there is no window that may go, or no time to look for it. */
static enum outcome take_window(struct pool *p, struct taker *t, uint32_t *budget)
{
	while (*budget) {
		struct window w = window_find(p, t);
		enum outcome o;

		if (w.first == EXTENT_NONE)
			break;
		if (!t->scanned++)
			pool_scan_pins(p);
		o = try_window(p, t, &w, budget);
		if (o != OUTCOME_NONE)
			return o;
	}
	return OUTCOME_NONE;
}

/*
 * Nothing of the right shape, since what is cold lies scattered among granules without memory. As
 * much of it as the limit lacks is given back, wherever it lies; the taker grows when that is
 * punched.
 */
static void give_back_scattered(struct pool *p, struct taker *t, uint32_t *budget)
{
	const struct extent_map *m = &p->extents;
	uint32_t count = t->granules;

	if (count == 1 || extent_gap(m, count) == EXTENT_NONE)
		return;
	t->granules = 1;
	t->scattered = 1;
	while (m->n_handed + count > m->limit)
		if (take_window(p, t, budget) != OUTCOME_TAKEN)
			break;
}

int reclaim_extent(struct pool *p, struct namespace *ns, uint64_t now)
{
	struct taker t = taker_of(p, ns, now);
	uint32_t budget = p->reclaim_blocks;
	enum outcome o;

	if (ns->extents.n_extents && now < ns->reclaim_after)
		return 0;
	o = take_window(p, &t, &budget);
	if (o != OUTCOME_NONE)
		return o == OUTCOME_TAKEN;
	give_back_scattered(p, &t, &budget);
	ns->reclaim_after = now + LOOK_AGAIN;
	return 0;
}
