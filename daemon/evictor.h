/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: batches of blocks out of the pool, under readers' eyes. */
#ifndef KVP_DAEMON_EVICTOR_H
#define KVP_DAEMON_EVICTOR_H

#include "daemon/namespace.h"
#include "proto/reason.h"

#define EVICTOR_BATCH 256u

/*
 * Takes a batch out: closed below, each block before its parent, all loose, COMMITTED and in no
 * heap. Pinned ones, and what is above them, come back to where they were, as used now. The others
 * are remembered as gone for that reason. Returns how many they are.
 */
uint32_t evictor_take(struct pool *p, const uint32_t *batch, uint32_t n, enum miss_reason why,
		      uint64_t now);

/*
 * Evicts up to want blocks of ns (at most EVICTOR_BATCH), those first that were used longest ago,
 * leaves before their parents. A pinned leaf counts as used now. Returns how many are gone; 0:
 * there was nothing to evict.
 */
uint32_t evictor_run(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now);

/*
 * Drops what nobody used for longer than its namespace's TTL, leaves first, a batch in each
 * namespace. What is pinned counts as used now. Returns when it wants to be called again.
 */
uint64_t evictor_expire(struct pool *p, uint64_t now);

/*
 * The namespace whose oldest leaf is the oldest of all, priorities counted; NULL when there is no
 * leaf.
 */
struct namespace *evictor_coldest(struct pool *p);

/*
 * How many free slots the background keeps in a namespace that cannot grow, so that a reservation
 * finds room without evicting: 1/32 of its slots, at most 256. More would be cache given up for
 * nothing: while a client fills one run of blocks, the background makes room for the next.
 */
uint32_t evictor_low_water(const struct namespace *ns);

/*
 * Evicts a step in each namespace that is below its mark. Returns when it wants to be called again.
 */
uint64_t evictor_background(struct pool *p, uint64_t now);

#endif
