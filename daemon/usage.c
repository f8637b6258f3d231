/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "daemon/usage.h"

/* 2^48 tokens are beyond what one client can look up; 2^15 clients that claim them still add up. */
#define USAGE_CLAIM_MAX (UINT64_C(1) << 48)
#define USAGE_SUM_MAX   (UINT64_C(1) << 63)

static uint64_t usage_counter(const struct session_map *m, enum session_counter c)
{
	uint64_t n = load_relaxed(&m->head->counter[c]);

	return MIN(n, USAGE_CLAIM_MAX);
}

void usage_read(const struct session_map *m, struct usage *ret)
{
	uint64_t asked = usage_counter(m, COUNTER_ASKED_TOKENS);
	uint64_t hit = usage_counter(m, COUNTER_HIT_TOKENS);
	uint64_t shared = usage_counter(m, COUNTER_SHARED_TOKENS);

	/*
	 * Read one after the other while the client counts on: a sound client's may disagree too.
	 */
	hit = MIN(hit, asked);
	*ret = (struct usage){
		.lookups = usage_counter(m, COUNTER_LOOKUPS),
		.asked = asked,
		.hit = hit,
		.miss = asked - hit,
		.shared = MIN(shared, hit),
		.raced = usage_counter(m, COUNTER_RACED),
	};
}

/* All or nothing, so that the sums go on adding up. */
void usage_add(struct usage *sum, const struct usage *u)
{
	if (sum->asked + u->asked > USAGE_SUM_MAX || sum->lookups + u->lookups > USAGE_SUM_MAX ||
	    sum->raced + u->raced > USAGE_SUM_MAX)
		return;
	sum->lookups += u->lookups;
	sum->asked += u->asked;
	sum->hit += u->hit;
	sum->miss += u->miss;
	sum->shared += u->shared;
	sum->raced += u->raced;
}
