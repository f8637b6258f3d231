/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's memory: granules, extents made of them, slots in the extents.
 *
 * An extent belongs to one namespace, as a whole. Its slots are handed out last-in first-out, the
 * extent whose slot was freed last first: cold pages cost nine times as much as warm ones. Extents
 * with unnamed blocks come behind the others, so that fewer are of both kinds. Slots that come out
 * of quarantine are "late": they go only when no other slot of the namespace is free, since a
 * writer that was taken for dead may still write there.
 *
 * The table has a granule for each part of the memory's whole size. How many of them may have
 * memory at once is the limit, which a resize changes: any of them, wherever they lie, so that a
 * pool that gets smaller keeps what is used and not what lies low. An extent that a resize empties
 * is closed: what is in it is read as before, and no slot of it is handed out any more.
 */
#ifndef KVP_DAEMON_EXTENT_H
#define KVP_DAEMON_EXTENT_H

#include "base/list.h"
#include "daemon/pool.h"

#define EXTENT_NONE 0xffffffffu /* no granule, or no slot of an extent */

/*
 * 144 bytes and 4 for each slot. slot[i] is the descriptor whose bytes lie there, or the next free
 * slot of its chain.
 *
 * unnamed: of the busy ones, those that have no key. An extent with one of them can't be taken back
 * for as long as an engine likes, so they are kept together: see extent_take_packed.
 *
 * used: no block of it was used later, as far as is known here. A use of a block is one of its
 * whole prefix, but is noted only where the block lies. kept: when it was last found to be in use.
 */
struct extent {
	struct list all;    /* in extent_set.all */
	struct list ready;  /* in extent_set.ready while a slot is free that is not late */
	struct list late;   /* in extent_set.late while a late one is */
	struct list packed; /* in extent_set.packed while unnamed is not 0 */
	uint32_t ns;
	uint32_t first, count; /* granules */
	uint32_t n_slots;
	uint32_t taken; /* slots that hold a block, whatever its state */
	uint32_t busy;  /* of these: RESERVED or in QUARANTINE */
	uint32_t unnamed;
	uint32_t mark;                 /* for who counts extents: extent_map.mark when it was met */
	uint32_t fresh;                /* slots from here on were never handed out */
	int closed;                    /* in neither list; its free slots don't count as free */
	uint32_t free_slot, late_slot; /* heads of the chains, or EXTENT_NONE */
	uint64_t used, kept;
	uint32_t slot[];
};

/* The extents of one namespace. */
struct extent_set {
	struct list all, ready, late;
	/* those with unnamed slots; with a slot that is ready before others */
	struct list packed;
	uint32_t ns;
	uint32_t granules; /* of each extent */
	uint32_t unit;     /* from one slot to the next, in SLOT_UNIT */
	uint32_t n_extents;
	uint32_t n_slots, n_free;
	uint32_t n_closed, n_shut; /* closed extents, and the free slots in them */
};

/* Why a granule that is in no extent is not free. */
enum granule_away {
	GRANULE_HERE = 0,
	GRANULE_PUNCHED, /* being punched */
	GRANULE_DROPPED, /* being punched for good */
	GRANULE_GONE,    /* and that is done */
};

struct extent_map {
	const struct control *control;
	const struct pool_ops *ops;
	void *ctx;
	struct extent **of; /* by granule: the extent that it is in, or NULL */
	uint8_t *away;      /* by granule: enum granule_away */
	uint32_t n_granules, shift;
	uint32_t limit;     /* granules that may have memory */
	int fixed;          /* pool_config.fixed */
	uint32_t n_handed;  /* granules in extents */
	uint32_t n_closed;  /* of these: in closed ones */
	uint32_t n_punching; /* GRANULE_PUNCHED or GRANULE_DROPPED */
	uint32_t n_dropping, n_gone;
	uint32_t top;       /* no granule from here on was ever handed out */
	uint32_t mark;      /* the last one that was given out */
};

int extent_map_init(struct extent_map *m, const struct control *control,
		    const struct pool_ops *ops, void *ctx, uint32_t limit, int fixed);
void extent_map_fini(struct extent_map *m);

/*
 * How many granules an extent of slots of stride bytes has: as many as hold four, at least one. 0
 * when the limit is less.
 */
uint32_t extent_granules(const struct extent_map *m, uint64_t stride);

void extent_set_init(struct extent_set *s, uint32_t ns, uint32_t granules, uint64_t stride);

/* Whether count granules more may have memory now; and when the punches under way are done. */
static inline int extent_room(const struct extent_map *m, uint32_t count)
{
	return m->n_handed + m->n_punching + count <= m->limit;
}

static inline int extent_room_soon(const struct extent_map *m, uint32_t count)
{
	return m->n_punching && m->n_handed + count <= m->limit;
}

/*
 * How many granules there are beyond the limit: that have memory until they are punched, and of
 * these, that nobody has given back yet.
 */
uint32_t extent_excess(const struct extent_map *m);
uint32_t extent_surplus(const struct extent_map *m);

/*
 * The first of count granules in a row that are free, the lowest there is, or EXTENT_NONE; and the
 * same when the limit has room for them. (All free granules are holes; none is warmer than
 * another.)
 */
uint32_t extent_gap(const struct extent_map *m, uint32_t count);
uint32_t extent_run(const struct extent_map *m, uint32_t count);

/*
 * Slots that the set could have beside those of its extents while memory has room for new ones; and
 * all that it could have if the memory were empty.
 */
uint64_t extent_slots_more(const struct extent_map *m, const struct extent_set *s);
uint64_t extent_slots_most(const struct extent_map *m, const struct extent_set *s);

/* Hands the free granules from first on to a namespace, and has them populated. 0 or -ENOMEM. */
int extent_new(struct extent_map *m, struct extent_set *s, uint32_t first, uint64_t now);

/* Takes an extent without a block back: its granules are free, and hold what they held. */
void extent_retire(struct extent_map *m, struct extent_set *s, struct extent *e);

/*
 * Has free granules punched: they are not free until extent_punched. Of a fixed pool above its
 * limit, as many of them as are too many are never free again.
 */
void extent_punch(struct extent_map *m, uint32_t first, uint32_t count);
void extent_punched(struct extent_map *m, uint64_t offset, uint64_t bytes);

/* The same for free granules of a fixed pool above its limit, from the last one on. */
void extent_drop_free(struct extent_map *m);

/* A slot for block d; one is free. */
uint32_t extent_take(struct extent_map *m, struct extent_set *s, uint32_t d);

/*
 * The same for an unnamed block: from the extent that has the most of them and has room, else from
 * the one where least lies.
 */
uint32_t extent_take_packed(struct extent_map *m, struct extent_set *s, uint32_t d);

/* True when the next one would lie among other blocks: better in a new extent. */
int extent_packs_full(struct extent_set *s);

/* A block of e has a key now, or goes: one unnamed less. */
void extent_unpack(struct extent *e);

/* The slot is free again. late: after every other. The block is not RESERVED or in QUARANTINE. */
void extent_put(struct extent_map *m, struct extent_set *s, uint32_t slot, int late);

/* No slot of it is handed out from here on, until it is opened again; twice is harmless. */
void extent_close(struct extent_map *m, struct extent_set *s, struct extent *e);
void extent_open(struct extent_map *m, struct extent_set *s, struct extent *e);

/* The extent in which a slot lies. */
static inline struct extent *extent_of(const struct extent_map *m, uint32_t slot)
{
	return m->of[slot >> (m->shift - SLOT_SHIFT)];
}

/* The i-th slot of an extent holds a block: the descriptor; otherwise DESC_NONE. */
uint32_t extent_block(const struct extent_map *m, const struct extent_set *s,
		      const struct extent *e, uint32_t i);

#endif
