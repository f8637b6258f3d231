/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are counted when somebody asks. */
#ifndef KVP_DAEMON_STATS_H
#define KVP_DAEMON_STATS_H

#include "daemon/namespace.h"

/*
 * How many cached blocks are pinned or above a pinned one, in ns or (NULL) everywhere. Scans all
 * pins.
 */
uint64_t stats_leased(struct pool *p, const struct namespace *ns);

/* Adds to p->pins all that is above its members. */
void stats_spread_pins(struct pool *p);

#endif
