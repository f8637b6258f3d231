/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: what a session has reserved, what of it lies in quarantine, and what it wrote that is
 * still cached. A block names its owner by the session number in its descriptor, which costs it
 * nothing; the table finds the owner by it while there is one.
 */
#ifndef KVP_DAEMON_OWNER_H
#define KVP_DAEMON_OWNER_H

#include "daemon/namespace.h"
#include "daemon/pool.h"

#define OWNER_BUCKETS 256u

struct owner_table {
	struct list bucket[OWNER_BUCKETS];
};

void owner_table_init(struct owner_table *t);

/* Enters o, if it is not in the table. */
void owner_enter(struct pool *p, struct pool_owner *o);

/* True when block d was reserved by o. */
int owner_has(const struct pool *p, const struct pool_owner *o, uint32_t d);

/* d became RESERVED, RESERVED no more, COMMITTED, or COMMITTED no more. */
void owner_charge(struct pool *p, struct pool_owner *o, uint32_t d);
void owner_discharge(struct pool *p, struct pool_owner *o, uint32_t d);
void owner_cached(struct pool *p, struct pool_owner *o, uint32_t d);
void owner_uncached(struct pool *p, uint32_t d);

/* The same for an unnamed block, which is charged apart and does not time out. */
void owner_charge_unnamed(struct pool *p, struct pool_owner *o, uint32_t d);
void owner_discharge_unnamed(struct pool *p, struct pool_owner *o, uint32_t d);

/* d, which is not charged, goes to QUARANTINE. */
void owner_charge_quarantine(struct pool *p, struct pool_owner *o, uint32_t d);

/* d goes from RESERVED to QUARANTINE: it stays charged. */
void owner_quarantine(struct pool *p, uint32_t d);

/* d leaves QUARANTINE, with or without an owner that lives. */
void owner_unquarantine(struct pool *p, uint32_t d);

/* How many more blocks of ns o may reserve under keys, and unnamed. */
uint32_t owner_allowance(const struct pool *p, const struct pool_owner *o,
			 const struct namespace *ns);
uint32_t owner_allowance_unnamed(const struct pool *p, const struct pool_owner *o,
				 const struct namespace *ns);

/*
 * Sends reservations to quarantine that are older than reservation_ns. Returns when the next one is
 * due, UINT64_MAX for never. Spends budget, one for each block.
 */
uint64_t owner_time_out(struct pool *p, uint64_t now, uint32_t *budget);

/* Frees quarantined blocks of owners that are gone, whose time has come. Returns as above. */
uint64_t owner_release_orphans(struct pool *p, uint64_t now, uint32_t *budget);

#endif
