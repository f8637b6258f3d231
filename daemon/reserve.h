/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: made, committed and aborted through pool.h; voided from within. */
#ifndef KVP_DAEMON_RESERVE_H
#define KVP_DAEMON_RESERVE_H

#include "daemon/pool.h"
#include "proto/reason.h"

/* VERDICT_NONE when d is that block of o, in state RESERVED or QUARANTINE. */
enum proto_verdict reserve_check(const struct pool *p, const struct pool_owner *o, uint32_t d,
				 uint64_t gen);

/*
 * RESERVED -> COMMITTED for a block that hangs below a COMMITTED one and is charged to nobody now;
 * its place in the index is promised in bucket.
 */
void reserve_publish(struct pool *p, struct pool_owner *o, uint32_t d,
		     const struct block_key *key, uint64_t bucket, uint32_t crc, uint64_t now);

/*
 * RESERVED -> QUARANTINE for a loose block with a key and nothing below it: the key is free at
 * once, and remembered as one that is missing for that reason.
 */
void reserve_void(struct pool *p, uint32_t d, enum miss_reason why, uint64_t now);

/*
 * The same for a RESERVED block in its tree and all below it, whose writer went or took too long.
 * Returns how many they were.
 */
uint32_t reserve_void_tree(struct pool *p, uint32_t top, uint64_t now);

/* QUARANTINE -> FREE. late: nobody vouched for the writer. */
void reserve_unquarantine(struct pool *p, uint32_t d, int late);

#endif
