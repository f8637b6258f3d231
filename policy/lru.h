/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaf-first LRU: which block to give up next.
 *
 * Only leaves can go (a parent must outlive its children), so only leaves are ordered: a binary
 * heap by time of last use. A use of a block is a use of its whole prefix, but only the block's own
 * time is set; its caller touches the parent with the time of each child that goes, so that a
 * parent enters the heap with a time that is at least that of every child it had. Pure code over
 * memory of its caller: the daemon and the simulator run the same.
 */
#ifndef KVP_POLICY_LRU_H
#define KVP_POLICY_LRU_H

#include <stddef.h>
#include <stdint.h>

#define LRU_NONE 0xffffffffu
#define LRU_HEAP 0x80000000u

/* A time in four-byte steps, so that a node of 12 bytes has no hole. */
typedef uint64_t lru_time __attribute__((aligned(4)));

/*
 * One for each block, somewhere in what its caller keeps of it. link: in the heap, LRU_HEAP and the
 * place there. A block that is not in it leaves the word to its caller, as long as it is LRU_NONE
 * or below 2^30: what is no leaf needs no place, and a leaf has no first child.
 */
struct lru_node {
	lru_time used; /* time of last use; any monotone clock */
	uint32_t link;
};

static inline int lru_has(const struct lru_node *n)
{
	return n->link >> 30 == LRU_HEAP >> 30;
}

struct lru {
	char *node; /* of block 0; stride bytes from one to the next */
	size_t stride;
	uint32_t *heap; /* room for as many as may be leaves at once, at most 2^30 */
	uint32_t count;
};

void lru_init(struct lru *l, struct lru_node *node, size_t stride, uint32_t *heap);

/* A block became a leaf, with the time that its node has; its link is LRU_NONE. */
void lru_insert(struct lru *l, uint32_t block);

/*
 * A block is no leaf any more, or goes: its link is LRU_NONE then. Not being in the heap is fine,
 * and changes nothing.
 */
void lru_remove(struct lru *l, uint32_t block);

/*
 * Instead of a leaf that goes, the block that is a leaf by that, whose link is LRU_NONE. Its time
 * is most often that of the one that goes, so that it need not move.
 */
void lru_replace(struct lru *l, uint32_t block, uint32_t with);

/* A use: the node's time becomes used when that is later, and its place follows if it is a leaf. */
void lru_touch(struct lru *l, uint32_t block, uint64_t used);

/* Sets the node's time, to an earlier one too; its place follows if it is a leaf. */
void lru_set(struct lru *l, uint32_t block, uint64_t used);

/* The leaf that was used longest ago, LRU_NONE when there is none. It stays in. */
uint32_t lru_oldest(const struct lru *l);

#endif
