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

#include <stdint.h>

#define LRU_NONE 0xffffffffu

/* One for each block, by number, in an array of the caller. */
struct lru_node {
	uint64_t used;  /* time of last use; any monotone clock */
	uint32_t place; /* in the heap, LRU_NONE when it is not in it */
};

struct lru {
	struct lru_node *node;
	uint32_t *heap; /* room for as many as may be leaves at once */
	uint32_t count;
};

void lru_init(struct lru *l, struct lru_node *node, uint32_t *heap);

/* A block became a leaf, with the time that its node has; it must not be in the heap. */
void lru_insert(struct lru *l, uint32_t block);

/* A block is no leaf any more, or goes. Not being in the heap is fine. */
void lru_remove(struct lru *l, uint32_t block);

/* A use: the node's time becomes used when that is later, and its place follows if it is a leaf. */
void lru_touch(struct lru *l, uint32_t block, uint64_t used);

/* Sets the node's time, to an earlier one too; its place follows if it is a leaf. */
void lru_set(struct lru *l, uint32_t block, uint64_t used);

/* The leaf that was used longest ago, LRU_NONE when there is none. It stays in. */
uint32_t lru_oldest(const struct lru *l);

#endif
