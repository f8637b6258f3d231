/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader's hit path, without a system call: find how deep a chain of keys is cached, pin the
 * deepest block, resolve the slots.
 *
 * Blocks are prefix-closed: the parent of a resident block is resident. So residency along a chain
 * is monotone, and a pin on the deepest block keeps its whole prefix.
 *
 * The pin (Dekker's handshake with shm/evict.h):
 *
 * 	reader				daemon
 * 	store hazard = descriptor	store word = EVICTING
 * 	fence_seq_cst	  <- pairs ->	fence_seq_cst
 * 	load word			load hazard
 *
 * At least one of the two loads sees the other side's store: either the reader finds the word
 * changed and gives up, or the daemon finds the hazard word and restores the block. Without either
 * fence both stores can wait in a store buffer while both loads read old values, and the daemon
 * reuses memory that the reader reads. (tests/models/pin.pml, tests/litmus)
 */
#ifndef KVP_SHM_LOOKUP_H
#define KVP_SHM_LOOKUP_H

#include "shm/index.h"
#include "shm/word.h"

/*
 * What the probing pass knows of one block: a note, believed only where a parent link of the pinned
 * block confirms it.
 */
struct lookup_note {
	uint64_t word;
	uint32_t desc;
	uint32_t slot; /* filled by lookup_resolve */
};

/*
 * Finds one key that can be read in tier. Returns 1 and *note, or 0. A key that was listed and
 * COMMITTED all the time is not missed: when an entry, any entry, was on the move between its
 * buckets meanwhile, the probe is repeated, three passes at most.
 */
int lookup_find(const struct control *c, const struct block_key *key, enum tier tier,
		struct lookup_note *note);

/*
 * Finds how many of the n keys of a chain are readable from the first on, with a note for each.
 * Loads ahead: of the n notes those behind the depth may be written too, and mean nothing.
 */
uint32_t lookup_scan(const struct control *c, const struct block_key *keys, uint32_t n,
		     enum tier tier, struct lookup_note *notes);

/* The same by galloping: O(log n) probes, a note only for the deepest block (notes[depth - 1]). */
uint32_t lookup_gallop(const struct control *c, const struct block_key *keys, uint32_t n,
		       enum tier tier, struct lookup_note *notes);

/*
 * Pins the deepest of the depth noted blocks that is still what its note says, by hazard word
 * *hazard (empty before), for the whole prefix. have is how many notes before it are filled: 1
 * after a gallop, depth after a scan. Tries at most three blocks. Returns the pinned depth; 0 with
 * the hazard word empty again when eviction won each time.
 */
uint32_t lookup_pin(const struct control *c, uint64_t *hazard, const struct lookup_note *notes,
		    uint32_t depth, uint32_t have, enum tier tier);

enum lookup_result {
	LOOKUP_OTHER_PREFIX = 1,
};

/*
 * For a validated pin on notes[depth - 1]: fills the slot of blocks [first, depth), following the
 * parent links; the number in a note that differs from its link is replaced, whatever it was. Slots
 * are read here and not before: the chain can have been evicted and published elsewhere between the
 * probing pass and the pin. (tests/models/chain.pml)
 *
 * first > 0 extends a lease that pins notes[first - 1] by another hazard word. That block can be
 * DOOMED by now and published again elsewhere; the new pin then holds another copy of the prefix
 * and does nothing for the one that the lease has in use. The result is LOOKUP_OTHER_PREFIX, and
 * the caller gives the new pin back, not the old one. (tests/models/extend.pml)
 *
 * Returns 0, LOOKUP_OTHER_PREFIX, or -EIO when a link leads nowhere, which a sound region does not
 * have.
 */
int lookup_resolve(const struct control *c, struct lookup_note *notes, uint32_t first,
		   uint32_t depth, enum tier tier);

/* Gives a pin back. */
void lookup_unpin(uint64_t *hazard);

#endif
