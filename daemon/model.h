/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool from within: what pool.c puts together and the files of the model share. Nobody else
 * includes this.
 *
 * 	keymap		key -> descriptor, what is RESERVED
 * 	ghost		keys that went, and why
 * 	block		trees, chains, numbers, counts
 * 	extent		granules, extents, slots
 * 	namespace	the table of namespaces
 * 	owner		who is charged for what; quarantine
 * 	reserve		reserve, commit, abort, void
 * 	unnamed		reservations without a key, named at commit
 * 	wait		single flight
 * 	room		where a reservation's slots come from
 * 	evictor		batches of leaves, by LRU
 * 	gather		an extent's blocks and what is below them
 * 	reclaim		extents out of colder namespaces
 * 	shrink		extents out of a pool that got smaller
 * 	doom		flush, bad bytes
 * 	pin		operators' pins
 * 	hint		what clients know of the future
 * 	stats		numbers for people
 */
#ifndef KVP_DAEMON_MODEL_H
#define KVP_DAEMON_MODEL_H

#include "daemon/block.h"
#include "daemon/extent.h"
#include "daemon/ghost.h"
#include "daemon/keymap.h"
#include "daemon/namespace.h"
#include "daemon/owner.h"
#include "daemon/pin.h"
#include "shm/index.h"

/* A block whose checksum the shell computes. */
struct verify_pin {
	uint32_t desc;
	uint64_t gen;
};

struct pool {
	struct pool_config cfg;
	const struct pool_ops *ops;
	void *ctx;

	int control_fd; /* read-only */
	int memory_fd;
	void *region;
	uint64_t region_bytes;
	struct control control;
	struct index_writer index;

	/* By number of the descriptor; touched only as far as numbers were ever used. */
	struct block *block;
	uint32_t free_block;  /* chain of numbers that were used before, last freed first */
	uint32_t fresh_block; /* numbers from here on never were */
	uint32_t n_blocks;    /* numbers in use */
	uint32_t held;        /* what room is made for goes below it: no leaf meanwhile */

	struct keymap keymap;
	struct ghost_ring ghost;
	struct extent_map extents;
	struct namespace *namespaces; /* cfg.max_namespaces */
	uint32_t namespaces_end;      /* none from here on was ever open */
	struct owner_table owners;
	struct pool_chain orphans;    /* QUARANTINE, owner gone, by the time when it ends */
	uint64_t next_time_out;       /* no reservation times out before */
	struct list waiters;
	int woken;                    /* a block stopped being RESERVED since the last pool_wake */

	struct pinset pins;           /* the snapshot at hand */
	uint32_t *batch;              /* RECLAIM_BLOCKS: blocks on their way out */
	struct pool_chain doomed;     /* DOOMED blocks, each before its parent; after only */
	uint32_t n_doomed;
	uint32_t flushes;             /* the number of the last flush; never 0 */
	uint64_t doom_again;          /* when to look at them again */
	uint64_t shrink_again;        /* nothing above the limit could go: not before then */
	struct verify_pin verify[POOL_VERIFY_MAX];
	uint32_t n_verify;
	struct pin_table pin;

	uint64_t bytes[DESC_STATE_MAX + 1]; /* by state, as namespace.n */
	uint64_t unnamed_bytes;             /* part of those RESERVED */
	struct pool_stats count;            /* the fields that count since the start */

	/* POOL_FLUSH_STEP and RECLAIM_BLOCKS; the tests make them small. */
	uint32_t flush_step, reclaim_blocks;
};

static inline uint32_t pool_free_blocks(const struct pool *p)
{
	return p->cfg.max_blocks - p->n_blocks;
}

/* How long ago something was used; callers' clocks may be read in another order than they come. */
static inline uint64_t pool_since(uint64_t used, uint64_t now)
{
	return now > used ? now - used : 0;
}

/*
 * Brings nearer what finding, adding or removing this key will touch. Those two lines are where all
 * time goes: they lie anywhere in a table that no cache holds. For many keys in a row, so that
 * their loads are on their way together.
 */
static inline void pool_near_key(const struct pool *p, const struct block_key *key)
{
	struct index_place place = index_place(&p->control, key);

	touch_line(&p->control.index[place.bucket[0]].entry[0]);
	touch_line(&p->control.index[place.bucket[1]].entry[0]);
}

/* Takes a new snapshot of all pins, the pool's own included, into p->pins. */
void pool_scan_pins(struct pool *p);

/* The same without operators' pins: what somebody reads. */
void pool_scan_readers(struct pool *p);

#endif
