/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that follow from a seed, the same everywhere (xorshift64*). */
#ifndef KVP_TESTS_SHM_RANDOM_H
#define KVP_TESTS_SHM_RANDOM_H

#include "base/hash.h"

struct random {
	uint64_t state; /* never 0 */
};

static inline struct random random_seed(uint64_t seed)
{
	return (struct random){ mix64(seed + 1) | 1 };
}

static inline uint64_t random_next(struct random *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1dull;
}

/* 0 to n - 1 */
static inline uint32_t random_below(struct random *r, uint32_t n)
{
	return (uint32_t)((random_next(r) >> 32) * n >> 32);
}

#endif
