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

/* What the daemon does next, chosen at random. */
enum tree_kind {
	TREE_PUBLISH, /* the whole chain up to the node */
	TREE_RESERVE,
	TREE_COMMIT,
	TREE_ABORT,
	TREE_VOID,    /* the reservations of a subtree */
	TREE_EVICT,   /* a subtree */
	TREE_DOOM,    /* a subtree */
	TREE_SETTLE,  /* what is doomed or in quarantine */
};

struct tree_op {
	enum tree_kind kind;
	uint32_t node;
};

struct tree_op tree_pick(struct tree *t);

/* The nodes that readers may find before and not after it, or the other way around. */
void tree_affected(const struct tree *t, const struct tree_op *op, uint8_t in[TREE_NODES]);
void tree_do(struct tree *t, const struct tree_op *op);

/* The node is there for readers, as far as the daemon knows. */
int tree_present(const struct tree *t, uint32_t node);

/* Adds to what is doomed; deeper blocks stay in front. */
void tree_add_doomed(struct tree *t, uint32_t d);

#endif
