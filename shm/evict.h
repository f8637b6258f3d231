/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking blocks away under readers' eyes: the daemon's half of the handshake in shm/lookup.h.
 *
 * A batch is an array of descriptors, each before its parent (deepest first), and closed below:
 * every resident or reserved child of a member is a member before it. Eviction gives pinned members
 * back; doom keeps them until they are free.
 *
 * 	evict_mark(...);			EVICTING deepest first, then the fence
 * 	pinset_clear, pinset_scan of every session	one snapshot decides the batch
 * 	evict_settle(...);			restores parents first, frees deepest first
 *
 * Why this order: at each instant the blocks that can be read form whole prefixes, so a reader that
 * pins one has all of its ancestors; and a daemon killed at any store leaves a set that the same
 * code can finish. One snapshot, not one for each block: a pin that arrives between two looks would
 * otherwise free a parent and keep its child. (tests/models/batch.pml)
 */
#ifndef KVP_SHM_EVICT_H
#define KVP_SHM_EVICT_H

#include "shm/index.h"
#include "shm/pinset.h"

/*
 * COMMITTED -> EVICTING for all of the batch, then the fence that pairs with the one in a reader's
 * pin.
 */
void evict_mark(struct control *c, const uint32_t *batch, uint32_t n);

/*
 * pins is a snapshot taken after evict_mark. What is pinned, and the ancestors in the batch of what
 * is pinned, are COMMITTED again (pins has them all then); the rest is unlisted and FREE. Returns
 * how many are FREE.
 */
uint32_t evict_settle(struct index_writer *w, const uint32_t *batch, uint32_t n,
		      struct pinset *pins);

/* COMMITTED -> DOOMED and unlisted for all of the batch, then the fence. */
void doom_mark(struct index_writer *w, const uint32_t *batch, uint32_t n);

/*
 * pins is a snapshot taken after doom_mark. Frees what has no pin on it or below it, deepest first,
 * and moves what stays to the front of the batch in its order. Returns how many stay; call it again
 * with a new snapshot later.
 */
uint32_t doom_settle(struct control *c, uint32_t *batch, uint32_t n, struct pinset *pins);

#endif
