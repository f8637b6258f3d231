/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of one domain: control region, host memory, and all that the daemon knows of blocks.
 *
 * This is the model: it owns every state change of a block, and does no network I/O, no logging and
 * no waiting. The shell around it (session.c, handler_*.c, worker.c) calls it from the one event
 * loop. Time comes in as an argument (base/clock.h).
 *
 * Who holds what: a block belongs to the pool; a reservation charges its block to a struct
 * pool_owner, which lies inside the session; a waiter lies inside the request that waits. Freeing
 * the holder gives everything back.
 */
#ifndef KVP_DAEMON_POOL_H
#define KVP_DAEMON_POOL_H

#include "base/list.h"
#include "proto/nsdesc.h"
#include "proto/ops.h"
#include "shm/control.h"
#include "shm/pinset.h"

struct pool;

/*
 * What the pool asks of its shell. None of these may call back into the pool.
 */
struct pool_ops {
	/*
	 * Adds the hazard words of every session, ended ones that may still read included, to pins.
	 */
	void (*scan_pins)(void *ctx, struct pinset *pins);
	/*
	 * An extent was handed out: populate bytes of the pool's memory from offset on, in the
	 * background, in steps. Nothing waits for it; slots of it may be used meanwhile.
	 */
	void (*populate)(void *ctx, uint64_t offset, uint64_t bytes);
	/*
	 * An extent was taken back: punch that range in the background and call pool_punched() when
	 * it is done. It is not handed out before.
	 */
	void (*punch)(void *ctx, uint64_t offset, uint64_t bytes);
	/*
	 * Ends a wait: present is how many keys of its run are committed, from the first on. The
	 * waiter is unlinked by now.
	 */
	void (*wake)(void *ctx, struct pool_waiter *w, uint32_t present);
};

struct pool_config {
	/* how far extents may grow, whole granules; the memfd has this size */
	uint64_t pool_bytes;
	uint32_t max_blocks;
	uint32_t max_namespaces;
	uint32_t granule_shift;
	/* a reservation that is not committed for this long goes to quarantine */
	uint64_t reservation_ns;
	uint64_t quarantine_ns;      /* grace after its writer is surely gone */
	/* blocks that one owner may have reserved at once; 0: no limit */
	uint32_t owner_blocks;
};

/*
 * Who reserves: part of a session. pool_owner_init before the first use; all fields belong to the
 * pool.
 */
struct pool_owner {
	uint64_t session;
	struct list reserved;   /* its RESERVED blocks */
	struct list quarantine; /* its QUARANTINE blocks */
	uint32_t n_reserved, n_quarantine;
	uint64_t reserved_bytes;
	uint64_t cached_blocks, cached_bytes; /* committed by it and still there */
	int gone;
};

struct pool_waiter {
	struct list link; /* in the pool's list of waiters; empty list when it waits for nothing */
	uint32_t ns;
	uint32_t n_keys;
	struct block_key *keys; /* owned by the caller, valid until it is woken or cancelled */
};

/* Makes the memory and an empty pool. -EINVAL, -ENOMEM, or what memfd_create said. */
int pool_new(const struct pool_config *cfg, const struct pool_ops *ops, void *ctx, struct pool **ret);
struct pool *pool_free(struct pool *p);

/* The descriptors that clients get: control read-only, pool read-write. They stay the pool's. */
int pool_control_fd(const struct pool *p);
int pool_memory_fd(const struct pool *p);
uint64_t pool_control_bytes(const struct pool *p);
uint64_t pool_memory_bytes(const struct pool *p);
const struct control *pool_control(const struct pool *p);
uint64_t pool_epoch(const struct pool *p);

/* Marks the control region RETIRED: readers miss from here on. */
void pool_retire(struct pool *p);

/*
 * Opens the namespace of a checked descriptor. Returns 0 and its number; *ret_created tells whether
 * it is new, and *near is the namespace of the same model that differs in the fewest fields, or
 * NS_NONE. -ENOSPC: max_namespaces, and none of them is empty and unused. -EOPNOTSUPP: group rule
 * other than ALL. -EFBIG: not even four blocks fit the pool.
 */
int pool_ns_open(struct pool *p, const uint8_t *desc, size_t n, const struct nsdesc_values *v, uint64_t now,
		 uint32_t *ret_ns, int *ret_created, uint32_t *near);

/* The canonical descriptor that a namespace was opened with. */
const uint8_t *pool_ns_desc(const struct pool *p, uint32_t ns, size_t *ret_n);

/* Sessions that have a namespace open keep it in the table, with or without blocks. */
void pool_ns_hold(struct pool *p, uint32_t ns);
void pool_ns_drop(struct pool *p, uint32_t ns);

void pool_owner_init(struct pool_owner *o, uint64_t session);

struct pool_grant {
	uint32_t desc, slot;
	uint64_t gen;
};

/*
 * Reserves a run of n keys below parent (NULL: start of a chain), as DESIGN.md section 5 says: per
 * key GRANTED, PRESENT, BUSY, FULL or NO_PARENT; after the first BUSY or FULL every deeper key gets
 * that answer too, unless it is PRESENT. grants[] gets one for each GRANTED key, in order. Evicts
 * and takes extents as it needs to. *ret_full: enum proto_full. Returns the number of grants, or
 * -ENOENT for a number of no namespace.
 */
int pool_reserve(struct pool *p, struct pool_owner *o, uint32_t ns, const struct block_key *parent,
		 const struct block_key *keys, uint32_t n, uint64_t now, uint8_t *verdicts,
		 struct pool_grant *grants, uint32_t *ret_full);

/* COMMITTED, STALE, NOT_OWNER or NO_PARENT. Wakes waiters when pool_wake() runs. */
enum proto_verdict pool_commit(struct pool *p, struct pool_owner *o, uint32_t desc, uint64_t gen,
			       uint32_t crc, uint64_t now);

/*
 * FREED, STALE or NOT_OWNER. A reserved parent takes its reserved descendants of the same owner
 * along.
 */
enum proto_verdict pool_abort(struct pool *p, struct pool_owner *o, uint32_t desc, uint64_t gen);

/* How many of the keys are committed from the first on. */
uint32_t pool_present(const struct pool *p, uint32_t ns, const struct block_key *keys, uint32_t n);

/*
 * Waits while a key of the run is RESERVED. Returns 1 and links w when it has to, 0 and
 * *ret_present when there is nothing to wait for. pool_wait_cancel takes a waiter back (time-out,
 * end of its session); twice is harmless.
 */
int pool_wait(struct pool *p, struct pool_waiter *w, uint32_t *ret_present);
void pool_wait_cancel(struct pool_waiter *w);

/*
 * Ends the waits that have nothing to wait for any more. Called by the shell at the end of each
 * round that changed blocks.
 */
void pool_wake(struct pool *p);

/*
 * The end of a session, in two steps (both idempotent). end: its requests are over: reservations go
 * to quarantine. gone: its process is surely gone: quarantine of its blocks ends quarantine_ns from
 * now. After gone the owner may be freed: what is left in quarantine belongs to the pool.
 */
void pool_owner_end(struct pool *p, struct pool_owner *o, uint64_t now);
void pool_owner_gone(struct pool *p, struct pool_owner *o, uint64_t now);

/*
 * A use of the prefix that ends with desc, from a touch record: desc and ns are not trusted. tokens
 * of it count as asked and hit.
 */
void pool_touch(struct pool *p, uint32_t ns, uint32_t desc, uint32_t asked, uint32_t hit, uint64_t now);

struct pool_flushed {
	uint64_t freed_blocks, freed_bytes, kept_blocks, voided_blocks;
};

/* Drops all blocks of a namespace by subtree. dry_run: only counts. */
void pool_flush(struct pool *p, uint32_t ns, int dry_run, uint64_t now, struct pool_flushed *ret);

/*
 * A client read another checksum. 1: the daemon reads the same, and the block and its subtree are
 * doomed. 0: it does not agree, or the block is gone. (It reads at most 256 MiB in here: the shell
 * runs pool_verify in its worker and calls pool_doom.)
 */
int pool_pin_for_verify(struct pool *p, uint32_t desc, uint64_t gen, uint64_t *ret_offset,
			uint64_t *ret_bytes, uint32_t *ret_crc);
int pool_verify_done(struct pool *p, uint32_t desc, uint64_t gen, int wrong, uint64_t now);

/* The range given to ops->punch is a hole now. */
void pool_punched(struct pool *p, uint64_t offset, uint64_t bytes);

/*
 * Time passes: ends quarantines, times reservations out, frees doomed blocks, evicts below the
 * low-water mark, a bounded amount of work a call. Returns when it wants to be called again
 * (absolute, UINT64_MAX: when something changes), now when it has more.
 */
uint64_t pool_tick(struct pool *p, uint64_t now);

/*
 * Sums over blocks. The byte fields add up: cached + writing + quarantined + doomed + free =
 * handed.
 */
struct pool_stats {
	uint64_t pool_bytes, handed_bytes, cached_bytes, leased_bytes, writing_bytes, quarantined_bytes,
		doomed_bytes, free_bytes;
	uint64_t blocks, leased_blocks;
	uint32_t max_blocks, namespaces;
	uint64_t published, duplicates, busy, full, evicted, flushed, extents_taken, quarantined,
		reservations_timed_out, dooms;
};

void pool_get_stats(struct pool *p, struct pool_stats *ret);

struct pool_ns_stats {
	const char *model;
	uint8_t seed[KEY_BYTES];
	uint32_t block_tokens;
	uint64_t block_bytes;
	uint64_t blocks, leased_blocks, writing_blocks, extents, extent_bytes;
	uint64_t lookups, asked_tokens, hit_tokens;
	uint64_t used; /* when */
};

/* Returns 0, or -ENOENT when there is no such namespace. */
int pool_ns_get_stats(struct pool *p, uint32_t ns, struct pool_ns_stats *ret);

#endif
