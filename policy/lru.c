/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/lru.h"

void lru_init(struct lru *l, struct lru_node *node, size_t stride, uint32_t *heap)
{
	*l = (struct lru){ .node = (char *)node, .stride = stride, .heap = heap };
}

static struct lru_node *node_of(const struct lru *l, uint32_t block)
{
	return (void *)(l->node + block * l->stride);
}

static void put(struct lru *l, uint32_t place, uint32_t block)
{
	l->heap[place] = block;
	node_of(l, block)->link = LRU_HEAP | place;
}

/* Moves block from place towards the root, past everything that was used later. */
static void sift_up(struct lru *l, uint32_t place, uint32_t block)
{
	uint64_t used = node_of(l, block)->used;

	while (place) {
		uint32_t above = (place - 1) / 2;

		if (node_of(l, l->heap[above])->used <= used)
			break;
		put(l, place, l->heap[above]);
		place = above;
	}
	put(l, place, block);
}

/* Moves block from place away from the root, past everything that was used earlier. */
static void sift_down(struct lru *l, uint32_t place, uint32_t block)
{
	uint64_t used = node_of(l, block)->used;
	uint32_t below;

	while ((below = 2 * place + 1) < l->count) {
		uint64_t least = node_of(l, l->heap[below])->used;

		if (below + 1 < l->count) {
			uint64_t other = node_of(l, l->heap[below + 1])->used;

			below += other < least;
			least = other < least ? other : least;
		}
		if (least >= used)
			break;
		put(l, place, l->heap[below]);
		place = below;
	}
	put(l, place, block);
}

/* block belongs at place, or above or below it. */
static void sift(struct lru *l, uint32_t place, uint32_t block)
{
	if (place && node_of(l, l->heap[(place - 1) / 2])->used > node_of(l, block)->used)
		sift_up(l, place, block);
	else
		sift_down(l, place, block);
}

void lru_insert(struct lru *l, uint32_t block)
{
	sift_up(l, l->count++, block);
}

void lru_remove(struct lru *l, uint32_t block)
{
	struct lru_node *n = node_of(l, block);
	uint32_t place, last;

	if (!lru_has(n))
		return;
	place = n->link & ~LRU_HEAP;
	n->link = LRU_NONE;
	last = l->heap[--l->count];
	if (last == block)
		return;
	/* The last one fills the hole. */
	sift(l, place, last);
}

void lru_replace(struct lru *l, uint32_t block, uint32_t with)
{
	struct lru_node *n = node_of(l, block);
	uint32_t place = n->link & ~LRU_HEAP;

	n->link = LRU_NONE;
	sift(l, place, with);
}

void lru_touch(struct lru *l, uint32_t block, uint64_t used)
{
	struct lru_node *n = node_of(l, block);

	if (used <= n->used)
		return;
	n->used = used;
	if (lru_has(n))
		sift_down(l, n->link & ~LRU_HEAP, block);
}

void lru_set(struct lru *l, uint32_t block, uint64_t used)
{
	struct lru_node *n = node_of(l, block);

	n->used = used;
	if (lru_has(n))
		sift(l, n->link & ~LRU_HEAP, block);
}

uint32_t lru_oldest(const struct lru *l)
{
	return l->count ? l->heap[0] : LRU_NONE;
}
