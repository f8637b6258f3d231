/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All blocks of an extent and what is below them, wherever that lies: what has to go so that the
 * extent can be taken. The snapshot of the pins at hand decides what stays; evictor_take() looks
 * again.
 */
#ifndef KVP_DAEMON_GATHER_H
#define KVP_DAEMON_GATHER_H

#include "daemon/namespace.h"

enum gather_look {
	GATHER_FINE = 0,
	GATHER_KEEP = 1,  /* somebody reads, writes or waits below it */
	GATHER_LARGE = 2, /* there is no room for more of them */
};

/* They are in p->batch, each before its parent, loose and in no heap. */
struct gather {
	uint32_t room; /* for so many, at most RECLAIM_BLOCKS */
	uint32_t n;
	uint64_t used; /* the latest use in the extent at hand, and below it */
};

/*
 * Adds those of an extent, and corrects its note of when it was used. KEEP: what was gathered until
 * then, of other extents too, is closed below all the same, as with LARGE.
 */
enum gather_look gather_extent(struct pool *p, struct extent *e, struct gather *g, uint64_t now);

/* None of them goes: all back to where they were. */
void gather_put_back(struct pool *p, const struct gather *g);

#endif
