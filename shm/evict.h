/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking blocks away under readers' eyes: the daemon's half of the handshake in shm/lookup.h.
 *
 * A batch is an array of descriptors, each before its parent (deepest first), and closed below: a
 * child of a member that is COMMITTED, EVICTING or DOOMED is a member before it, and no child of a
 * member is RESERVED (a doom sends those to QUARANTINE first). For an eviction that leaves
 * COMMITTED members only, and no DOOMED block below them: it may be pinned from before, and that
 * pin holds its ancestors too. For a doom it means that what an earlier doom left below a member
 * is put in the same batch. (tests/models/closure.pml, tests/models/doom.pml)
 *
 * Eviction gives pinned members back; doom keeps them until they are free.
 *
 * 	evict_mark(...);			EVICTING deepest first, then the fence
 * 	pinset_clear, pinset_scan of every session	one snapshot decides the batch
 * 	evict_settle(...);			restores parents first, frees deepest first
 *
 * Why this order: at each instant the blocks that can be read form whole prefixes, so a reader that
 * pins one has all of its ancestors; and a daemon killed at any store leaves a set that the same
 * code can finish. One snapshot, not one for each block: a pin that is given back between two looks
 * would otherwise keep a child and free its parent. (tests/models/batch.pml)
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
 * is pinned, are COMMITTED again; the rest is unlisted and FREE. pins has those ancestors too then,
 * so that pinset_has tells which members stayed; of ancestors outside the batch it has only the
 * nearest. Returns how many are FREE.
 */
uint32_t evict_settle(struct index_writer *w, const uint32_t *batch, uint32_t n,
		      struct pinset *pins);

/*
 * COMMITTED, or DOOMED by an earlier call, -> DOOMED and unlisted for all of the batch, then the
 * fence.
 */
void doom_mark(struct index_writer *w, const uint32_t *batch, uint32_t n);

/*
 * pins is a snapshot taken after doom_mark. Frees what has no pin on it or below it, deepest first,
 * and moves what stays to the front of the batch in its order. Returns how many stay; call it again
 * with a new snapshot later.
 */
uint32_t doom_settle(struct control *c, uint32_t *batch, uint32_t n, struct pinset *pins);

#endif
