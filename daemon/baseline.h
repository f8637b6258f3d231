/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters from some time on: what they were then, taken away from what they are now.
 *
 * What adds up before does so after: misses are the sum of their reasons, and who was connected
 * then counts as having connected since, so that every end has a beginning.
 */
#ifndef KVP_DAEMON_BASELINE_H
#define KVP_DAEMON_BASELINE_H

#include "daemon/pool.h"
#include "daemon/session.h"
#include "daemon/usage.h"

/* Since the start; what the pool counts is not here. All are uint64_t. */
struct domain_counts {
	uint64_t connects, ended[REASON_MAX];
	uint64_t protocol_errors;
	uint64_t waits, waits_served, waits_timed_out;
	uint64_t reports;
	uint64_t hints;
};

struct baseline {
	uint64_t at; /* when; 0: since the start */
	struct pool_stats pool;
	struct usage usage;
	uint64_t touches_lost;
	struct domain_counts counts;
};

/* Takes away what was counted before. The fields of stats that count nothing stay. */
void baseline_pool(const struct baseline *b, struct pool_stats *stats);
void baseline_usage(const struct baseline *b, struct usage *usage, uint64_t *touches_lost);
void baseline_counts(const struct baseline *b, struct domain_counts *counts);

#endif
