/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon keeps of each block beside its descriptor: where it hangs in its tree, and in
 * which chain it waits.
 *
 * A block hangs below its parent, or below its namespace when it is the first of a chain, while it
 * is RESERVED (unless it is unnamed), COMMITTED or EVICTING; and while it is DOOMED and its parent
 * is not: whoever pinned it reads its ancestors too, so its parent must not be evicted. A block in
 * QUARANTINE hangs nowhere: nobody reads it. A block with nothing below it is a leaf, and only
 * COMMITTED leaves are in their namespace's LRU heap.
 */
#ifndef KVP_DAEMON_BLOCK_H
#define KVP_DAEMON_BLOCK_H

#include "daemon/pool.h"
#include "policy/lru.h"
#include "proto/reason.h"
#include "shm/word.h"

#define BLOCK_LOOSE 0xfffffffeu /* prev of a block that hangs nowhere */

/*
 * 20 bytes, by number of the descriptor. When it was last used counts for COMMITTED blocks only,
 * and those are in no chain. (Those that an eviction sets aside are, and count as used then.)
 */
struct block {
	union {
		struct lru_node lru; /* its link is the first of those below it, or DESC_NONE */
		struct {
			uint32_t after; /* in a chain */
			union {
				uint32_t before; /* in one that blocks leave from its middle */
				uint32_t flush;  /* DOOMED: by which flush, 0 for none */
			};
		};
	};
	uint32_t next, prev; /* below the same parent; DESC_NONE at the ends */
};

static_assert(sizeof(struct block) == 20, "every byte of it counts a million times");

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

/* The first of those below it, or DESC_NONE. */
static inline uint32_t block_child(const struct block *b)
{
	return lru_has(&b->lru) ? DESC_NONE : b->lru.link;
}

/* RESERVED: when that began. QUARANTINE: when it ends, if its writer is surely gone. */
uint64_t block_time(const struct pool *p, uint32_t d);
void block_set_time(struct pool *p, uint32_t d, uint64_t time);

/* Hangs d, which is loose, below its parent, which is no leaf then. */
void block_hang(struct pool *p, uint32_t d);

/* Takes d out of its tree, if it is in it. Its parent may be a leaf now: see block_leaf. */
void block_unhang(struct pool *p, uint32_t d);

/* Enters d in the heap if it is a COMMITTED leaf, not held, and not in it. DESC_NONE is ignored. */
void block_leaf(struct pool *p, uint32_t d);

/* A use of d; its extent notes it, too. */
void block_touch(struct pool *p, uint32_t d, uint64_t now);

/* d, which has its time, goes for good: its parent, if it is COMMITTED, was used when d was. */
void block_pass(struct pool *p, uint32_t d);

/* The same for a leaf d that is in the heap: it leaves it, and its parent may take its place. */
void block_leaves(struct pool *p, uint32_t d);

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

/* Chains. A block that leaves one has no time. */
void chain_init(struct pool_chain *c);
void chain_append(struct pool *p, struct pool_chain *c, uint32_t d);
void chain_remove(struct pool *p, struct pool_chain *c, uint32_t d);

#endif
