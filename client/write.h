/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write: what the daemon granted of a run of keys, until it is committed or given back. It holds
 * the connection that it was granted on, and is stale when that one is dead.
 */
#ifndef KVP_CLIENT_WRITE_H
#define KVP_CLIENT_WRITE_H

#include "client/link.h"
#include "shm/layout.h"

struct kvpool_ns;

struct write_block {
	uint64_t gen;
	uint32_t desc, slot, crc;
	uint8_t verdict; /* enum kvpool_verdict */
	uint8_t held;    /* the daemon may still keep the slot for us: give it back */
	uint8_t has_crc;
};

/* Arrays of one message, at most FRAME_KEYS_MAX entries: made once, so that a commit cannot fail.
 */
struct write_message {
	uint32_t *desc, *crc, *block; /* block: which one of the write each entry is about */
	uint64_t *gen;
	size_t n, max;
};

struct kvpool_write {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct link link; /* rpc NULL: an empty write, for which nothing was asked */
	struct write_message message;
	uint32_t full; /* enum proto_full: why the first KVPOOL_FULL */
	size_t n_blocks;
	struct write_block blocks[];
};

/* kvpool_reserve_keys() without the checks of its arguments. */
int write_reserve(struct kvpool_ns *ns, const struct block_key *parent,
		  const struct block_key *keys, size_t n_keys, struct kvpool_write **ret);

/*
 * Copies the granted ones of the first n blocks from iov[0], iov[1], ..., each of block_bytes, in
 * few calls of the kernel.
 */
void write_copy_blocks(struct kvpool_write *w, const struct iovec *iov, size_t n);

/* For kvpool_stats: n blocks of it were copied in, or committed. */
void write_count_copies(struct kvpool_write *w, size_t n);
void write_count_stored(const struct kvpool_write *w, size_t n);

#endif
