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
#include "proto/reason.h"
#include "shm/control.h"
#include "shm/pinset.h"

struct pool;
struct pool_waiter;
struct pool_pin;

/* Why an operator's pin ended without being taken back. */
enum pool_pin_end {
	PIN_END_TTL,     /* its time was over */
	PIN_END_BUDGET,  /* the budget got smaller */
	PIN_END_FLUSHED, /* an operator dropped its blocks, or their bytes were wrong */
};

/*
 * What the pool asks of its shell. None of these may call back into the pool, and none may be NULL.
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
	 * An extent was given back: punch that range in the background and call pool_punched() with
	 * the same numbers when it is done. It is not handed out before. (An extent that moves from
	 * one namespace to another is not punched: its pages are populated, and cold ones cost nine
	 * times as much.)
	 */
	void (*punch)(void *ctx, uint64_t offset, uint64_t bytes);
	/* The same for memory of a fixed pool that got smaller: it is not handed out any more. */
	void (*drop)(void *ctx, uint64_t offset, uint64_t bytes);
	/*
	 * Ends a wait: present is how many keys of its run are committed, from the first on. The
	 * waiter is unlinked by now.
	 */
	void (*wake)(void *ctx, struct pool_waiter *w, uint32_t present);
	/* An operator's pin ended. It is gone after this call. */
	void (*pin_ended)(void *ctx, const struct pool_pin *pin, enum pool_pin_end why);
};

struct pool_config {
	uint64_t pool_bytes;         /* how much memory extents may have at first, whole granules */
	/*
	 * How far pool_resize may go: the size of the memory, whole granules. 0: pool_bytes.
	 */
	uint64_t max_bytes;
	/*
	 * Memory that was made by the shell, of max_bytes and sealed; it is the pool's when
	 * pool_new succeeds. 0: the pool makes it.
	 */
	int memory_fd;
	/*
	 * All of it is populated at first, and must stay so (huge pages that somebody else took
	 * meanwhile can't be had back): what a resize gives back is gone, and a punch only clears.
	 */
	int fixed;
	uint32_t max_blocks; /* at most POOL_BLOCKS_MAX */
	uint32_t max_namespaces;
	uint32_t granule_shift;
	/* a reservation that is not committed for this long goes to quarantine */
	uint64_t reservation_ns;
	uint64_t quarantine_ns; /* grace after its writer is surely gone */
	/*
	 * Bytes that one owner may have at once in blocks with a key that are RESERVED or in
	 * QUARANTINE, and in unnamed ones; 0: no limit.
	 */
	uint64_t owner_reserved_bytes, owner_unnamed_bytes;
};

#define POOL_BLOCKS_MAX (1u << 30)

/*
 * How far a pool with that granule (shm/granule.h) may grow on a machine with that much memory: all
 * of it, in at most POOL_GRANULES_MAX granules, and not less than it begins with.
 */
#define POOL_GRANULES_MAX (1u << 20)
uint64_t pool_max_bytes(uint64_t pool_bytes, uint32_t granule_shift, uint64_t memory);

/* Blocks in a row, linked by their numbers. */
struct pool_chain {
	uint32_t first, last;
};

/*
 * Who reserves: part of a session. pool_owner_init before the first use; all fields belong to the
 * pool, others may read them. It must stay where it is until pool_owner_gone.
 */
struct pool_owner {
	/* in the pool's table of owners, from its first reservation on */
	struct list link;
	uint64_t session;             /* not 0, and no two owners of a pool have the same */
	struct pool_chain reserved;   /* its RESERVED blocks, oldest first */
	struct pool_chain quarantine; /* its QUARANTINE blocks */
	struct pool_chain unnamed;    /* its RESERVED blocks without a key: not in reserved */
	uint32_t n_reserved, n_quarantine, n_unnamed;
	uint64_t reserved_bytes;      /* of reserved and quarantine */
	uint64_t unnamed_bytes;
	uint64_t cached_blocks, cached_bytes; /* committed by it and still there */
	int gone;
};

/* pool_waiter_init before the first use; then set ns, keys and n_keys. */
struct pool_waiter {
	struct list link; /* in the pool's list of waiters; empty list when it waits for nothing */
	uint32_t ns;
	uint32_t n_keys;
	/* owned by the caller, valid until it is woken or cancelled */
	const struct block_key *keys;
	/* the reservation that it waits for; the pool's own */
	uint32_t desc;
	uint64_t gen;
};

void pool_waiter_init(struct pool_waiter *w);

/*
 * Makes the memory and an empty pool. -EINVAL: a number of cfg is out of bounds. -ENOMEM, or what a
 * system call said. pool_free accepts NULL and returns NULL; no owner, waiter or punch is looked at
 * or told.
 */
int pool_new(const struct pool_config *cfg, const struct pool_ops *ops, void *ctx,
	     struct pool **ret);
struct pool *pool_free(struct pool *p);

/* As in struct pool_config, for what is reserved already too. Then pool_tick() is due. */
void pool_set_timeouts(struct pool *p, uint64_t reservation_ns, uint64_t quarantine_ns);

/* The descriptors that clients get: control read-only, pool read-write. They stay the pool's. */
int pool_control_fd(const struct pool *p);
int pool_memory_fd(const struct pool *p);
uint64_t pool_control_bytes(const struct pool *p);
uint64_t pool_memory_bytes(const struct pool *p);
const struct control *pool_control(const struct pool *p);
uint64_t pool_epoch(const struct pool *p);

/*
 * How much memory extents may have. What is above a new limit goes in steps of pool_tick: the
 * extents that were used longest ago, each with all that hangs below its blocks, and none that
 * somebody reads or writes in or below it, which stay until they don't. No extent is handed out
 * until then; reservations go on in those that there are.
 *
 * Returns 0; -EFBIG: beyond pool_most_bytes; -ERANGE: below pool_least_bytes; -ENOMEM. dry_run:
 * only tells what would be.
 */
struct pool_resized {
	uint64_t was_bytes, now_bytes; /* the limit */
	uint64_t handed_bytes;
	/* cached blocks in extents that are to go; more may hang below them */
	uint64_t evict_blocks;
	uint64_t stuck_bytes; /* of the excess: what can't go as long as all is held that is now */
};

int pool_resize(struct pool *p, uint64_t bytes, int dry_run, uint64_t now,
		struct pool_resized *ret);
uint64_t pool_limit_bytes(const struct pool *p);

/* Whether it would be accepted: 0, -EFBIG or -ERANGE. At no cost, unlike a dry run. */
int pool_resize_check(const struct pool *p, uint64_t bytes);

/* The most that it accepts: all of the memory, or of a fixed pool what is not gone. */
uint64_t pool_most_bytes(const struct pool *p);

/*
 * The least that pool_resize accepts: an extent of the namespace in use that needs the largest one,
 * and its number, NS_NONE when there is none.
 */
uint64_t pool_least_bytes(const struct pool *p, uint32_t *ret_ns);

/* How many blocks, of the smallest kind that is open, fit that many bytes. */
uint64_t pool_blocks_in(const struct pool *p, uint64_t bytes);

/* Marks the control region RETIRED: readers miss from here on. */
void pool_retire(struct pool *p);

/*
 * Opens the namespace of a checked descriptor. Returns 0 and its number; *ret_created tells whether
 * it is new, and *ret_near is then the namespace of the same model that differs in the fewest
 * fields, or NS_NONE. -ENOSPC: max_namespaces, and none of them is empty and unused. -EOPNOTSUPP:
 * group rule other than ALL. -EFBIG: not even four blocks fit the pool. -ENOMEM.
 */
int pool_ns_open(struct pool *p, const uint8_t *desc, size_t n, const struct nsdesc_values *v,
		 uint64_t now, uint32_t *ret_ns, int *ret_created, uint32_t *ret_near);

/* The canonical descriptor that a namespace was opened with; NULL for the number of none. */
const uint8_t *pool_ns_desc(const struct pool *p, uint32_t ns, size_t *ret_n);

/* Its model, and its seed (KEY_BYTES), until it is closed; NULL for the number of none. */
const char *pool_ns_model(const struct pool *p, uint32_t ns);
const uint8_t *pool_ns_seed(const struct pool *p, uint32_t ns);

/*
 * How long its blocks may lie unused (0: for ever), and its priority (policy/priority.h). From now
 * on; a namespace that was just opened has no TTL and the default priority.
 */
void pool_ns_set_policy(struct pool *p, uint32_t ns, uint64_t ttl_ns, uint32_t priority);

/*
 * Sessions that have a namespace open keep it in the table, with or without blocks. Hold it before
 * anything else is opened: an empty one that nobody holds makes room for another, and
 * its extents go back.
 */
void pool_ns_hold(struct pool *p, uint32_t ns);
void pool_ns_drop(struct pool *p, uint32_t ns);

void pool_owner_init(struct pool_owner *o, uint64_t session);

struct pool_grant {
	uint32_t desc, slot;
	uint64_t gen;
};

/*
 * Reserves a run of n keys below parent (NULL: start of a chain), checking and reserving in one.
 * Per key, in order:
 *
 *   PRESENT    cached; the next key goes below it
 *   BUSY       RESERVED by somebody, its asker included: two threads of one client must not write
 *              one block, so a key that was granted is granted again only after it was given back.
 *              A key twice in one run is the same.
 *   FULL       no room, and *ret_full says of what. An index place that a block of another
 *              namespace with the same key holds counts as none.
 *   GRANTED    RESERVED for the owner, grants[] has it
 *   NO_PARENT  all keys of the run: the parent is neither COMMITTED nor RESERVED by the same owner
 *
 * After the first BUSY or FULL every deeper key gets that answer too, unless it is PRESENT, which
 * in an honest chain it can't be: what is below a block that is not there is not there.
 *
 * Makes room first, as far as it can: takes extents, evicts what was used longest ago, never the
 * run's own ancestors. Returns the number of grants, or -ENOENT for a number of no namespace, with
 * nothing written.
 */
int pool_reserve(struct pool *p, struct pool_owner *o, uint32_t ns, const struct block_key *parent,
		 const struct block_key *keys, uint32_t n, uint64_t now, uint8_t *verdicts,
		 struct pool_grant *grants, uint32_t *ret_full);

/*
 * Reserves n unnamed blocks for the owner: slots for tokens that do not exist yet. They have no key
 * and no parent until pool_commit_named, do not time out, and are not voided by anything but the
 * end of the session. Room is made as for pool_reserve, and they are laid close together. The first
 * ones are GRANTED, grants[] has them, and the rest FULL, with *ret_full. Returns the number of
 * grants, or -ENOENT for a number of no namespace.
 */
int pool_reserve_unnamed(struct pool *p, struct pool_owner *o, uint32_t ns, uint32_t n,
			 uint64_t now, uint8_t *verdicts, struct pool_grant *grants,
			 uint32_t *ret_full);

/*
 * The bytes of these unnamed blocks are there, and so are their keys: of one chain, below parent
 * (NULL: its start). Per block:
 *
 *   COMMITTED  named and committed, below the last one before it that is COMMITTED or PRESENT
 *   PRESENT    the key is cached already: the next one goes below that block
 *   BUSY       the key is RESERVED by somebody
 *   FULL       no place in the index, or a block of another namespace has the key
 *   NO_PARENT  the block before it is not COMMITTED
 *   STALE, NOT_OWNER  as pool_commit
 *
 * After all but the first one and the last two the block stays the owner's, unnamed. Behind BUSY
 * and FULL every deeper one gets that answer too, unless it is PRESENT. A block that was reserved
 * under just that key may stand among them.
 */
struct pool_names {
	const struct block_key *parent, *keys;
	const uint32_t *desc, *crc;
	const uint64_t *gen;
	uint32_t n;
};

void pool_commit_named(struct pool *p, struct pool_owner *o, const struct pool_names *names,
		       uint64_t now, uint8_t *verdicts);

/*
 * The bytes are there. COMMITTED; NO_PARENT: the block before it is not COMMITTED (parents first),
 * and it stays RESERVED, to be committed later or aborted; STALE: voided, timed out, another gen,
 * or committed before; NOT_OWNER. An unnamed block has no place: NO_PARENT. Waiters are woken by
 * the next pool_wake().
 */
enum proto_verdict pool_commit(struct pool *p, struct pool_owner *o, uint32_t desc, uint64_t gen,
			       uint32_t crc, uint64_t now);

/*
 * The owner says that it no longer writes there: FREED, STALE or NOT_OWNER. A RESERVED block takes
 * its descendants along, which are RESERVED by the same owner. A QUARANTINE block of the owner
 * is free at once.
 */
enum proto_verdict pool_abort(struct pool *p, struct pool_owner *o, uint32_t desc, uint64_t gen);

/* How many of the keys are committed from the first on. */
uint32_t pool_present(const struct pool *p, uint32_t ns, const struct block_key *keys, uint32_t n);

/*
 * Waits while the first key of the run that is not cached is RESERVED: until all are cached, or the
 * chain ends in one that nobody writes. Returns 1 and links w when it has to wait, 0 and
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
 * to quarantine, and their keys can be reserved by others at once. gone: its process is surely
 * gone: quarantine of its blocks ends quarantine_ns from now. After gone (which does end first, if
 * it was not) the owner may be freed: what is left in quarantine belongs to the pool.
 */
void pool_owner_end(struct pool *p, struct pool_owner *o, uint64_t now);
void pool_owner_gone(struct pool *p, struct pool_owner *o, uint64_t now);

/* What owners may hold from here on, as in struct pool_config; what they hold stays theirs. */
void pool_set_owner_limits(struct pool *p, uint64_t reserved_bytes, uint64_t unnamed_bytes);

/* The sum of both. */
uint64_t pool_owner_limit(const struct pool *p);

/* The extents in which it has blocks that are not committed, and their bytes. */
void pool_owner_extents(struct pool *p, const struct pool_owner *o, uint64_t *ret_n,
			uint64_t *ret_bytes);

/*
 * A use of the prefix that ends with desc, from a touch record: desc and ns are not trusted. tokens
 * of it count as asked and hit.
 */
void pool_touch(struct pool *p, uint32_t ns, uint32_t desc, uint32_t asked, uint32_t hit,
		uint64_t now);

/* Why tokens of it were missed: of those that pool_touch counts as asked and not as hit. */
void pool_missed(struct pool *p, uint32_t ns, enum miss_reason why, uint64_t tokens);

/*
 * kept: leased, or above a leased one: unlisted, and freed when the pins are gone; as of the last
 * call, the others are sums. All are of blocks that this flush found listed.
 */
struct pool_flushed {
	uint64_t freed_blocks, freed_bytes, kept_blocks, voided_blocks;
	uint32_t dropped_pins; /* of operators */
};

/*
 * Drops the blocks that a namespace has now, leaves first, and adds to *ret, which its caller
 * zeroes. dry_run: only counts. At most POOL_FLUSH_STEP blocks a call (some 4 ms): returns 1 when
 * there are more. Call it again then, in a later round, for their numbers; pool_tick drops them
 * anyhow. Returns 0 when it is done, -ENOENT for a number of no namespace. While a flush is under
 * way a call goes on with that one.
 */
int pool_flush(struct pool *p, uint32_t ns, int dry_run, uint64_t now, struct pool_flushed *ret);

#define POOL_FLUSH_STEP 8192u

/*
 * A client read another checksum than desc.crc. The shell pins the block for itself, computes the
 * checksum of those bytes in its worker, and tells whether it is wrong: pool_verify_done takes the
 * pin back, and dooms the block and its subtree if so (all of it in this call, at some 0.4 us a
 * block: bad bytes must not be served while it waits for a turn).
 *
 * pin: 0; -ENOENT: no such block any more; -EBUSY: POOL_VERIFY_MAX are under way. done, once for
 * each pin: 1: doomed; 0: nothing to do.
 */
int pool_pin_for_verify(struct pool *p, uint32_t desc, uint64_t gen, uint64_t *ret_offset,
			uint64_t *ret_bytes, uint32_t *ret_crc);
int pool_verify_done(struct pool *p, uint32_t desc, uint64_t gen, int wrong, uint64_t now);

#define POOL_VERIFY_MAX 64u

/*
 * What a client knows of the future of a prefix. It counts as used at
 *
 *   now + reuse_ns + (priority - 50) * PRIORITY_STEP_NS
 *
 * but no later than POOL_HINT_MAX from now; or, ended, before all others: it is the first to go. In
 * the order of eviction and for its TTL; the next use counts as any other.
 *
 * A time to come is that of its deepest block, which keeps those before it. A time in the past is
 * that of what only this prefix has: from its deepest block, which must be the last of its chain,
 * up to where something else hangs, an operator pins, or another used it by itself since.
 */
struct pool_hint {
	uint64_t reuse_ns;
	uint32_t priority; /* 0: nothing is said */
	int ended;         /* the others say nothing then */
};

#define POOL_HINT_MAX (3600 * NSEC_PER_SEC)

/* Returns how many blocks it was applied to; 0: that prefix is not cached, or is not the last. */
uint32_t pool_hint(struct pool *p, uint32_t ns, const struct block_key *key,
		   const struct pool_hint *h, uint64_t now);

/*
 * Operators' pins: each keeps one prefix, named by its deepest block, until its time is over, it is
 * taken back or its blocks are flushed. All of them together are bounded by a budget of bytes: each
 * block counts once, however many pins share it.
 */
#define POOL_PINS_MAX   1024u
#define POOL_PIN_LABEL  64u
#define POOL_PIN_BUDGET 20u /* percent of the pool, until it is set */

struct pool_pin {
	uint64_t number; /* never used again */
	uint32_t ns, desc;
	struct block_key key;
	uint32_t blocks;       /* of the prefix */
	uint64_t since, until; /* UINT64_MAX: until it is taken back */
	uint32_t priority;     /* those of the lowest end first when the budget gets smaller */
	char label[POOL_PIN_LABEL + 1];
};

struct pool_pin_wish {
	uint64_t ttl_ns; /* 0: until it is taken back */
	uint32_t priority;
	const char *label;
};

struct pool_pinned {
	struct pool_pin pin;
	uint32_t wanted;      /* blocks; more than pin.blocks when the budget did not reach */
	uint64_t added_bytes; /* that no other pin held */
};

/*
 * Pins the prefix that ends with desc, or as much of it from its start on as the budget allows. A
 * pin of the same prefix with the same label is renewed instead. Returns 0; -ENOENT: no such block
 * is cached; -EDQUOT: the budget has not room for one block; -ENOSPC: POOL_PINS_MAX; -ENOMEM. A
 * walk over the prefix, some 10 us a thousand blocks.
 */
int pool_pin(struct pool *p, uint32_t desc, uint64_t gen, const struct pool_pin_wish *wish,
	     uint64_t now, struct pool_pinned *ret);

/* Takes a pin back. Returns 0 and the bytes that no other pin holds, or -ENOENT. */
int pool_unpin(struct pool *p, uint64_t number, uint64_t *ret_bytes);

/* The pin with the lowest number above after, NULL for none. Until pins change. */
const struct pool_pin *pool_pin_next(const struct pool *p, uint64_t after);

/* What pins may keep and what they do, in bytes. */
void pool_pin_usage(const struct pool *p, uint64_t *ret_budget, uint64_t *ret_used);

/* Whether a pin keeps a block; and a pin that ends with it, NULL for none. */
int pool_pin_keeps(const struct pool *p, uint32_t desc);
const struct pool_pin *pool_pin_at(const struct pool *p, uint32_t desc);

/* Ends pins until the others fit: of the lowest priority first, of those the youngest. */
void pool_set_pin_budget(struct pool *p, uint64_t bytes);

/* The cached block under key in ns, and its gen; DESC_NONE where there is none. */
uint32_t pool_find(const struct pool *p, uint32_t ns, const struct block_key *key,
		   uint64_t *ret_gen);

/* The range given to ops->punch is a hole now. */
void pool_punched(struct pool *p, uint64_t offset, uint64_t bytes);

/*
 * Time passes: ends quarantines, times reservations out, frees doomed blocks, ends operators' pins,
 * lets blocks expire, evicts below the low-water mark, a bounded amount of work a call. Returns
 * when it wants to be called again (absolute, UINT64_MAX: when something changes), now when it has
 * more.
 */
uint64_t pool_tick(struct pool *p, uint64_t now);

/*
 * Evicts one small step below the low-water mark. Returns 1 when there is more to do now: the shell
 * calls it while no request waits, so that a reservation finds room without evicting itself.
 */
int pool_refill(struct pool *p, uint64_t now);

/*
 * Sums over blocks, kept as they change; only the leased ones cost a scan of the pins. pool_bytes
 * is the limit, and excess_bytes what has memory beyond it. The byte fields add up: cached +
 * writing + quarantined + doomed + free = handed. A block counts with what its slot takes; free
 * holds what the last slot of an extent leaves over. leased is a part of cached: blocks that are
 * pinned or above a pinned one.
 */
struct pool_stats {
	uint64_t pool_bytes, excess_bytes, handed_bytes;
	uint64_t cached_bytes, leased_bytes, writing_bytes, quarantined_bytes, doomed_bytes,
		free_bytes;
	uint64_t unnamed_bytes;         /* a part of writing */
	uint64_t blocks, leased_blocks; /* cached */
	uint32_t max_blocks, namespaces;
	uint32_t pins; /* of operators, and what they keep */
	uint64_t pinned_bytes, pin_budget;
	/* Since the start: uint64_t, from published to the end. */
	uint64_t published;
	/* keys and unnamed blocks that got PRESENT, BUSY, FULL; quota: of full, because of that */
	uint64_t duplicates, busy, full, quota;
	uint64_t evicted;                /* to make room; with the next one: all that went */
	uint64_t expired;                /* a part of evicted: nobody used them for their TTL */
	uint64_t resized;                /* another part: the pool got smaller */
	uint64_t flushed;                /* by flush or bad bytes, counted when they are doomed */
	uint64_t extents_taken;          /* that moved to another namespace */
	uint64_t quarantined;
	uint64_t reservations_timed_out;
	uint64_t dooms; /* blocks whose bytes were wrong */
};

void pool_get_stats(struct pool *p, struct pool_stats *ret);

struct pool_ns_stats {
	const char *model; /* until the namespace is closed: copy it */
	uint8_t seed[KEY_BYTES];
	uint32_t block_tokens;
	uint64_t block_bytes;
	uint64_t blocks, writing_blocks, extents, extent_bytes;
	uint64_t leased_blocks;  /* as they were counted last */
	uint64_t unnamed_blocks; /* a part of writing */
	uint64_t lookups, asked_tokens, hit_tokens;
	const uint64_t *missed; /* tokens, by enum miss_reason; until the namespace is closed */
	uint64_t used; /* when */
	uint64_t ttl_ns, expired, pinned_blocks;
	uint32_t priority;
	uint64_t free_blocks;  /* that could be stored now without evicting */
	uint64_t empty_blocks; /* that would fit if nothing else were in the pool */
	const uint8_t *desc;   /* its descriptor, checked; until the namespace is closed */
	size_t n_desc;
};

/* Returns 0, or -ENOENT when there is no such namespace. */
int pool_ns_get_stats(const struct pool *p, uint32_t ns, struct pool_ns_stats *ret);

/*
 * Counts the leased blocks of all namespaces: a scan of the pins and a walk over all that is
 * leased, some 7 ms for a million blocks. pool_get_stats does it too.
 */
void pool_count_leased(struct pool *p);

#endif
