/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool for the tests of shm/: a control region, session regions and block memory in plain memory,
 * and as much of a daemon's bookkeeping as it takes to publish, evict and doom blocks.
 *
 * The shm functions are the ones under test; what is here only calls them in the order that their
 * headers ask for. A block is one SLOT_UNIT of bytes and carries its key, so that a reader sees
 * whose bytes it has. Failures abort the test: nothing here returns an error.
 */
#ifndef KVP_TESTS_SHM_REGION_H
#define KVP_TESTS_SHM_REGION_H

#include "shm/evict.h"
#include "shm/lookup.h"
#include "shm/session.h"

#define REGION_BLOCK_BYTES   SLOT_UNIT
#define REGION_BLOCK_TOKENS  16u
#define REGION_GRANULE_SHIFT 16u
#define REGION_GRANULE_SLOTS (1u << (REGION_GRANULE_SHIFT - SLOT_SHIFT))
#define REGION_HAZARDS       8u
#define REGION_TOUCHES       16u

/* The bytes of blocks are plain memory, but for a test that simulates all memory (hooks.h). */
#ifndef REGION_LOAD
#define REGION_LOAD(p)     (*(p))
#define REGION_STORE(p, v) (*(p) = (v))
/* What the daemon could as well know from memory of its own. */
#define REGION_PEEK(p)     load_relaxed(p)
#endif

struct region_config {
	uint32_t max_blocks;
	uint32_t namespaces; /* each has one extent; 0: 1 */
	uint32_t granules;   /* of each extent; 0: enough for max_blocks */
	/* More of both, which nobody has. */
	uint32_t spare_namespaces, spare_granules;
	uint32_t sessions;
	uint32_t touches;  /* records of each touch ring; 0: REGION_TOUCHES */
	uint32_t promised; /* places of each bucket that nobody can have, to make the index full */
	/* Regions that two processes share are made of shared mappings. */
	int shared;
};

struct region_slots {
	uint32_t *free, n;
};

struct region {
	struct region_config cfg;
	void *base;
	uint64_t bytes;
	struct control c;
	uint8_t *pool;
	uint64_t pool_bytes;
	struct session_map *session;
	void **session_base;
	uint64_t session_bytes;

	/* The daemon's own. */
	struct index_writer index;
	struct pinset pins;
	uint32_t *free_desc, n_free_desc;
	struct region_slots *slots; /* of each namespace */
	uint32_t *children;         /* of each descriptor: those that hold it */
	/* of each RESERVED descriptor: the place that it was promised */
	uint64_t *bucket;
};

void region_init(struct region *r, const struct region_config *cfg);
void region_fini(struct region *r);

/* The bookkeeping anew, from what the control region says. */
void region_adopt(struct region *r);

/*
 * The keys of n blocks of a prompt whose token at position i is token + i, in the namespace of
 * seed. As doc/keys.md has it: each key is the SHA-256 of the one before it and the tokens.
 */
void region_keys(uint64_t seed, uint32_t token, uint32_t n, struct block_key *keys);

/*
 * One block, by steps. region_reserve takes a descriptor, a slot and an index place; parent is
 * DESC_NONE or COMMITTED or RESERVED. Returns the descriptor, or DESC_NONE when something has run
 * out. region_commit fills the bytes, commits and lists it.
 */
uint32_t region_reserve(struct region *r, const struct block_key *key, uint32_t parent,
			uint32_t ns);
void region_commit(struct region *r, uint32_t d);
void region_abort(struct region *r, uint32_t d);
void region_quarantine(struct region *r, uint32_t d);
void region_end_quarantine(struct region *r, uint32_t d);

/* Makes all of a chain resident, reusing what is; descs gets its descriptors. */
void region_publish(struct region *r, const struct block_key *keys, uint32_t n, uint32_t *descs);

/* All hazard words of all sessions, as one snapshot in r->pins. */
void region_snapshot(struct region *r);

/* A whole eviction of a batch; returns how many were freed. */
uint32_t region_evict(struct region *r, const uint32_t *batch, uint32_t n);

/*
 * The bookkeeping for members of a batch that are FREE now, deepest first; region_evict and
 * region_doom_settle do it themselves.
 */
void region_forget(struct region *r, const uint32_t *batch, uint32_t n);

/* The second half of a doom, with a new snapshot; returns how many stay. */
uint32_t region_doom_settle(struct region *r, uint32_t *batch, uint32_t n);

/* batch = a chain of descs, deepest first. */
void region_deepest_first(const uint32_t *descs, uint32_t n, uint32_t *batch);

/* The bytes of a block, and whether they are those of a key. */
uint64_t *region_bytes(const struct region *r, uint32_t slot);
int region_bytes_are(const struct region *r, uint32_t slot, const struct block_key *key);

enum desc_state region_state(const struct region *r, uint32_t d);

#endif
