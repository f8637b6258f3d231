/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool for the tests of the model: the real one, with a shell that records what it is asked, and
 * session regions in plain memory. Failures of what every test needs abort the test.
 *
 * fixture_audit() looks at all that the model keeps and computes it again from nothing but the
 * descriptors; it also runs the checker over the control region.
 */
#ifndef KVP_TESTS_POOL_FIXTURE_H
#define KVP_TESTS_POOL_FIXTURE_H

#include "base/clock.h"
#include "daemon/model.h"
#include "shm/session.h"

#define FIXTURE_SESSIONS 4u
#define FIXTURE_HAZARDS  64u
#define FIXTURE_RANGES   256u
#define FIXTURE_RUN      2048u /* keys of the longest run */

struct fixture_range {
	uint64_t offset, bytes;
};

struct fixture {
	struct pool *p;
	uint64_t now;
	struct session_map session[FIXTURE_SESSIONS];
	void *session_memory[FIXTURE_SESSIONS];

	/* What the pool asked for. */
	uint64_t populated_bytes, dropped_bytes;
	struct fixture_range punch[FIXTURE_RANGES]; /* not done yet */
	uint32_t n_punch, n_punched;
	uint32_t scans;
	struct pool_waiter *woken; /* the last one */
	uint32_t n_woken, woken_present;
	struct pool_pin pin_ended; /* the last one */
	enum pool_pin_end pin_ended_why;
	uint32_t n_pins_ended;
	void (*on_scan)(struct fixture *f); /* called in each scan of the pins, before it */

	/* Of the last reservation. */
	uint8_t verdict[FIXTURE_RUN];
	struct pool_grant grant[FIXTURE_RUN];
	uint32_t full;
};

/*
 * 64 granules of 64 KiB, 4096 descriptors, 4 namespaces, time-out 30 s, quarantine 1 s, no limit
 * for an owner.
 */
extern const struct pool_config fixture_config;

#define FIXTURE_GRANULE KIB(64)

void fixture_init(struct fixture *f, const struct pool_config *cfg);
void fixture_fini(struct fixture *f);

/* Opens and holds the namespace of that model, salt and size of block; of 16 tokens. */
uint32_t fixture_ns(struct fixture *f, const char *model, uint8_t salt, uint64_t block_bytes);

/* The descriptor's bytes (NSDESC_MAX_BYTES) and values. Returns how many bytes. */
size_t fixture_desc(const char *model, uint8_t salt, uint64_t block_bytes, uint8_t *out,
		    struct nsdesc_values *ret);

/* The keys of n blocks of chain number seed. */
void fixture_keys(uint64_t seed, uint32_t n, struct block_key *keys);

/* pool_reserve into f->verdict, f->grant and f->full. Returns the number of grants. */
uint32_t fixture_reserve(struct fixture *f, struct pool_owner *o, uint32_t ns,
			 const struct block_key *parent, const struct block_key *keys, uint32_t n);

/* Commits the first n grants of the last reservation. */
void fixture_commit(struct fixture *f, struct pool_owner *o, uint32_t n);

/* Reserves and commits all n keys as one chain, which must work. */
void fixture_publish(struct fixture *f, struct pool_owner *o, uint32_t ns,
		     const struct block_key *keys, uint32_t n);

/* The same for chain number seed. */
void fixture_chain(struct fixture *f, struct pool_owner *o, uint32_t ns, uint64_t seed, uint32_t n);

/* How many blocks of chain number seed are cached. */
uint32_t fixture_cached(const struct fixture *f, uint32_t ns, uint64_t seed, uint32_t n);

/* The descriptor under a key, DESC_NONE when it is not there. */
uint32_t fixture_find(const struct fixture *f, const struct block_key *key);

/* Puts a hazard word into a session's region, and takes it out. */
void fixture_pin(struct fixture *f, uint32_t session, uint32_t hazard, uint32_t desc);
void fixture_unpin(struct fixture *f, uint32_t session, uint32_t hazard);

/* Tells the pool that all punches are done. */
void fixture_punched(struct fixture *f);

/* Calls pool_tick until it wants nothing more at this time. Returns when it wants to be called. */
uint64_t fixture_tick(struct fixture *f);

/* A time later than any before. */
void fixture_pass(struct fixture *f, uint64_t ns);

struct pool_stats fixture_stats(struct fixture *f);

/* Aborts the test, in words, when anything in the pool is not as it must be. */
void fixture_audit(struct fixture *f);

#endif
