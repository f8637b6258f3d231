/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Naming the own blocks of a sequence, one COMMIT after the other. Each is prepared, with the pins
 * of its blocks, before it is sent, and settled when it was answered:
 *
 * 	seq_name_begin, > 0 --> seq_name_message, seq_name_take --> seq_name_next, > 0 --> ...
 * 	a message whose fate is unknown --> seq_name_lost
 *
 * kvpool_seq_commit waits for each answer (seq_name.c), kvpool_seq_commit_start does not
 * (seq_commit_op.c).
 */
#ifndef KVP_CLIENT_SEQ_NAME_H
#define KVP_CLIENT_SEQ_NAME_H

#include "client/seq.h"
#include "proto/kvpool.pb-c.h"

struct naming {
	struct kvpool_seq *s;
	uint32_t end;      /* all blocks before it */
	uint32_t own;      /* the first own one of those at the end */
	uint32_t begin;    /* the first one that is no copy of a cached block */
	uint32_t first, n; /* of the message */
	int again;         /* it began anew, with the copies */
	struct hold *hold; /* lease i pins block first + i; NULL: no message is under way */
	int stored;
};

/* All but the connection that can be wrong with a commit. Returns 0 or -errno. */
int seq_name_check(struct kvpool_seq *s, unsigned int flags);

/* The keys of blocks that have none yet. Return how many blocks are to have names. */
uint32_t seq_name_tokens(struct kvpool_seq *s, const int32_t *tokens, size_t n_tokens);
uint32_t seq_name_keys(struct kvpool_seq *s, const struct kvpool_key *keys, size_t n_keys);

/* True when there is something to send for the first end blocks. */
int seq_name_is_due(const struct kvpool_seq *s, uint32_t end);

/* Checksums of all that may be sent. Else each message has its own computed. */
void seq_name_sum_up(struct kvpool_seq *s, uint32_t end);

/* Return 1: there is a message to send; 0: that was all; or -errno, with the text made. */
int seq_name_begin(struct naming *n, struct kvpool_seq *s, uint32_t end);
int seq_name_next(struct naming *n);

/* Fills it in; it refers to memory of the sequence. */
void seq_name_message(const struct naming *n, Kvpool__Commit *m);

/* Only keeps the answer, for seq_name_next. Returns 0 or -EPROTO. */
int seq_name_take(struct naming *n, const ProtobufCMessage *reply);

/* Nothing is known of the blocks of the message: all of their pins stay, for the next one. */
void seq_name_lost(struct naming *n);

/*
 * Takes cached blocks in place of copies. Returns 0, and the slots of the copies if there were any
 * (seq_slots.h), or -errno.
 */
int seq_name_swap(struct kvpool_seq *s, struct kvpool_write **ret);

#endif
