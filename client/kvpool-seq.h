/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kvpool-seq.h - keep an engine's working K/V in the pool, as block tables.
 *
 * A sequence is the block table of one conversation, for an engine whose attention reads K/V
 * through a table: blocks of the cache first, then own slots, which the engine writes while it
 * computes. When the tokens of an own block are known, it can be given its name and so becomes a
 * block of the cache, where it is: nothing is copied, and the sequence goes on reading it.
 *
 * 	kvpool_seq_new(ns, 4096, &seq);
 * 	tokens = kvpool_seq_acquire(seq, prompt, n_prompt);
 * 	kvpool_seq_grow(seq, blocks_for(n_prompt));
 * 	... prefill: writes K/V of the rest through the table ...
 * 	kvpool_seq_commit(seq, prompt, n_prompt, 0);
 * 	while (next token) {
 * 		kvpool_seq_grow(seq, blocks_for(++n_tokens));
 * 		... decode ...
 * 	}
 * 	kvpool_seq_commit(seq, tokens, n_tokens, 0);
 * 	kvpool_seq_free(seq);
 *
 * Whose a block is: kvpool_seq_own_block() is not NULL for an own slot. Nobody else knows it, and
 * nobody takes it away; it counts against this program's quota (limits.client_unnamed_max of
 * kvpool.conf(5)). All other blocks are the cache's, held for the sequence until it is cut, freed
 * or acquired anew, and never written to.
 *
 * What is lost with the connection: nothing that can be read. When the daemon dies or drops the
 * program, the blocks stay where they are, can be read and written, and decoding goes on; the
 * calls that need the daemon (kvpool_seq_grow, _commit) say -ENOTCONN from then on. To go on in the
 * pool, fork the sequence once there is a connection again: the copy has all blocks as own slots
 * there; then free the old one.
 *
 * kvpool_seq_acquire() of a sequence without own slots, and all that only looks, take no lock, make
 * no system call and allocate nothing (but for the first acquire behind a fork).
 *
 * A start form occupies the sequence until its operation is finished or freed: grow, commit,
 * truncate and fork say -EBUSY meanwhile. kvpool_seq_free() and kvpool_seq_acquire() may be called:
 * they cancel it, and it is then to be finished or freed as any other.
 *
 * A sequence belongs to one thread at a time; different ones are independent, forks too. It counts
 * as one lease of max_leases, and another one from its first commit on; a commit of n blocks takes
 * up to n more (64 at most) for as long as it lasts, as many as are free. In a child all functions
 * say -ESTALE, KVPOOL_FORKED, NULL or 0, and kvpool_seq_free() only frees memory.
 *
 * A sequence counts in blocks, tokens are the program's to count. A block of the cache is full, so
 * to go on from the middle of one, cut to the blocks before it, grow, and write its first tokens
 * anew: compute them again, or copy their rows out of kvpool_seq_block() before the cut. A chain
 * (kvpool_chain_new()) saves hashing: commit with kvpool_chain_keys() and kvpool_chain_blocks().
 *
 * Own slots tell nobody what they are for: of two programs that compute the same prompt so at once,
 * each computes it, and the second one to commit gets KVPOOL_PRESENT. Single flight is that of
 * kvpool_reserve() and kvpool_wait().
 *
 * Calls that ask the daemon: kvpool_seq_grow, kvpool_seq_commit, kvpool_seq_fork where something is
 * to be copied, and, where own slots are to be given back, kvpool_seq_truncate, kvpool_seq_acquire
 * and kvpool_seq_free. They come back within timeout_ms for each message. Growing, committing,
 * cutting and freeing have forms that do not wait. kvpool_seq_fork has none: in a program that must
 * never wait it belongs into another thread, or behind a commit. kvpool_seq_acquire waits for
 * nobody on a sequence that is empty, as kvpool_seq_truncate_start() leaves it.
 *
 * What kvpool.h, and libkvpool(3), say of errors, threads and forks holds here, too.
 */
#ifndef KVPOOL_SEQ_H
#define KVPOOL_SEQ_H

#include "kvpool.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/** The block table of one conversation. Opaque, as all handles. */
struct kvpool_seq;

/** What offsets and tables count in: every block begins at a multiple of so many bytes. */
#define KVPOOL_UNIT 4096u

/**
 * Makes an empty one, for up to max_blocks blocks (1 to 1048576); works without a daemon. -ENOSPC:
 * max_leases. -ENOMEM, -EINVAL, -ESTALE.
 */
int kvpool_seq_new(struct kvpool_ns *ns, size_t max_blocks, struct kvpool_seq **ret);

/**
 * Gives back all that it has, and frees. NULL is ignored. Returns NULL. With own slots that is a
 * message for a thousand of them or so, each of which may take timeout_ms.
 */
struct kvpool_seq *kvpool_seq_free(struct kvpool_seq *seq);

/** The same without waiting: own slots are given back when kvpool_dispatch() can. */
struct kvpool_seq *kvpool_seq_free_start(struct kvpool_seq *seq);

/**
 * Makes it the longest cached prefix of a prompt, as kvpool_acquire() does: at most
 * kvpool_usable_tokens() of it, without a system call. What it had before is given back first,
 * which is a message to the daemon when there were own slots. Returns the number of tokens.
 */
size_t kvpool_seq_acquire(struct kvpool_seq *seq, const int32_t *tokens, size_t n_tokens);

/** The same for the keys of a chain; all n_keys of them may be offered. */
size_t kvpool_seq_acquire_keys(struct kvpool_seq *seq, const struct kvpool_key *keys,
			       size_t n_keys);

/** Why the last acquire found no more, as kvpool_lease_reason(). */
enum kvpool_reason kvpool_seq_reason(const struct kvpool_seq *seq);

/**
 * Makes the table n_blocks long by own slots at its end, whose bytes are undefined; asks the daemon
 * once for a thousand of them or so. Returns how long it is then: less than n_blocks when the pool
 * is full or the quota used up (kvpool_error() says which), and what it was when it was longer.
 *
 * -EINVAL: more than max_blocks. -EROFS. -EOPNOTSUPP: the daemon is too old (KVPOOL_UNNAMED). Else
 * as calls that ask the daemon; -ENOTCONN also when the blocks that it has are from a connection
 * that is gone.
 */
long kvpool_seq_grow(struct kvpool_seq *seq, size_t n_blocks);

/**
 * The same without waiting: see "Not blocking" in kvpool.h. An operation that fails gives back what
 * it was granted. Unlike kvpool_seq_grow() it does not touch the slots: whoever writes there first
 * has the page faults. Until it is done, the sequence is not to be looked at, either.
 */
int kvpool_seq_grow_start(struct kvpool_seq *seq, size_t n_blocks, unsigned timeout_ms,
			  kvpool_done done, void *arg, struct kvpool_op **ret);

/** Returns what kvpool_seq_grow() does; see kvpool_reserve_start(3) on finish forms. */
long kvpool_seq_grow_finish(struct kvpool_op *op);

/** How many blocks it has, of both kinds. */
size_t kvpool_seq_blocks(const struct kvpool_seq *seq);

/** The bytes of block i, to read; NULL when i is out of range. Valid until the block goes. */
const void *kvpool_seq_block(const struct kvpool_seq *seq, size_t i);

/** The same to write: NULL when it is no own slot. */
void *kvpool_seq_own_block(const struct kvpool_seq *seq, size_t i);

/**
 * What is known of block i: KVPOOL_PRESENT for one from the cache, KVPOOL_COMMITTED for one that
 * this sequence stored, KVPOOL_GRANTED for an own slot that no commit was tried for. An own slot
 * that could not have its name: KVPOOL_PRESENT (the block is in the cache already, elsewhere),
 * _BUSY (somebody is writing it), _FULL (no place in the index), _NO_PARENT (what comes before it
 * is not in the cache any more), _STALE (its connection ended meanwhile). _STALE also when i is out
 * of range.
 */
enum kvpool_verdict kvpool_seq_verdict(const struct kvpool_seq *seq, size_t i);

/**
 * Where the pool is mapped that the blocks lie in; NULL while there are none. *ret_bytes, if it is
 * not NULL, is its size. It is the same for all sequences of a connection, and another one after a
 * reconnect. An engine that registers it with a device does so once; do not write to it other than
 * to own slots.
 */
void *kvpool_seq_base(const struct kvpool_seq *seq, uint64_t *ret_bytes);

/**
 * Writes where blocks lie, from block first on, in units of KVPOOL_UNIT from kvpool_seq_base():
 * what a kernel gets as its block table. At most max of them; returns how many.
 */
size_t kvpool_seq_table(const struct kvpool_seq *seq, size_t first, uint32_t *table, size_t max);

enum kvpool_seq_flag {
	/**
	 * Own slots that turn out to be in the cache already are given back, and the cached block
	 * takes their place: saves memory, but the table changes. Without it the own copy stays.
	 */
	KVPOOL_SWAP = 1,
};

/**
 * Names and stores the full blocks of the sequence whose tokens are given: tokens is all of it from
 * the start, of which only what has no name yet is hashed. Their bytes must be there, and no longer
 * change. Returns how many blocks were stored. Own slots that could not be are still own;
 * kvpool_seq_verdict() says why, and the next commit tries again.
 *
 * A block keeps its name: to write other tokens there, cut the sequence first.
 *
 * -EINVAL: an unknown flag. -ENOSPC: no lease is free to hold a single one. When it fails as calls
 * that ask the daemon do, some may have been stored; all blocks are as readable as before, the next
 * commit finds out.
 */
int kvpool_seq_commit(struct kvpool_seq *seq, const int32_t *tokens, size_t n_tokens,
		      unsigned flags);

/** The same with the keys of the chain from its first block on (kvpool_chain_keys()). */
int kvpool_seq_commit_keys(struct kvpool_seq *seq, const struct kvpool_key *keys, size_t n_keys,
			   unsigned flags);

/**
 * The same without waiting: see "Not blocking" in kvpool.h. What is hashed, and the checksums of
 * the blocks, are computed in this call. Until it is done the sequence may be looked at, by its own
 * thread, and its blocks read; the table is what it was, and KVPOOL_SWAP changes it in
 * kvpool_seq_commit_finish() alone.
 *
 * When it ends too early (cancelled, too late, no daemon), some blocks may have been stored, as
 * above.
 */
int kvpool_seq_commit_start(struct kvpool_seq *seq, const int32_t *tokens, size_t n_tokens,
			    unsigned flags, unsigned timeout_ms, kvpool_done done, void *arg,
			    struct kvpool_op **ret);
int kvpool_seq_commit_keys_start(struct kvpool_seq *seq, const struct kvpool_key *keys,
				 size_t n_keys, unsigned flags, unsigned timeout_ms,
				 kvpool_done done, void *arg, struct kvpool_op **ret);
int kvpool_seq_commit_finish(struct kvpool_op *op);

/**
 * Cuts it to n_blocks and gives back what was behind; other programs may still find what of it was
 * stored. Whatever writes to own slots there must have stopped. -EINVAL: it has fewer. When it
 * fails as calls that ask the daemon do it is cut all the same, and the daemon has the slots back
 * when the connection ends.
 */
int kvpool_seq_truncate(struct kvpool_seq *seq, size_t n_blocks);

/**
 * The same without waiting: the slots are given back when kvpool_dispatch() can. -ENOMEM: it is
 * what it was.
 */
int kvpool_seq_truncate_start(struct kvpool_seq *seq, size_t n_blocks);

/**
 * A second sequence with the same blocks, for beams and several answers to one prompt: the blocks
 * of the cache are shared, and each own slot is copied into one of its own. So commit before: then
 * only the last block, which is not full, is copied, and without one nothing is asked of the
 * daemon. When there is another connection than that of the blocks, all of them are copied there.
 *
 * -ENOSPC: no room for the copies. -ENOMEM. Else as kvpool_seq_grow().
 */
int kvpool_seq_fork(struct kvpool_seq *seq, struct kvpool_seq **ret);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
