/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/baseline.h"

#define POOL_COUNTERS_AT offsetof(struct pool_stats, published)

static_assert((sizeof(struct pool_stats) - POOL_COUNTERS_AT) % sizeof(uint64_t) == 0,
	      "from published to the end all are uint64_t");
static_assert(sizeof(struct domain_counts) % sizeof(uint64_t) == 0, "all are uint64_t");
static_assert(sizeof(struct usage) % sizeof(uint64_t) == 0, "all are uint64_t");

/* A sum leaves a client out that would make it run over: then it goes back. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void take_away(void *counters, const void *before, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
		uint64_t *n = (uint64_t *)((char *)counters + at);

		*n = since(*n, *(const uint64_t *)((const char *)before + at));
	}
}

void baseline_pool(const struct baseline *b, struct pool_stats *stats)
{
	take_away((char *)stats + POOL_COUNTERS_AT, (const char *)&b->pool + POOL_COUNTERS_AT,
		  sizeof(*stats) - POOL_COUNTERS_AT);
}

void baseline_usage(const struct baseline *b, struct usage *usage, uint64_t *touches_lost)
{
	struct usage u = *usage;

	take_away(&u, &b->usage, sizeof(u));
	/* Sums are made anew, in case that not all of it could be taken away. */
	u.miss = 0;
	for (unsigned int i = 0; i < USAGE_REASONS; i++)
		u.miss += u.reasons[i];
	u.asked = u.hit + u.miss;
	u.shared = MIN(u.shared, u.hit);
	*usage = u;
	*touches_lost = since(*touches_lost, b->touches_lost);
}

void baseline_counts(const struct baseline *b, struct domain_counts *counts)
{
	take_away(counts, &b->counts, sizeof(*counts));
}
