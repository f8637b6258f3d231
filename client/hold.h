/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold of sequences on blocks of the cache: leases, counted, so that forks of a sequence share
 * one. It is either what a sequence acquired, or the pins of blocks that it is about to commit.
 *
 * A writer that goes on reading its own block stores the hazard word of the RESERVED descriptor
 * before it sends the commit. The word does nothing until the block is COMMITTED, and from then on
 * no eviction takes it: the daemon reads the commit behind the word, and its scans behind the
 * commit. (tests/models: unnamed, named) So each block of a message needs a word of its own, since
 * it may be the last one that is committed; a lease has one to spare for it. Afterwards the word of
 * the deepest block is kept where it is: moving it to another place could make a scan miss both.
 */
#ifndef KVP_CLIENT_HOLD_H
#define KVP_CLIENT_HOLD_H

#include "client/lease.h"

struct hold {
	uint64_t refs; /* atomic */
	int unsure;    /* nothing is known of the commit that it was for: all leases count */
	size_t n;
	struct kvpool_lease *lease[];
};

/* Of one new and empty lease for max_blocks. Returns 0, or as kvpool_lease_new. */
int hold_new(struct kvpool *p, size_t max_blocks, struct hold **ret);

/*
 * Of up to n leases of one block each, as many as there are. Returns 0, or -ENOSPC (not a single
 * one), -ENOMEM, with the text of kvpool_error made.
 */
int hold_new_pins(struct kvpool *p, const struct attach *a, size_t n, struct hold **ret);

struct hold *hold_ref(struct hold *h);

/* Lets go with the last reference. NULL is ignored. Returns NULL. */
struct hold *hold_unref(struct hold *h);

static inline uint64_t hold_refs(const struct hold *h)
{
	return load_acquire(&h->refs);
}

/* Pins desc, which is RESERVED for this program, by lease i. The caller has a count on a. */
void hold_pin(struct hold *h, size_t i, struct attach *a, uint32_t desc);

/* Only lease i is needed: the others are freed. */
void hold_keep(struct hold *h, size_t i);

#endif
