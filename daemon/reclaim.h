/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents that move from a cold namespace to one that needs room.
 *
 * The rule. An extent may go when no slot of it is RESERVED or in QUARANTINE, nothing in the
 * subtrees of its blocks is pinned, RESERVED or DOOMED, and
 *
 *   - no block is in it; or
 *   - the taker has no extent at all, and the giver has more than the taker takes, or was idle
 *     there for RECLAIM_IDLE; or
 *   - the giver was idle there for RECLAIM_IDLE, and for more than twice as long as the taker's own
 *     oldest leaf, which the taker would evict otherwise.
 *
 * Priorities (policy/priority.h) make the giver's time longer, or shorter, by what the taker's is
 * above its own; but what was used within RECLAIM_IDLE is nobody's to take.
 *
 * Why it does not go back and forth: what was just taken is in use, so the giver gets it back only
 * when the taker has been idle for RECLAIM_IDLE and twice as long as the giver. Two that are
 * equally hot leave each other alone; and with more namespaces than extents, one extent moves at
 * most once in RECLAIM_IDLE.
 *
 * Blocks larger than a quarter of a granule need several granules in a row: then a window of them
 * is looked for that costs least, free ones and extents that lie side by side. At the limit of the
 * pool a free one is no help, since it has no memory. Where therefore no window is left, but a gap
 * is, as much of what is cold goes back as the taker needs, wherever it lies, and the taker grows
 * into the gap when that is punched.
 *
 * "Idle" is told by the blocks: the latest use in the extent and below it. Each extent notes a time
 * that is at most that; the one with the earliest note is looked at, and its note corrected.
 */
#ifndef KVP_DAEMON_RECLAIM_H
#define KVP_DAEMON_RECLAIM_H

#include "base/clock.h"
#include "daemon/namespace.h"

#define RECLAIM_IDLE NSEC_PER_SEC

/*
 * How many blocks one call looks at. Where more hang below one extent, that many go, leaves first,
 * and the extent is taken by a later call.
 */
#define RECLAIM_BLOCKS 16384u

/*
 * Takes what one extent of ns needs from colder namespaces, and hands it to ns. Returns 1, or 0
 * when there is nothing that may go.
 */
int reclaim_extent(struct pool *p, struct namespace *ns, uint64_t now);

#endif
