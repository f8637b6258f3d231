/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: made, committed and aborted through pool.h; voided from within. */
#ifndef KVP_DAEMON_RESERVE_H
#define KVP_DAEMON_RESERVE_H

#include "daemon/pool.h"
#include "proto/reason.h"

/*
 * RESERVED -> QUARANTINE for a loose block with nothing below it: the key is free at once, and
 * remembered as one that is missing for that reason.
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
