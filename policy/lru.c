/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/lru.h"

void lru_init(struct lru *l, struct lru_node *node, uint32_t *heap)
{
	*l = (struct lru){ .node = node, .heap = heap };
}

static void put(struct lru *l, uint32_t place, uint32_t block)
{
	l->heap[place] = block;
	l->node[block].place = place;
}

/* Moves block from place towards the root, past everything that was used later. */
static void sift_up(struct lru *l, uint32_t place, uint32_t block)
{
	uint64_t used = l->node[block].used;

	while (place) {
		uint32_t above = (place - 1) / 2;

		if (l->node[l->heap[above]].used <= used)
			break;
		put(l, place, l->heap[above]);
		place = above;
	}
	put(l, place, block);
}

/* Moves block from place away from the root, past everything that was used earlier. */
static void sift_down(struct lru *l, uint32_t place, uint32_t block)
{
	uint64_t used = l->node[block].used;
	uint32_t below;

	while ((below = 2 * place + 1) < l->count) {
		if (below + 1 < l->count &&
		    l->node[l->heap[below + 1]].used < l->node[l->heap[below]].used)
			below++;
		if (l->node[l->heap[below]].used >= used)
			break;
		put(l, place, l->heap[below]);
		place = below;
	}
	put(l, place, block);
}

/* block belongs at place, or above or below it. */
static void sift(struct lru *l, uint32_t place, uint32_t block)
{
	if (place && l->node[l->heap[(place - 1) / 2]].used > l->node[block].used)
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
	uint32_t place = l->node[block].place, last;

	if (place == LRU_NONE)
		return;
	l->node[block].place = LRU_NONE;
	last = l->heap[--l->count];
	if (last == block)
		return;
	/* The last one fills the hole. */
	sift(l, place, last);
}

void lru_touch(struct lru *l, uint32_t block, uint64_t used)
{
	struct lru_node *n = &l->node[block];

	if (used <= n->used)
		return;
	n->used = used;
	if (n->place != LRU_NONE)
		sift_down(l, n->place, block);
}

void lru_set(struct lru *l, uint32_t block, uint64_t used)
{
	struct lru_node *n = &l->node[block];

	n->used = used;
	if (n->place != LRU_NONE)
		sift(l, n->place, block);
}

uint32_t lru_oldest(const struct lru *l)
{
	return l->count ? l->heap[0] : LRU_NONE;
}
