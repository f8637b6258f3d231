/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of tests/shm/schedule.c, and the reference model that their answers are held against.
 */
#ifndef KVP_TESTS_SHM_SCHEDULE_READER_H
#define KVP_TESTS_SHM_SCHEDULE_READER_H

#include "tests/shm/sim.h"
#include "tests/shm/tree.h"

struct world;

struct reader {
	struct world *w;
	unsigned int number;
	/* What it holds: blocks of a validated pin, until it gives them back. */
	uint32_t held;
	uint32_t desc[TREE_DEPTH], slot[TREE_DEPTH];
	uint64_t gen[TREE_DEPTH];
	uint64_t lookups, hits, raced, extended, other_prefix;
};

/* What is known of a node without looking into shared memory. */
enum presence { ABSENT, PRESENT, UNSURE };

struct world {
	struct region r;
	struct tree t;
	struct reader reader[SIM_ACTORS];
	uint64_t touch_place[SIM_ACTORS], touch_lost[SIM_ACTORS];
	int daemon_busy;
	/* The reference: presence, and since when. */
	enum presence presence[TREE_NODES];
	uint64_t since[TREE_NODES];
};

void reference_init(struct world *w);

/* An operation begins that may change these nodes. */
void reference_unsure(struct world *w, const uint8_t in[TREE_NODES]);

/* The daemon is between two operations: what it knows is so. */
void reference_refresh(struct world *w);

void reader_main(void *arg);

/* Whatever readers hold is as it was when they pinned it. */
void leases_check(const struct world *w, unsigned int readers);

/* Takes the touch records of a reader; each must be whole. */
void take_touches(struct world *w, unsigned int reader);

#endif
