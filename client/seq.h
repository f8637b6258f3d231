/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct kvpool_seq: the block table of one sequence, of blocks of the cache and own slots.
 *
 * 	blocks	0 ... n_blocks - 1	where each lies, and whose it is
 * 	keys	0 ... n_keys - 1	of those whose tokens are known
 * 	holds				what keeps the blocks of the cache where they are
 *
 * All blocks lie in one attachment. It lives for as long as the sequence has a block there, by the
 * leases of the holds or by the link, so what the blocks hold can be read and written also when the
 * daemon is gone or has ended the session: it hands out nothing of it before this process is gone.
 *
 * A hold reaches so deep: it keeps every block of the cache below its depth. A new one replaces the
 * last one where the parent links show that it keeps what that one kept; they differ when a flush
 * took the prefix out of the cache and somebody stored it anew. Then both are needed.
 */
#ifndef KVP_CLIENT_SEQ_H
#define KVP_CLIENT_SEQ_H

#include "client/hold.h"
#include "client/kvpool-seq.h"
#include "client/link.h"

#define SEQ_HOLDS 8u
#define SEQ_PART  64u /* blocks that one COMMIT names at most */

struct seq_block {
	uint64_t gen;
	uint32_t desc, slot, crc;
	uint8_t has_crc;
	/*
	 * Atomic: kvpool_dispatch may change them while the thread of the sequence looks at it.
	 * Ours to write: RESERVED, without a name; enum kvpool_verdict.
	 */
	uint8_t own, verdict;
};

struct seq_hold {
	struct hold *hold;
	uint32_t depth; /* blocks of this sequence */
};

/* Arrays of a message, at most FRAME_KEYS_MAX entries. */
struct seq_message {
	uint32_t *desc, *crc;
	uint64_t *gen;
	uint8_t verdict[SEQ_PART];
	size_t n, max;
};

struct kvpool_seq {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct link link;      /* rpc NULL: nothing was asked of the daemon yet */
	uint32_t ns_number;    /* there */
	struct attach *attach; /* of its blocks; NULL: it has none */
	struct hold *acquired; /* of one lease for max_blocks; in holds too when in use; or NULL */
	struct seq_hold holds[SEQ_HOLDS];
	uint32_t n_holds;
	uint32_t max_blocks, n_blocks, n_keys;
	uint32_t keys_from; /* keys before this one are still to be read: seq_read_keys */
	/*
	 * Atomic, changed under the lock of the operations: one that was started and not finished.
	 * Until then only this one changes the table.
	 */
	struct kvpool_op *op;
	int swap; /* copies are to be taken out of the table when it is finished */
	enum kvpool_reason reason;
	struct seq_message message;
	struct block_key *keys; /* max_blocks */
	struct seq_block blocks[];
};

static inline uint8_t *seq_bytes(const struct kvpool_seq *s, uint32_t i)
{
	return s->attach->pool + slot_offset(s->blocks[i].slot);
}

/* Own slots from block number from on. */
uint32_t seq_count_own(const struct kvpool_seq *s, uint32_t from);

/* True when the connection that own slots were granted on is dead. */
int seq_is_lost(const struct kvpool_seq *s);

/* Errors, with their text made: its connection is gone; it got fewer than n blocks. */
int seq_say_lost(const struct kvpool_seq *s);
int seq_say_full(const struct kvpool_seq *s, uint32_t n, uint32_t full);

/* Whether own slots can be had on a connection. Returns 0 or -errno, with the text made. */
int seq_check_link(const struct kvpool_seq *s, const struct link *l);

/* What can be told without asking of growing to n_blocks. Returns 0 or -errno. */
int seq_check_grow(struct kvpool_seq *s, size_t n_blocks);

static inline int seq_is_busy(const struct kvpool_seq *s)
{
	return load_acquire(&s->op) != NULL;
}

/* Error, with its text made: something was started and is not finished. */
int seq_say_busy(const struct kvpool_seq *s);

/* Cancels what was started, which is no longer about this sequence. */
void seq_op_let_go(struct kvpool_seq *s);

/* An empty one, without a lease to acquire by. Returns 0 or -ENOMEM. */
int seq_make(struct kvpool_ns *ns, size_t max_blocks, struct kvpool_seq **ret);

/* Frees it; its own slots were given back, or this is a child. */
void seq_destroy(struct kvpool_seq *s);

/* Own slots up to n blocks; fewer when the pool is full, with the text made. Returns 0 or -errno.
 */
int seq_extend(struct kvpool_seq *s, uint32_t n);

/* The table is n blocks long; own slots behind it were given back. */
void seq_cut(struct kvpool_seq *s, uint32_t n);

/* What can be wrong with cutting it to n_blocks. Returns 0 or -errno. */
int seq_check_truncate(const struct kvpool_seq *s, size_t n_blocks);

/* The connection, which must be the one of the blocks that it has. Returns 0 or -errno. */
int seq_connect(struct kvpool_seq *s);

/*
 * True when a hold on desc, block number depth - 1, keeps all that the others keep: then it will be
 * the only one, but for those of commits that nothing is known of.
 */
int seq_hold_suffices(const struct kvpool_seq *s, uint32_t desc, uint32_t depth);

/*
 * Adds h, whose deepest block is desc, block number depth - 1 of the sequence; takes the reference.
 * 0: there are too many holds, and it was not taken.
 */
int seq_add_hold(struct kvpool_seq *s, struct hold *h, uint32_t desc, uint32_t depth);

/*
 * True when block number t, of the cache, is kept by a pin on block number at, which is below it.
 */
int seq_is_above(const struct kvpool_seq *s, uint32_t at, uint32_t t);

/*
 * Before own blocks become blocks of the cache: each hold reaches down to the last block that it
 * keeps, so that none of those counts as one.
 */
void seq_fit_holds(struct kvpool_seq *s);

/* Reads the keys of acquired blocks, which are held, from their descriptors. */
void seq_read_keys(struct kvpool_seq *s);

/* Gives own slots back whose numbers are in the message. */
int seq_give_back(struct kvpool_seq *s);
void seq_message_add(struct kvpool_seq *s, const struct seq_block *b);

#endif
