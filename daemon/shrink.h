/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that has more memory than its limit: which extents go, and when.
 *
 * Those that were used longest ago, priorities counted, wherever they lie: each with all that hangs
 * below its blocks, leaves first, through the evictor. An extent in which or below which somebody
 * reads or writes stays until that is over, and others go instead. Where nothing else is left, the
 * coldest extents with writers in them are closed, so that they come to an end.
 *
 * An extent is closed also while it is emptied in several steps: a reservation between two of them
 * would fill what was just freed.
 */
#ifndef KVP_DAEMON_SHRINK_H
#define KVP_DAEMON_SHRINK_H

#include "daemon/pool.h"

/* How many blocks one step looks at. */
#define SHRINK_BLOCKS 4096u

/* One step. Returns when it wants to be called again. */
uint64_t shrink_step(struct pool *p, uint64_t now);

#endif
