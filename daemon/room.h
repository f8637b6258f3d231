/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the slots of a reservation come from, in this order: free slots of the namespace; a new
 * extent out of free granules; an extent of a namespace that is much colder (daemon/reclaim.h); the
 * namespace's own oldest blocks.
 */
#ifndef KVP_DAEMON_ROOM_H
#define KVP_DAEMON_ROOM_H

#include "daemon/namespace.h"

/* Makes room for want blocks in ns, or for as many as can be made room for. */
void room_make(struct pool *p, struct namespace *ns, uint32_t want, uint64_t now);

/* Hands ns another extent out of free granules. Returns 0 when there is none to be had. */
int room_grow(struct pool *p, struct namespace *ns, uint64_t now);

#endif
