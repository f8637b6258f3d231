/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease: a pin on a prefix, and where its blocks lie.
 *
 * It owns two hazard words of every session of its handle, numbers 2 * index and 2 * index + 1, for
 * as long as it lives. One of them pins its deepest block; a longer prefix is pinned through the
 * other one first, so that nothing is unpinned in between. While it holds a prefix it keeps a count
 * on the attachment that the prefix lies in.
 */
#ifndef KVP_CLIENT_LEASE_H
#define KVP_CLIENT_LEASE_H

#include "client/handle.h"
#include "shm/lookup.h"

#define LEASE_BLOCKS_MAX 1048576u

struct kvpool_ns;

struct kvpool_lease {
	struct kvpool *pool;
	struct kvpool_ns *ns;  /* of the last acquire, with a reference; NULL: none yet */
	struct attach *attach; /* with a count; NULL: the lease is empty */
	uint32_t index;
	uint32_t word;         /* 0 or 1: which of its hazard words is in use */
	uint32_t ns_number;    /* on the attachment */
	uint32_t max_blocks;
	uint32_t depth;        /* blocks */
	int depth_only;
	enum kvpool_reason reason;
	struct block_key last; /* key of the deepest block */
	struct lookup_note notes[];
};

/* kvpool_lease_new() without the checks of its arguments, and without words for what fails. */
int lease_make(struct kvpool *p, size_t max_blocks, struct kvpool_lease **ret);

/* The hazard word that is in use (other = 0) or free (1). */
static inline uint64_t *lease_hazard(const struct kvpool_lease *l, uint32_t other)
{
	return &l->attach->session.hazard[2 * l->index + (l->word ^ other)];
}

#endif
