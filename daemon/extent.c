/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/extent.h"
#include "shm/granule.h"
#include "shm/word.h"

int extent_map_init(struct extent_map *m, const struct control *control,
		    const struct pool_ops *ops, void *ctx, uint32_t limit, int fixed)
{
	uint32_t n = control->head->n_granules;

	*m = (struct extent_map){
		.control = control,
		.ops = ops,
		.ctx = ctx,
		.of = calloc(n, sizeof(*m->of)),
		.away = calloc(n, sizeof(*m->away)),
		.n_granules = n,
		.shift = control->head->granule_shift,
		.limit = limit,
		.fixed = fixed,
	};
	return m->of && m->away ? 0 : -ENOMEM;
}

void extent_map_fini(struct extent_map *m)
{
	/* From the end, so that the first granule of an extent is looked at last. */
	for (uint32_t g = m->of ? m->n_granules : 0; g-- > 0;)
		if (m->of[g] && m->of[g]->first == g)
			free(m->of[g]);
	free(m->of);
	free(m->away);
	*m = (struct extent_map){ .n_granules = 0 };
}

uint32_t extent_granules(const struct extent_map *m, uint64_t stride)
{
	uint64_t n = granules_of_extent(stride, m->shift);

	return n > m->limit ? 0 : (uint32_t)n;
}

void extent_set_init(struct extent_set *s, uint32_t ns, uint32_t granules, uint64_t stride)
{
	*s = (struct extent_set){
		.ns = ns,
		.granules = granules,
		.unit = (uint32_t)(stride >> SLOT_SHIFT),
	};
	list_init(&s->all);
	list_init(&s->ready);
	list_init(&s->late);
	list_init(&s->packed);
}

static int granule_free(const struct extent_map *m, uint32_t g)
{
	return !m->of[g] && m->away[g] == GRANULE_HERE;
}

static uint32_t above(uint32_t n, uint32_t limit)
{
	return n > limit ? n - limit : 0;
}

/* Of a fixed pool all granules have memory but those that are gone. */
uint32_t extent_excess(const struct extent_map *m)
{
	return above(m->fixed ? m->n_granules - m->n_gone : m->n_handed + m->n_punching, m->limit);
}

uint32_t extent_surplus(const struct extent_map *m)
{
	return above(m->fixed ? m->n_granules - m->n_gone - m->n_dropping : m->n_handed, m->limit);
}

uint32_t extent_gap(const struct extent_map *m, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t g = 0; g < m->n_granules; g++) {
		n = granule_free(m, g) ? n + 1 : 0;
		if (n == count)
			return g + 1 - count;
	}
	return EXTENT_NONE;
}

uint32_t extent_run(const struct extent_map *m, uint32_t count)
{
	return extent_room(m, count) ? extent_gap(m, count) : EXTENT_NONE;
}

static uint64_t granule_bytes(const struct extent_map *m, uint32_t count)
{
	return (uint64_t)count << m->shift;
}

/* Slots of extents that so many granules make. */
static uint64_t slots_of(const struct extent_map *m, const struct extent_set *s, uint64_t granules)
{
	uint64_t each = granule_bytes(m, s->granules) / ((uint64_t)s->unit << SLOT_SHIFT);

	return granules / s->granules * each;
}

uint64_t extent_slots_more(const struct extent_map *m, const struct extent_set *s)
{
	uint32_t used = m->n_handed + m->n_punching;

	return slots_of(m, s, m->limit - MIN(used, m->limit));
}

uint64_t extent_slots_most(const struct extent_map *m, const struct extent_set *s)
{
	return slots_of(m, s, m->limit);
}

/* The table that clients and a successor read: whose a granule is comes last. */
static void granules_hand_out(struct extent_map *m, struct extent *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		struct granule *g = &m->control->granule[e->first + i];

		m->of[e->first + i] = e;
		store_relaxed(&g->first, e->first);
		store_relaxed(&g->count, i ? 0 : e->count);
		store_release(&g->ns, e->ns);
	}
	m->n_handed += e->count;
	m->top = MAX(m->top, e->first + e->count);
}

int extent_new(struct extent_map *m, struct extent_set *s, uint32_t first, uint64_t now)
{
	uint32_t n_slots = (uint32_t)((granule_bytes(m, s->granules) >> SLOT_SHIFT) / s->unit);
	struct extent *e = malloc(sizeof(*e) + n_slots * sizeof(e->slot[0]));

	if (!e)
		return -ENOMEM;
	*e = (struct extent){
		.ns = s->ns,
		.first = first,
		.count = s->granules,
		.n_slots = n_slots,
		.free_slot = EXTENT_NONE,
		.late_slot = EXTENT_NONE,
		.used = now,
		.kept = UINT64_MAX,
	};
	list_init(&e->late);
	list_init(&e->packed);
	list_add_tail(&s->all, &e->all);
	list_add_tail(&s->ready, &e->ready);
	s->n_extents++;
	s->n_slots += n_slots;
	s->n_free += n_slots;
	granules_hand_out(m, e);
	m->ops->populate(m->ctx, granule_bytes(m, first), granule_bytes(m, e->count));
	return 0;
}

void extent_retire(struct extent_map *m, struct extent_set *s, struct extent *e)
{
	extent_open(m, s, e);
	for (uint32_t i = 0; i < e->count; i++) {
		struct granule *g = &m->control->granule[e->first + i];

		store_release(&g->ns, NS_NONE);
		store_release(&g->count, 0);
		store_release(&g->first, e->first + i);
		m->of[e->first + i] = NULL;
	}
	m->n_handed -= e->count;
	s->n_extents--;
	s->n_slots -= e->n_slots;
	s->n_free -= e->n_slots;
	list_del(&e->all);
	list_del(&e->ready);
	list_del(&e->late);
	free(e);
}

/* Their generation is raised now, before anybody can be given what will lie there. */
static void send_away(struct extent_map *m, uint32_t first, uint32_t count, enum granule_away where)
{
	for (uint32_t g = first; g < first + count; g++) {
		uint64_t *gen = &m->control->granule[g].gen;

		m->away[g] = where;
		store_release(gen, load_relaxed(gen) + 1);
	}
	m->n_punching += count;
}

void extent_punch(struct extent_map *m, uint32_t first, uint32_t count)
{
	uint32_t drop = m->fixed ? MIN(extent_surplus(m), count) : 0, keep = count - drop;

	if (keep) {
		send_away(m, first, keep, GRANULE_PUNCHED);
		m->ops->punch(m->ctx, granule_bytes(m, first), granule_bytes(m, keep));
	}
	if (drop) {
		send_away(m, first + keep, drop, GRANULE_DROPPED);
		m->n_dropping += drop;
		m->ops->drop(m->ctx, granule_bytes(m, first + keep), granule_bytes(m, drop));
	}
}

void extent_punched(struct extent_map *m, uint64_t offset, uint64_t bytes)
{
	uint32_t first = (uint32_t)(offset >> m->shift), count = (uint32_t)(bytes >> m->shift);

	for (uint32_t g = first; g < first + count; g++) {
		if (m->away[g] == GRANULE_DROPPED) {
			m->away[g] = GRANULE_GONE;
			m->n_dropping--;
			m->n_gone++;
		} else {
			m->away[g] = GRANULE_HERE;
		}
	}
	m->n_punching -= count;
}

void extent_drop_free(struct extent_map *m)
{
	for (uint32_t g = m->n_granules; g-- > 0 && extent_surplus(m);)
		if (granule_free(m, g))
			extent_punch(m, g, 1);
}

static uint32_t slot_number(const struct extent_map *m, const struct extent_set *s,
			    const struct extent *e, uint32_t i)
{
	return (uint32_t)(granule_bytes(m, e->first) >> SLOT_SHIFT) + i * s->unit;
}

static int has_ready(const struct extent *e)
{
	if (e->closed)
		return 0;
	return e->free_slot != EXTENT_NONE || e->fresh < e->n_slots;
}

/* Its place among those with unnamed slots, if it is one: with room in front. */
static void place_packed(struct extent_set *s, struct extent *e)
{
	if (!e->unnamed)
		return;
	list_del(&e->packed);
	if (has_ready(e))
		list_add(&s->packed, &e->packed);
	else
		list_add_tail(&s->packed, &e->packed);
}

static uint32_t take_ready(struct extent_set *s, struct extent *e)
{
	uint32_t i = e->free_slot;

	if (i == EXTENT_NONE)
		i = e->fresh++;
	else
		e->free_slot = e->slot[i];
	if (!has_ready(e)) {
		list_del(&e->ready);
		place_packed(s, e);
	} else if (e->free_slot == EXTENT_NONE) {
		/* Only slots that were never used: behind the extents with warm ones. */
		list_del(&e->ready);
		list_add_tail(&s->ready, &e->ready);
	}
	return i;
}

static uint32_t take_late(struct extent *e)
{
	uint32_t i = e->late_slot;

	e->late_slot = e->slot[i];
	if (e->late_slot == EXTENT_NONE)
		list_del(&e->late);
	return i;
}

/* A slot of e for block d: one that is ready, else a late one. */
static uint32_t take(struct extent_map *m, struct extent_set *s, struct extent *e, uint32_t d)
{
	uint32_t i = has_ready(e) ? take_ready(s, e) : take_late(e);

	e->slot[i] = d;
	e->taken++;
	s->n_free--;
	return slot_number(m, s, e, i);
}

uint32_t extent_take(struct extent_map *m, struct extent_set *s, uint32_t d)
{
	if (!list_empty(&s->ready))
		return take(m, s, list_first(&s->ready, struct extent, ready), d);
	return take(m, s, list_first(&s->late, struct extent, late), d);
}

static struct extent *fullest_packed(struct extent_set *s)
{
	struct extent *e, *best = NULL;

	list_for_each(e, &s->packed, packed)
	{
		if (!has_ready(e))
			break;
		if (!best || e->unnamed > best->unnamed)
			best = e;
	}
	return best;
}

static struct extent *emptiest_ready(struct extent_set *s)
{
	struct extent *e, *best = NULL;

	list_for_each(e, &s->ready, ready) if (!best || e->taken < best->taken) best = e;
	return best;
}

uint32_t extent_take_packed(struct extent_map *m, struct extent_set *s, uint32_t d)
{
	struct extent *e = fullest_packed(s);
	uint32_t slot;

	if (!e)
		e = emptiest_ready(s);
	if (!e)
		e = list_first(&s->late, struct extent, late);
	slot = take(m, s, e, d);
	e->unnamed++;
	place_packed(s, e);
	if (has_ready(e)) {
		list_del(&e->ready);
		list_add_tail(&s->ready, &e->ready);
	}
	return slot;
}

int extent_packs_full(struct extent_set *s)
{
	const struct extent *e = fullest_packed(s);

	if (!e)
		e = emptiest_ready(s);
	return !e || (e->taken && !e->unnamed);
}

void extent_unpack(struct extent *e)
{
	if (!--e->unnamed)
		list_del(&e->packed);
}

static uint32_t slot_index(const struct extent_map *m, const struct extent_set *s,
			   const struct extent *e, uint32_t slot)
{
	return (slot - slot_number(m, s, e, 0)) / s->unit;
}

void extent_put(struct extent_map *m, struct extent_set *s, uint32_t slot, int late)
{
	struct extent *e = extent_of(m, slot);
	uint32_t i = slot_index(m, s, e, slot);
	uint32_t *head = late ? &e->late_slot : &e->free_slot;

	e->slot[i] = *head;
	*head = i;
	e->taken--;
	if (e->closed) {
		s->n_shut++;
		return;
	}
	s->n_free++;
	if (late) {
		list_del(&e->late);
		list_add(&s->late, &e->late);
	} else {
		list_del(&e->ready);
		if (e->unnamed)
			list_add_tail(&s->ready, &e->ready);
		else
			list_add(&s->ready, &e->ready);
		place_packed(s, e);
	}
}

void extent_close(struct extent_map *m, struct extent_set *s, struct extent *e)
{
	uint32_t n_free = e->n_slots - e->taken;

	if (e->closed)
		return;
	e->closed = 1;
	list_del(&e->ready);
	list_del(&e->late);
	place_packed(s, e);
	s->n_free -= n_free;
	s->n_shut += n_free;
	s->n_closed++;
	m->n_closed += e->count;
}

void extent_open(struct extent_map *m, struct extent_set *s, struct extent *e)
{
	uint32_t n_free = e->n_slots - e->taken;

	if (!e->closed)
		return;
	e->closed = 0;
	if (has_ready(e))
		list_add_tail(&s->ready, &e->ready);
	if (e->late_slot != EXTENT_NONE)
		list_add_tail(&s->late, &e->late);
	place_packed(s, e);
	s->n_free += n_free;
	s->n_shut -= n_free;
	s->n_closed--;
	m->n_closed -= e->count;
}

uint32_t extent_block(const struct extent_map *m, const struct extent_set *s,
		      const struct extent *e, uint32_t i)
{
	const struct control *c = m->control;
	uint32_t d = i < e->fresh ? e->slot[i] : DESC_NONE;

	/*
	 * A free slot has the next one of its chain there: no block that lives claims to lie here.
	 */
	if (d >= c->max_blocks || word_state(load_relaxed(&c->desc[d].word)) == DESC_FREE ||
	    load_relaxed(&c->desc[d].slot[TIER_HOST]) != slot_number(m, s, e, i))
		return DESC_NONE;
	return d;
}
