/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write: what the daemon granted of a run of keys, until it is committed or given back. It holds
 * the connection that it was granted on, and is stale when that one is dead.
 */
#ifndef KVP_CLIENT_WRITE_H
#define KVP_CLIENT_WRITE_H

#include "client/link.h"
#include "proto/kvpool.pb-c.h"
#include "shm/layout.h"

struct kvpool_ns;
struct op_job;

struct write_block {
	uint64_t gen;
	uint32_t desc, slot, crc;
	uint8_t verdict; /* enum kvpool_verdict */
	uint8_t held;    /* the daemon may still keep the slot for us: give it back */
	uint8_t has_crc; /* 2: computed for a commit that was started, and good for that one only */
};

/* Arrays of one message, FRAME_KEYS_MAX entries at most: made once, since a commit must not fail. */
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
	int cold;      /* its slots were not touched yet, to spare the program's loop page faults */
	struct op_job *job; /* under the lock of the operations: the commit under way */
	size_t n_blocks;
	struct write_block blocks[];
};

/*
 * A reserve, message after message: reserving_message, then, when reserving_take did, on as long as
 * reserving_next says so. What the daemon says to the last block of a message holds for all deeper
 * ones.
 */
struct reserving {
	struct kvpool_write *w;
	const struct block_key *parent,
		*keys; /* before the first block, NULL: none; of all blocks */
	size_t at, n;  /* the message is about n blocks from at on */
};

void reserving_message(struct reserving *r, uint32_t ns, Kvpool__Reserve *m);
int reserving_take(struct reserving *r, const ProtobufCMessage *reply);
int reserving_next(struct reserving *r);

/* A commit of the first n blocks; the caller goes on from at = end. */
struct committing {
	struct kvpool_write *w;
	size_t n, at, end;
	int stored;
};

/* Returns how many blocks the message has; 0: there is nothing left to send. */
size_t committing_message(struct committing *c, Kvpool__Commit *m);
int committing_take(struct committing *c, const ProtobufCMessage *reply);

/* What the daemon may still keep for a write, deepest first; from at = n_blocks on to at = end. */
struct giving_back {
	struct kvpool_write *w;
	size_t at, end;
};

size_t giving_back_message(struct giving_back *g, Kvpool__Abort *m);

/* Takes the references of l over, unless it returns NULL. */
struct kvpool_write *write_new(struct kvpool_ns *ns, size_t n, const struct link *l);

/* Frees it without a word to the daemon. */
void write_drop(struct kvpool_write *w);

/* The connection is dead. */
int write_is_stale(const struct kvpool_write *w);

uint8_t *write_slot(const struct kvpool_write *w, const struct write_block *b);

/* Why the first n blocks cannot be committed, or 0. */
int write_check_commit(struct kvpool_write *w, size_t n);

/* kvpool_reserve_keys() without the checks of its arguments. */
int write_reserve(struct kvpool_ns *ns, const struct block_key *parent,
		  const struct block_key *keys, size_t n_keys, struct kvpool_write **ret);

/*
 * Copies the granted ones of the first n blocks from iov[0], iov[1], ..., each of block_bytes, in
 * few calls of the kernel.
 */
void write_copy_blocks(struct kvpool_write *w, const struct iovec *iov, size_t n);

/* Maps the pages of a slot of so many bytes that is going to be written. */
void write_warm_up(const uint8_t *slot, uint64_t bytes);

/* For kvpool_stats: n blocks of it were copied in, or committed. */
void write_count_copies(struct kvpool_write *w, size_t n);
void write_count_stored(const struct kvpool_write *w, size_t n);

#endif
