/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that went: which block is not there any more, since when and why. It tells a miss that the
 * pool has caused from one of what was never stored.
 *
 * A ring of 16 bytes an entry whose size is decided at the start, the oldest one overwritten; and a
 * table of half as many numbers by which a key is found in it. An entry keeps 48 bits of a hash of
 * the key, so that in a full ring of 2^18 one find in 2^30 takes a key for another one.
 *
 * Memory: ghost_entries(max_blocks) * 18 bytes, which is at most 2.25 bytes a block, 2.25 MiB for
 * 2^20 of them; pages that were never used are not there.
 */
#ifndef KVP_DAEMON_GHOST_H
#define KVP_DAEMON_GHOST_H

#include "daemon/keyhash.h"
#include "proto/reason.h"

/* tag:48 | ns:11 | why:5, from high to low; when in units of GHOST_TIME_SHIFT; the next older. */
struct ghost_entry {
	uint64_t word;
	uint32_t when;
	uint32_t older;
};

static_assert(sizeof(struct ghost_entry) == 16, "");

struct ghost_ring {
	struct ghost_entry *entry; /* a power of two */
	uint32_t *newest;          /* by hash: number of an entry, possibly of another hash */
	uint32_t mask, hash_mask;
	uint32_t next; /* the entry that is written next, and the oldest one */
	struct keyhash hash;
};

#define GHOST_TIME_SHIFT 26u   /* units of 67 ms */
#define GHOST_NS_OTHER   2047u /* the namespace's number did not fit */

/*
 * One entry for eight blocks that the pool may have, rounded down to a power of two; 1024 at least.
 */
uint32_t ghost_entries(uint32_t max_blocks);

/* Returns 0 or -ENOMEM. ghost_fini accepts what failed. */
int ghost_init(struct ghost_ring *g, uint32_t max_blocks, const struct keyhash *hash);
void ghost_fini(struct ghost_ring *g);

/* The block of this key went, or was refused; now is not 0. The latest note of a key counts. */
void ghost_note(struct ghost_ring *g, const struct block_key *key, uint32_t ns,
		enum miss_reason why, uint64_t now);

/*
 * The same for what can happen to one key over and over: a note of the key that is there already is
 * changed, and costs no other one its place.
 */
void ghost_renew(struct ghost_ring *g, const struct block_key *key, uint32_t ns,
		 enum miss_reason why, uint64_t now);

struct ghost_found {
	enum miss_reason why;
	uint32_t ns;   /* GHOST_NS_OTHER: unknown */
	uint64_t when; /* to 67 ms, never later than it was */
};

/* Returns 1 and *ret when something is known of the key, or 0. */
int ghost_find(const struct ghost_ring *g, const struct block_key *key, struct ghost_found *ret);

/* Loads what a note of key writes to. */
void ghost_prefetch(const struct ghost_ring *g, const struct block_key *key);

#endif
