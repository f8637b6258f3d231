/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evictor.h"
#include "daemon/model.h"
#include "daemon/reclaim.h"
#include "daemon/room.h"

int room_grow(struct pool *p, struct namespace *ns, uint64_t now)
{
	uint32_t first = extent_run(&p->extents, ns->extents.granules);

	return first != EXTENT_NONE && namespace_grow(p, ns, first, now) == 0;
}

/*
 * What is missing, and what keeps the next one from coming here for a single block. In extents that
 * a resize empties no slot comes free.
 */
static int evict(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now)
{
	uint32_t missing = want - ns->extents.n_free;

	if (ns->extents.n_closed == ns->extents.n_extents)
		return 0;
	return evictor_run(p, ns, missing + evictor_low_water(ns), now) > 0;
}

static void make_slots(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now)
{
	int colder = 1; /* worth a look */

	while (ns->extents.n_free < want) {
		if (room_grow(p, ns, now))
			continue;
		if (colder && reclaim_extent(p, ns, now))
			continue;
		colder = 0;
		if (!evict(p, ns, want, now))
			break;
	}
	/* All of its own is pinned, and counts as used now: others may be much colder than that. */
	if (ns->extents.n_free < want)
		ns->reclaim_after = 0;
	while (ns->extents.n_free < want && reclaim_extent(p, ns, now))
		;
}

/* Descriptors are everybody's: the oldest leaf of all goes, or that of whoever has one to give. */
static int evict_anywhere(struct pool *p, uint32_t want, uint64_t now)
{
	struct namespace *ns = evictor_coldest(p);

	if (ns && evictor_run(p, ns, want, now))
		return 1;
	for (ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		if (evictor_run(p, ns, want, now))
			return 1;
	return 0;
}

static void make_descriptors(struct pool *p, uint32_t want, uint64_t now)
{
	while (pool_free_blocks(p) < want)
		if (!evict_anywhere(p, want - pool_free_blocks(p), now))
			break;
}

void room_make(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now)
{
	make_slots(p, ns, want, now);
	make_descriptors(p, MIN(want, ns->extents.n_free), now);
}
