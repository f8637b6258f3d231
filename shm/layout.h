/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of shared memory, version 2. Three regions, all made by the daemon
 * (doc/shared-memory.md):
 *
 *   control   One per domain. Header, namespaces, extents, index, descriptors. Written by the
 *             daemon only; clients map it read-only, from a file descriptor that cannot be made
 *             writable.
 *   pool      One per domain. The bytes of the blocks, nothing else: no header, no padding but
 *             what alignment asks for.
 *   session   One per client. Hazard words, touch ring, counters. Written by its client only; the
 *             daemon maps it read-only and believes nothing in it.
 *
 * Rules: offsets and indices only, never a pointer. Little endian. One 64-bit atomic word per
 * descriptor and one per index entry carry all state; everything else is written before the word
 * that makes it visible. There is no lock and no sequence lock: a writer may be killed between any
 * two stores, and each field below says what its successor finds.
 *
 * In the field comments, W = who writes, R = who reads, and "dies" = what a kill of the writer at
 * that point means.
 */
#ifndef KVP_SHM_LAYOUT_H
#define KVP_SHM_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_VERSION 2u

#define CONTROL_MAGIC 0x314c54434f50564bull /* "KVPOCTL1" */
#define SESSION_MAGIC 0x314e45534f50564bull /* "KVPOSEN1" */

#define LAYOUT_PAGE 4096u

/*
 * Slots are counted in this unit: a 32-bit slot number reaches 16 TiB, and every block is aligned
 * for O_DIRECT.
 */
#define SLOT_SHIFT 12u
#define SLOT_UNIT  (1u << SLOT_SHIFT)
#define SLOT_NONE  0xffffffffu
#define DESC_NONE  0xffffffffu
#define NS_NONE    0xffffffffu

#define BLOCK_BYTES_MIN (4u << 10)
#define BLOCK_BYTES_MAX (256u << 20)

#define KEY_BYTES 32u
#define KEY_WORDS 4u

/* The key of a block: the SHA-256 chain value of the prefix that ends with it. */
struct block_key {
	uint64_t w[KEY_WORDS];
};

/*
 * Memory tiers have a slot number in the descriptor and a bit in its word. The other bits are for
 * copies that are not memory: a block that only the disk holds has no descriptor here.
 */
enum tier {
	TIER_HOST = 0,
	TIER_DEVICE = 1,
	TIER_MEMORY_MAX = 2, /* bits 2 and 3 are of no tier, and 0 */
	TIER_DISK = 4,
	TIER_REMOTE = 5,
};

/*
 * The descriptor word: gen:48 | tiers:8 | flags:4 | state:4, from high to low.
 *
 *   FREE        --reserve-->                    RESERVED
 *   RESERVED    --commit-->                     COMMITTED
 *   RESERVED    --owner aborts-->               FREE
 *   RESERVED    --death, time-out, restart-->   QUARANTINE
 *   QUARANTINE  --writer surely gone, grace-->  FREE
 *   COMMITTED   --evict-->                      EVICTING
 *   EVICTING    --pin found-->                  COMMITTED
 *   EVICTING    --no pin-->                     FREE
 *   COMMITTED   --flush, bad bytes-->           DOOMED
 *   DOOMED      --no pin on it or below-->      FREE
 *
 * gen changes on FREE -> RESERVED and nowhere else: a reader that finds the gen it saw before its
 * fence knows that the descriptor was not reused in between. 2^48 reuses do not come around.
 * (tests/models: reuse, closure, busy, resume)
 */
enum desc_state {
	DESC_FREE = 0,
	DESC_RESERVED = 1,
	DESC_COMMITTED = 2,
	DESC_EVICTING = 3,
	DESC_DOOMED = 4,
	DESC_QUARANTINE = 5,
	DESC_STATE_MAX = 5,
};

/*
 * A block. One cache line: a hit reads this and one line of the index.
 *
 * word      W daemon. R all. Stored last when a block appears (release, after every other field and
 *           after the bytes), first when it goes. dies: the state says where the life of the block
 *           stood; see the states above.
 * key       W daemon while RESERVED, behind a release fence that follows the word. R all, between
 *           two loads of the word; valid when both have the same gen. dies: the word says RESERVED,
 *           and nobody lists the block.
 * parent    W daemon, with the key; fixed from then on while the block is not FREE. (An unnamed
 *           block gets both just before it is COMMITTED.) R readers that pinned this block. Number
 *           of the descriptor that holds the block before this one, or DESC_NONE for the first
 *           block of a chain.
 * slot      W daemon, one per memory tier, in SLOT_UNIT: before the tier's bit is set, and
 *           SLOT_NONE only after nobody pins it. R readers, after their pin is validated. dies: a
 *           clear tier bit with a slot is an eviction in flight. All of them are SLOT_NONE when
 *           the word becomes RESERVED, and its own is stored last: a reservation without a slot is
 *           half-made, and one with a slot is whole. (tests/models: reserve, tier)
 * crc       W daemon before COMMITTED: CRC32C of the block_bytes bytes, as the writer computed it.
 *           R who verifies.
 * depth     W daemon, with the key: blocks before this one in the chain.
 * ns        W daemon, with the key: number of the namespace in the table below.
 */
struct desc {
	uint64_t word;
	uint64_t key[KEY_WORDS];
	uint32_t parent;
	uint32_t slot[TIER_MEMORY_MAX];
	uint32_t crc;
	uint32_t depth;
	uint32_t ns;
};

static_assert(sizeof(struct desc) == 64, "one cache line");
static_assert(offsetof(struct desc, word) == 0, "");
static_assert(offsetof(struct desc, key) == 8, "");
static_assert(offsetof(struct desc, parent) == 40, "");
static_assert(offsetof(struct desc, slot) == 44, "");
static_assert(offsetof(struct desc, crc) == 52, "");
static_assert(offsetof(struct desc, depth) == 56, "");
static_assert(offsetof(struct desc, ns) == 60, "");

/*
 * What a hit does not read, one for each descriptor.
 *
 * writer    W daemon before COMMITTED: number of the session that wrote the bytes. R readers, to
 *           count what came from another program.
 * check     W daemon before COMMITTED: a 32-bit mix of key, parent, crc, depth, ns and writer
 *           (desc_check). R a successor daemon, which drops a block whose check is wrong. While
 *           RESERVED, it is the time when that began; in QUARANTINE, the time when that ends, once
 *           the writer is surely gone (ns of the boot clock). R the daemon.
 */
struct desc_aux {
	uint64_t writer;
	uint64_t check;
};

static_assert(sizeof(struct desc_aux) == 16, "");
static_assert(offsetof(struct desc_aux, writer) == 0, "");
static_assert(offsetof(struct desc_aux, check) == 8, "");

/*
 * The index: buckets of one cache line, eight entries each: tag:16 | gen:16 | descriptor + 1:32,
 * from high to low; 0 is empty. W daemon, one 64-bit store an entry. R all. Listed <=> COMMITTED or
 * EVICTING, and DOOMED for a moment (a moved entry stands in both places for a moment). dies: an
 * entry whose descriptor has another gen or key is stale and never matches; a successor repairs.
 */
#define BUCKET_ENTRIES 8u

struct bucket {
	uint64_t entry[BUCKET_ENTRIES];
};

static_assert(sizeof(struct bucket) == 64, "one cache line");

/* How many blocks a reader of this namespace needs to go on from a point (DESIGN: group). */
enum group_rule {
	GROUP_ALL = 0,      /* every block of the prefix: full attention */
	GROUP_TRAILING = 1, /* the last group_n blocks: sliding window */
	GROUP_LAST = 2,     /* the last block only: recurrent state */
};

enum ns_state {
	NS_FREE = 0,
	NS_OPEN = 1,
};

/*
 * A namespace. W daemon: state last (release). R clients get the same by message; a successor
 * daemon reads it here. disk_blocks: how many blocks of it only the disk tier may hold; a reader
 * that wants more than memory has asks the daemon only when it is not 0.
 */
struct ns_entry {
	uint32_t state;
	uint32_t block_tokens;
	uint64_t block_bytes;
	uint64_t stride; /* bytes from one slot to the next: block_bytes rounded up to SLOT_UNIT */
	uint8_t seed[KEY_BYTES];
	uint32_t group_rule;
	uint32_t group_n;
	uint64_t disk_blocks;
	uint64_t zero[23];
};

static_assert(sizeof(struct ns_entry) == 256, "");
static_assert(offsetof(struct ns_entry, state) == 0, "");
static_assert(offsetof(struct ns_entry, block_tokens) == 4, "");
static_assert(offsetof(struct ns_entry, block_bytes) == 8, "");
static_assert(offsetof(struct ns_entry, stride) == 16, "");
static_assert(offsetof(struct ns_entry, seed) == 24, "");
static_assert(offsetof(struct ns_entry, group_rule) == 56, "");
static_assert(offsetof(struct ns_entry, group_n) == 60, "");
static_assert(offsetof(struct ns_entry, disk_blocks) == 64, "");
static_assert(offsetof(struct ns_entry, zero) == 72, "");

/*
 * The pool is cut into granules of 1 << granule_shift bytes. An extent is a run of them, handed to
 * one namespace as a whole.
 *
 * gen       W daemon: raised when the granule is punched. R clients that registered its pages with
 *           a device, after their pin: another gen means that the registration holds the pages of
 *           before. dies: at worst registered once more.
 * first     W daemon: number of the extent's first granule. count: granules in the extent, on the
 *           first one; 0 on the others.
 * ns        W daemon: whose it is, or NS_NONE. Stored last when an extent is handed out, first when
 *           it is taken back.
 *
 * An extent is taken back only when none of its slots is RESERVED or in QUARANTINE: a writer that
 * is not surely gone still writes there. (tests/models/punch.pml)
 */
struct granule {
	uint64_t gen;
	uint32_t ns;
	uint32_t first;
	uint32_t count;
	uint32_t zero[3];
};

static_assert(sizeof(struct granule) == 32, "");
static_assert(offsetof(struct granule, gen) == 0, "");
static_assert(offsetof(struct granule, ns) == 8, "");
static_assert(offsetof(struct granule, first) == 12, "");
static_assert(offsetof(struct granule, count) == 16, "");
static_assert(offsetof(struct granule, zero) == 20, "");

enum control_state {
	CONTROL_ACTIVE = 1,
	CONTROL_RETIRED = 2, /* given up: readers miss, and connect anew */
};

/*
 * The head of the control region: a page. The first part is written before anybody gets the region
 * and never again.
 *
 * moved     W daemon: raised between the copy and the clear of a moved index entry. R readers: a
 *           miss counts only when it did not change since before the probe. dies: the entry stands
 *           twice, which is a hit.
 * epoch     W daemon: raised by each daemon that takes the region over. R clients, for diagnosis.
 * state     W daemon: enum control_state. R readers at each acquire.
 */
struct control_header {
	uint64_t magic;
	uint32_t layout_version;
	uint32_t header_bytes;
	uint8_t boot_id[16];
	uint64_t domain_id; /* random, so that two regions are never taken for one another */
	uint64_t total_bytes;
	uint64_t pool_bytes; /* size of its memory, whole granules: how far the pool can grow */
	uint64_t index_salt[2];
	uint64_t ns_offset;
	uint64_t granule_offset;
	uint64_t index_offset;
	uint64_t desc_offset;
	uint64_t aux_offset;
	uint64_t n_buckets; /* a power of two */
	uint32_t max_blocks;
	uint32_t max_namespaces;
	uint32_t n_granules;
	uint32_t granule_shift;
	uint64_t zero[15];
	/* One line that readers load at each acquire and the daemon seldom writes. */
	uint64_t moved;
	uint64_t epoch;
	uint32_t state;
	uint32_t zero2[11];
	uint8_t zero3[LAYOUT_PAGE - 320];
};

static_assert(sizeof(struct control_header) == LAYOUT_PAGE, "");
static_assert(offsetof(struct control_header, magic) == 0, "");
static_assert(offsetof(struct control_header, layout_version) == 8, "");
static_assert(offsetof(struct control_header, header_bytes) == 12, "");
static_assert(offsetof(struct control_header, boot_id) == 16, "");
static_assert(offsetof(struct control_header, domain_id) == 32, "");
static_assert(offsetof(struct control_header, total_bytes) == 40, "");
static_assert(offsetof(struct control_header, pool_bytes) == 48, "");
static_assert(offsetof(struct control_header, index_salt) == 56, "");
static_assert(offsetof(struct control_header, ns_offset) == 72, "");
static_assert(offsetof(struct control_header, granule_offset) == 80, "");
static_assert(offsetof(struct control_header, index_offset) == 88, "");
static_assert(offsetof(struct control_header, desc_offset) == 96, "");
static_assert(offsetof(struct control_header, aux_offset) == 104, "");
static_assert(offsetof(struct control_header, n_buckets) == 112, "");
static_assert(offsetof(struct control_header, max_blocks) == 120, "");
static_assert(offsetof(struct control_header, max_namespaces) == 124, "");
static_assert(offsetof(struct control_header, n_granules) == 128, "");
static_assert(offsetof(struct control_header, granule_shift) == 132, "");
static_assert(offsetof(struct control_header, zero) == 136, "");
static_assert(offsetof(struct control_header, moved) == 256, "");
static_assert(offsetof(struct control_header, epoch) == 264, "");
static_assert(offsetof(struct control_header, state) == 272, "");

/*
 * The session region: a page of header, then hazard words, then the touch ring. Its client writes
 * all of it. The daemon keeps the geometry that it chose in memory of its own and never reads it
 * back from here.
 */
enum session_counter {
	COUNTER_LOOKUPS,        /* acquires that asked for at least one token */
	COUNTER_ASKED_TOKENS,   /* asked = hit + miss, always */
	COUNTER_HIT_TOKENS,
	COUNTER_MISS_TOKENS,
	COUNTER_SHARED_TOKENS,  /* hit tokens whose deepest block another session wrote */
	COUNTER_RACED,          /* acquires that gave up because eviction won three times */
	COUNTER_COPIES_OUT,     /* copy-outs from the pool, and their bytes */
	COUNTER_COPIED_OUT_BYTES,
	COUNTER_COPIES_IN,
	COUNTER_COPIED_IN_BYTES,
	COUNTER_CRC_ERRORS,     /* copy-outs whose checksum was wrong */
	COUNTER_WAITS,          /* for what another client wrote, and their time */
	COUNTER_WAITED_NS,
	COUNTER_STORED,         /* blocks committed, and their bytes */
	COUNTER_STORED_BYTES,
	COUNTER_MAX = 32,
};

/*
 * magic … touch_count   W daemon, before the client gets the region. R client.
 * touch_head            W client (fetch_add): records ever taken. R daemon. A jump or a step back
 *                       resets the daemon's place.
 * counter               W client (fetch_add). R daemon, as numbers without a guarantee.
 */
struct session_header {
	uint64_t magic;
	uint32_t layout_version;
	uint32_t header_bytes;
	uint64_t total_bytes;
	uint64_t session; /* number of the session: struct desc_aux.writer of what it writes */
	uint32_t hazard_offset;
	uint32_t hazard_count;
	uint32_t touch_offset;
	uint32_t touch_count; /* a power of two */
	uint64_t zero[2];
	uint64_t touch_head;
	uint64_t zero2[7];
	uint64_t counter[COUNTER_MAX];
	uint8_t zero3[LAYOUT_PAGE - 384];
};

static_assert(sizeof(struct session_header) == LAYOUT_PAGE, "");
static_assert(offsetof(struct session_header, magic) == 0, "");
static_assert(offsetof(struct session_header, layout_version) == 8, "");
static_assert(offsetof(struct session_header, header_bytes) == 12, "");
static_assert(offsetof(struct session_header, total_bytes) == 16, "");
static_assert(offsetof(struct session_header, session) == 24, "");
static_assert(offsetof(struct session_header, hazard_offset) == 32, "");
static_assert(offsetof(struct session_header, hazard_count) == 36, "");
static_assert(offsetof(struct session_header, touch_offset) == 40, "");
static_assert(offsetof(struct session_header, touch_count) == 44, "");
static_assert(offsetof(struct session_header, touch_head) == 64, "");
static_assert(offsetof(struct session_header, counter) == 128, "");

/*
 * A hazard word: span:24 | tier:8 | descriptor + 1:32, from high to low; 0 is empty. W client:
 * before its validation (release store, then the fence), 0 at release. R daemon, snapshots
 * (acquire). It carries no gen: whatever lives in that descriptor is kept until the word is
 * cleared. span 0 = the whole prefix; n = the last n blocks. A word that names no descriptor is
 * ignored. A writer that goes on reading its own block stores the word before it sends the commit.
 * dies: the word stands until the daemon knows that nobody maps the region writable any more.
 * (tests/models: pin, unnamed, named, hangup)
 */

/*
 * A touch record: one for each lookup that asked for something. seq is stored last (release): place
 * in the ring + 1; a record whose seq is another one is being overwritten and is left out.
 */
struct touch {
	uint64_t seq;
	uint32_t desc;         /* deepest block that was pinned, or DESC_NONE */
	uint32_t ns;
	uint32_t asked_tokens;
	uint32_t hit_tokens;
	/*
	 * tail:24 | enum kvpool_reason:8, from high to low. tail: how many of the tokens that were
	 * asked for lie behind the last block that could be cached.
	 */
	uint32_t reason_tail;
	uint32_t from_token; /* where the lookup began: what its lease had before */
	/* the first key that was not found; 0 when there was none */
	uint64_t miss_key[KEY_WORDS];
};

static_assert(sizeof(struct touch) == 64, "one cache line");
static_assert(offsetof(struct touch, seq) == 0, "");
static_assert(offsetof(struct touch, desc) == 8, "");
static_assert(offsetof(struct touch, ns) == 12, "");
static_assert(offsetof(struct touch, asked_tokens) == 16, "");
static_assert(offsetof(struct touch, hit_tokens) == 20, "");
static_assert(offsetof(struct touch, reason_tail) == 24, "");
static_assert(offsetof(struct touch, from_token) == 28, "");
static_assert(offsetof(struct touch, miss_key) == 32, "");

#endif
