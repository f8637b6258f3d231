/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/evictor.h"
#include "daemon/gather.h"
#include "daemon/model.h"
#include "daemon/shrink.h"
#include "daemon/stats.h"

/* An extent that was in use is looked at again after this time. */
#define LOOK_AGAIN (100 * NSEC_PER_MSEC)

/* All extents: for (e = NULL; (e = extent_next(p, e)) != NULL;) */
static struct extent *extent_next(const struct pool *p, const struct extent *after)
{
	struct namespace *ns = after ? &p->namespaces[after->ns] : namespace_next(p, NULL);

	if (after && after->all.next != &ns->extents.all)
		return list_entry(after->all.next, struct extent, all);
	if (after)
		ns = namespace_next(p, ns);
	for (; ns; ns = namespace_next(p, ns))
		if (!list_empty(&ns->extents.all))
			return list_first(&ns->extents.all, struct extent, all);
	return NULL;
}

/* When it was used, priorities counted; one without a block is the coldest of all. */
static uint64_t heat(const struct pool *p, const struct extent *e)
{
	return e->taken ? namespace_order(&p->namespaces[e->ns], e->used) : 0;
}

static int colder(const struct pool *p, const struct extent *e, const struct extent *than)
{
	if (e->closed != than->closed)
		return e->closed;
	return heat(p, e) < heat(p, than);
}

static int found_in_use(const struct extent *e, uint64_t now)
{
	return e->kept <= now && now - e->kept < LOOK_AGAIN;
}

/* The next one to empty: one that was begun with, or the coldest. */
static struct extent *next_to_go(const struct pool *p, uint64_t now)
{
	struct extent *best = NULL;

	for (struct extent *e = NULL; (e = extent_next(p, e)) != NULL;)
		if (!e->busy && !found_in_use(e, now) && (!best || colder(p, e, best)))
			best = e;
	return best;
}

static struct extent *next_to_close(const struct pool *p)
{
	struct extent *best = NULL;

	for (struct extent *e = NULL; (e = extent_next(p, e)) != NULL;)
		if (e->busy && !e->closed && (!best || colder(p, e, best)))
			best = e;
	return best;
}

static void close_busy(struct pool *p)
{
	struct extent *e;

	while (p->extents.n_closed < extent_surplus(&p->extents) && (e = next_to_close(p)) != NULL)
		extent_close(&p->extents, &p->namespaces[e->ns].extents, e);
}

static void open_all(struct pool *p)
{
	if (!p->extents.n_closed)
		return;
	for (struct extent *e = NULL; (e = extent_next(p, e)) != NULL;)
		extent_open(&p->extents, &p->namespaces[e->ns].extents, e);
}

static void give_back(struct pool *p, struct extent *e)
{
	uint32_t first = e->first, count = e->count;

	extent_retire(&p->extents, &p->namespaces[e->ns].extents, e);
	extent_punch(&p->extents, first, count);
}

/* Empties it as far as the budget goes, and gives it back when nothing is left in it. */
static void empty(struct pool *p, struct extent *e, uint64_t now, uint32_t *budget)
{
	struct extent_set *s = &p->namespaces[e->ns].extents;
	struct gather g = { .room = MIN(SHRINK_BLOCKS, p->reclaim_blocks) };
	uint64_t before = e->used;
	enum gather_look r = gather_extent(p, e, &g, now);

	*budget -= MIN(*budget, g.n + 1);
	if (r == GATHER_KEEP) {
		gather_put_back(p, &g);
		extent_open(&p->extents, s, e);
		return;
	}
	/*
	 * Hotter than it looked, by what hangs below it: another one may go first. Its note is true
	 * from now on, so that each extent comes here a few times at most.
	 */
	if (e->used > before) {
		gather_put_back(p, &g);
		extent_open(&p->extents, s, e);
		return;
	}
	if (evictor_take(p, p->batch, g.n, MISS_RESIZED, now) != g.n) {
		e->kept = now;
		extent_open(&p->extents, s, e);
	} else if (r == GATHER_LARGE) {
		extent_close(&p->extents, s, e);
	} else {
		give_back(p, e);
	}
}

uint64_t shrink_step(struct pool *p, uint64_t now)
{
	uint32_t budget = MIN(SHRINK_BLOCKS, p->reclaim_blocks);
	struct extent *e;

	if (p->extents.fixed)
		extent_drop_free(&p->extents);
	if (extent_surplus(&p->extents) && now < p->shrink_again)
		return p->shrink_again;
	if (extent_surplus(&p->extents))
		pool_scan_pins(p);
	while (extent_surplus(&p->extents)) {
		e = next_to_go(p, now);
		if (!e) {
			close_busy(p);
			p->shrink_again = now + LOOK_AGAIN;
			return p->shrink_again;
		}
		if (!budget)
			return now;
		empty(p, e, now, &budget);
	}
	open_all(p);
	return UINT64_MAX;
}

/* What a resize would do, at this moment. */

struct candidate {
	uint64_t heat;
	const struct extent *e;
};

static int compare_heat(const void *a, const void *b)
{
	uint64_t x = ((const struct candidate *)a)->heat, y = ((const struct candidate *)b)->heat;

	return x < y ? -1 : x > y;
}

/* Everything that must stay, with all that is above it, in p->pins. */
static void scan_all_holds(struct pool *p)
{
	pool_scan_pins(p);
	for (struct extent *e = NULL; (e = extent_next(p, e)) != NULL;)
		for (uint32_t i = 0; e->busy && i < e->n_slots; i++) {
			uint32_t d = extent_block(&p->extents, &p->namespaces[e->ns].extents, e, i);

			if (d != DESC_NONE && block_state(p, d) == DESC_RESERVED)
				pinset_add(&p->pins, d);
		}
	for (uint32_t d = p->doomed.first; d != DESC_NONE; d = p->block[d].after)
		pinset_add(&p->pins, d);
	stats_spread_pins(p);
}

/* A look at each of its slots, which is far from the last one. */
static int may_go(const struct pool *p, const struct extent *e)
{
	for (uint32_t i = 0; i < e->n_slots; i++) {
		uint32_t d = extent_block(&p->extents, &p->namespaces[e->ns].extents, e, i);

		if (d != DESC_NONE && pinset_has(&p->pins, d))
			return 0;
	}
	return 1;
}

static int candidates(const struct pool *p, struct candidate **ret, size_t *ret_n)
{
	/* Each has a granule. */
	struct candidate *c = malloc((p->extents.n_handed + 1) * sizeof(*c));
	size_t n = 0;

	if (!c)
		return -ENOMEM;
	for (struct extent *e = NULL; (e = extent_next(p, e)) != NULL;)
		if (!e->busy)
			c[n++] = (struct candidate){ .heat = heat(p, e), .e = e };
	qsort(c, n, sizeof(*c), compare_heat);
	*ret = c;
	*ret_n = n;
	return 0;
}

static int foresee(struct pool *p, uint32_t limit, struct pool_resized *r)
{
	uint32_t above = p->extents.n_handed > limit ? p->extents.n_handed - limit : 0;
	struct candidate *c;
	size_t n;
	int e;

	if (!above)
		return 0;
	scan_all_holds(p);
	e = candidates(p, &c, &n);
	if (e < 0)
		return e;
	for (size_t i = 0; i < n && above; i++) {
		if (!may_go(p, c[i].e))
			continue;
		r->evict_blocks += c[i].e->taken;
		above -= MIN(above, c[i].e->count);
	}
	r->stuck_bytes = (uint64_t)above << p->extents.shift;
	free(c);
	return 0;
}

uint64_t pool_limit_bytes(const struct pool *p)
{
	return (uint64_t)p->extents.limit << p->extents.shift;
}

uint64_t pool_least_bytes(const struct pool *p, uint32_t *ret_ns)
{
	uint32_t granules = 1, number = NS_NONE;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		if (ns->holds && ns->extents.granules > granules) {
			granules = ns->extents.granules;
			number = ns->number;
		}
	*ret_ns = number;
	return (uint64_t)granules << p->extents.shift;
}

uint64_t pool_blocks_in(const struct pool *p, uint64_t bytes)
{
	uint64_t stride = UINT64_MAX;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		stride = MIN(stride, ns->stride);
	return bytes / stride;
}

uint64_t pool_most_bytes(const struct pool *p)
{
	const struct extent_map *m = &p->extents;

	return (uint64_t)(m->n_granules - m->n_gone - m->n_dropping) << m->shift;
}

int pool_resize_check(const struct pool *p, uint64_t bytes)
{
	uint32_t ns;

	if (bytes > pool_most_bytes(p))
		return -EFBIG;
	return bytes < pool_least_bytes(p, &ns) ? -ERANGE : 0;
}

int pool_resize(struct pool *p, uint64_t bytes, int dry_run, uint64_t now, struct pool_resized *ret)
{
	struct extent_map *m = &p->extents;
	uint32_t limit = (uint32_t)(MIN(bytes, pool_most_bytes(p)) >> m->shift);
	struct pool_resized r = {
		.was_bytes = pool_limit_bytes(p),
		.now_bytes = (uint64_t)limit << m->shift,
		.handed_bytes = (uint64_t)m->n_handed << m->shift,
	};
	int e = pool_resize_check(p, bytes);

	if (e < 0)
		return e;
	e = foresee(p, limit, &r);
	if (e < 0)
		return e;
	if (!dry_run) {
		m->limit = limit;
		p->shrink_again = 0;
		if (!extent_surplus(m))
			open_all(p);
	}
	*ret = r;
	return 0;
}
