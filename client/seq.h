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
 *
 * To make requests without waiting, take seq_ask or seq_name apart: what comes before link_call in
 * each fills the message, what comes behind it takes the answer.
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
	uint8_t own; /* ours to write: RESERVED, without a name */
	uint8_t has_crc;
	uint8_t verdict; /* enum kvpool_verdict */
};

struct seq_hold {
	struct hold *hold;
	uint32_t depth; /* blocks of this sequence, at least 1 */
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
	enum kvpool_reason reason;
	struct seq_message message;
	struct block_key *keys; /* max_blocks */
	struct seq_block blocks[];
};

static inline uint8_t *seq_bytes(const struct kvpool_seq *s, uint32_t i)
{
	return s->attach->pool + slot_offset(s->blocks[i].slot);
}

/* True when the connection that own slots were granted on is dead. */
int seq_is_lost(const struct kvpool_seq *s);

/* Errors, with their text made: its connection is gone; it got fewer than n blocks. */
int seq_say_lost(const struct kvpool_seq *s);
int seq_say_full(const struct kvpool_seq *s, uint32_t n, uint32_t full);

/* Whether own slots can be had on a connection. Returns 0 or -errno, with the text made. */
int seq_check_link(const struct kvpool_seq *s, const struct link *l);

/* What can be told without asking of growing to n_blocks. Returns 0 or -errno. */
int seq_check_grow(struct kvpool_seq *s, size_t n_blocks);

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

/* Reads the keys of acquired blocks, which are held, from their descriptors. */
void seq_read_keys(struct kvpool_seq *s);

/* Gives own slots back whose numbers are in the message. */
int seq_give_back(struct kvpool_seq *s);
void seq_message_add(struct kvpool_seq *s, const struct seq_block *b);

#endif
