/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon keeps of each block beside its descriptor: where it hangs in its tree, and in
 * which chain it waits.
 *
 * A block hangs below its parent, or below its namespace when it is the first of a chain, while it
 * is RESERVED (unless it is unnamed), COMMITTED or EVICTING; and while it is DOOMED and its parent is not: whoever pinned
 * it reads its ancestors too, so its parent must not be evicted. A block in QUARANTINE hangs
 * nowhere: nobody reads it. A block with nothing below it is a leaf, and only COMMITTED leaves are
 * in their namespace's LRU heap.
 */
#ifndef KVP_DAEMON_BLOCK_H
#define KVP_DAEMON_BLOCK_H

#include "daemon/pool.h"
#include "proto/reason.h"
#include "shm/word.h"

#define BLOCK_LOOSE 0xfffffffeu /* prev of a block that hangs nowhere */

/* 24 bytes, by number of the descriptor; 16 more lie in its struct lru_node. */
struct block {
	uint32_t child;       /* first of those below it, or DESC_NONE */
	uint32_t next, prev;  /* below the same parent; DESC_NONE at the ends */
	uint32_t after, before; /* in a chain: its owner's, or of free numbers (after only) */
	uint32_t flush; /* DOOMED: by which flush, 0 for none */
};

/* A free number, loose and without children; DESC_NONE when there is none. */
uint32_t block_new(struct pool *p);
void block_delete(struct pool *p, uint32_t d);

/*
 * The block that lives under key, RESERVED or COMMITTED (or EVICTING, within an eviction); or
 * DESC_NONE.
 */
uint32_t block_find(const struct pool *p, const struct block_key *key);

enum desc_state block_state(const struct pool *p, uint32_t d);
uint64_t block_gen(const struct pool *p, uint32_t d);
struct namespace *block_namespace(const struct pool *p, uint32_t d);
uint32_t block_parent(const struct pool *p, uint32_t d);
struct extent *block_extent(const struct pool *p, uint32_t d);

static inline int block_loose(const struct block *b)
{
	return b->prev == BLOCK_LOOSE;
}

/* Hangs d, which is loose, below its parent, which is no leaf then. */
void block_hang(struct pool *p, uint32_t d);

/* Takes d out of its tree, if it is in it. Its parent may be a leaf now: see block_leaf. */
void block_unhang(struct pool *p, uint32_t d);

/* Enters d in the heap if it is a COMMITTED leaf, not held, and not in it. DESC_NONE is ignored. */
void block_leaf(struct pool *p, uint32_t d);

/* A use of d; its extent notes it, too. */
void block_touch(struct pool *p, uint32_t d, uint64_t now);

/* d left its parent for good: the parent was used when it was, and may be a leaf now. */
void block_left(struct pool *p, uint32_t d);

/*
 * Takes the subtree of top out of its tree, children first, and calls fn with each block, which may
 * delete it. Stops when fn returns other than 0, and returns that: what was taken until then is
 * closed below.
 */
int block_prune(struct pool *p, uint32_t top, int (*fn)(struct pool *p, uint32_t d, void *arg),
		void *arg);

/* d, whose descriptor has its key, is no longer to be had, or not going to be: remembers why. */
void block_note_gone(struct pool *p, uint32_t d, enum miss_reason why, uint64_t now);

/* Counts d, whose descriptor has its namespace, from one state to another. */
void block_count(struct pool *p, uint32_t d, enum desc_state from, enum desc_state to);

/*
 * The end of a block: its descriptor is FREE, its tree and chain do not have it, and it was counted
 * in from. Slot and number can be used again; late: the slot after every other.
 */
void block_release(struct pool *p, uint32_t d, enum desc_state from, int late);

/* Chains. */
void chain_init(struct pool_chain *c);
void chain_append(struct pool *p, struct pool_chain *c, uint32_t d);
void chain_remove(struct pool *p, struct pool_chain *c, uint32_t d);

#endif
