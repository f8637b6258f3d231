/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "daemon/prefixes.h"

#define NOBODY 0xffffffffu

void prefixes_init(struct prefixes *t)
{
	t->n = t->since_sweep = 0;
	for (uint32_t i = 0; i < PREFIXES_MAX; i++)
		t->bucket[i] = NOBODY;
}

static uint32_t *bucket_of(struct prefixes *t, uint32_t desc)
{
	return &t->bucket[mix64(desc) % PREFIXES_MAX];
}

static uint32_t find(const struct prefixes *t, uint32_t desc, uint64_t gen)
{
	uint32_t i = t->bucket[mix64(desc) % PREFIXES_MAX];

	while (i != NOBODY && (t->entry[i].desc != desc || t->entry[i].gen != gen))
		i = t->entry[i].next;
	return i;
}

static void link_entry(struct prefixes *t, uint32_t i)
{
	uint32_t *bucket = bucket_of(t, t->entry[i].desc);

	t->entry[i].next = *bucket;
	*bucket = i;
}

static void unlink_entry(struct prefixes *t, uint32_t i)
{
	uint32_t *at = bucket_of(t, t->entry[i].desc);

	while (*at != i)
		at = &t->entry[*at].next;
	*at = t->entry[i].next;
}

static uint64_t weight_at(const struct prefixes *t, uint32_t place)
{
	return t->entry[t->heap[place]].weight;
}

static void put(struct prefixes *t, uint32_t place, uint32_t i)
{
	t->heap[place] = i;
	t->entry[i].place = place;
}

/* Away from the root, past everything that is lighter. */
static void sink(struct prefixes *t, uint32_t place, uint32_t i)
{
	uint32_t below;

	while ((below = 2 * place + 1) < t->n) {
		if (below + 1 < t->n && weight_at(t, below + 1) < weight_at(t, below))
			below++;
		if (weight_at(t, below) >= t->entry[i].weight)
			break;
		put(t, place, t->heap[below]);
		place = below;
	}
	put(t, place, i);
}

/* Towards the root, past everything that is heavier. */
static void rise(struct prefixes *t, uint32_t place, uint32_t i)
{
	while (place && weight_at(t, (place - 1) / 2) > t->entry[i].weight) {
		put(t, place, t->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(t, place, i);
}

/* An entry for that block: a new one, or that of the lightest. */
static uint32_t enter(struct prefixes *t, uint32_t desc, uint64_t gen, uint32_t ns, uint64_t now)
{
	uint32_t i = t->n < PREFIXES_MAX ? t->n : t->heap[0];
	struct prefix *e = &t->entry[i];
	uint64_t weight = 0;

	if (t->n == PREFIXES_MAX) {
		weight = e->weight;
		unlink_entry(t, i);
		t->since_sweep++;
	}
	*e = (struct prefix){ .desc = desc,
			      .gen = gen,
			      .ns = ns,
			      .weight = weight,
			      .first = now,
			      .place = e->place };
	link_entry(t, i);
	if (t->n < PREFIXES_MAX)
		rise(t, t->n++, i);
	return i;
}

void prefixes_hit(struct prefixes *t, uint32_t desc, uint64_t gen, uint32_t ns, uint64_t session,
		  uint64_t tokens, uint64_t now)
{
	uint32_t i = find(t, desc, gen);
	struct prefix *e;

	if (i == NOBODY)
		i = enter(t, desc, gen, ns, now);
	e = &t->entry[i];
	e->weight++;
	e->hits++;
	e->hit_tokens += tokens;
	e->readers |= UINT64_C(1) << (mix64(session) & 63);
	e->used = MAX(e->used, now);
	sink(t, e->place, i);
}

const struct prefix *prefixes_find(const struct prefixes *t, uint32_t desc, uint64_t gen)
{
	uint32_t i = find(t, desc, gen);

	return i == NOBODY ? NULL : &t->entry[i];
}

uint32_t prefixes_readers(const struct prefix *e)
{
	return e ? (uint32_t)__builtin_popcountll(e->readers) : 0;
}

int prefixes_wants_sweep(const struct prefixes *t)
{
	return t->since_sweep >= PREFIXES_MAX;
}

/* The last entry moves to place i. */
static void take_out(struct prefixes *t, uint32_t i)
{
	uint32_t last = --t->n;

	unlink_entry(t, i);
	if (last == i)
		return;
	unlink_entry(t, last);
	t->entry[i] = t->entry[last];
	link_entry(t, i);
}

void prefixes_sweep(struct prefixes *t, int (*is_there)(const void *ctx, const struct prefix *e),
		    const void *ctx)
{
	uint32_t n;

	for (uint32_t i = t->n; i-- > 0;)
		if (!is_there(ctx, &t->entry[i]))
			take_out(t, i);
	/* The heap anew: cheaper than a hole at a time. */
	n = t->n;
	t->n = 0;
	for (uint32_t i = 0; i < n; i++)
		rise(t, t->n++, i);
	t->since_sweep = 0;
}
