/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients looked up: the counters of their session regions, read as the claims that they are.
 */
#ifndef KVP_DAEMON_USAGE_H
#define KVP_DAEMON_USAGE_H

#include "shm/session.h"

/* hit + miss = asked, and shared <= hit, whatever the counters said. */
struct usage {
	uint64_t lookups, asked, hit, miss, shared, raced;
};

/*
 * One client's counters. What it claims is bounded, so that no client can make a sum of many run
 * over.
 */
void usage_read(const struct session_map *m, struct usage *ret);

void usage_add(struct usage *sum, const struct usage *u);

#endif
