/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon for the tests: a tree of keys that share prefixes, of which it publishes, evicts and
 * dooms parts at random, over a region (tests/shm/region.h).
 *
 * A node is a key; its parent is the node before it in its chains, and has a lower number. A batch
 * in order of falling numbers is therefore deepest first.
 */
#ifndef KVP_TESTS_SHM_TREE_H
#define KVP_TESTS_SHM_TREE_H

#include "tests/shm/random.h"
#include "tests/shm/region.h"

#define TREE_NODES 24u
#define TREE_DEPTH 8u /* of the longest chain, at most */
#define TREE_NONE  0xffffffffu

struct tree_node {
	struct block_key key;
	uint32_t parent;
	uint32_t depth;
};

struct tree {
	struct region *r;
	struct random rnd;
	struct tree_node node[TREE_NODES];
	/* The descriptor that holds it RESERVED or COMMITTED, or DESC_NONE. */
	uint32_t desc[TREE_NODES];
	/* What waits for its readers, deepest first, and for its writers. */
	uint32_t doomed[4 * TREE_NODES], n_doomed;
	uint32_t quarantine[4 * TREE_NODES], n_quarantine;
};

/* The shape and the keys follow from the seed. */
void tree_init(struct tree *t, struct region *r, uint64_t seed);

/* The keys from the start of the chain to the node; returns how many. */
uint32_t tree_chain(const struct tree *t, uint32_t node, struct block_key *keys);

/* One operation of the daemon, chosen at random. */
void tree_step(struct tree *t);

/* By name: the whole chain up to a node; the subtree of a node; what is doomed. */
void tree_publish(struct tree *t, uint32_t node);
void tree_evict(struct tree *t, uint32_t node);
void tree_doom(struct tree *t, uint32_t node);
void tree_settle(struct tree *t);

#endif
