/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are counted when somebody asks. */
#ifndef KVP_DAEMON_STATS_H
#define KVP_DAEMON_STATS_H

#include "daemon/namespace.h"

/* Adds to p->pins all that is above its members. */
void stats_spread_pins(struct pool *p);

#endif
