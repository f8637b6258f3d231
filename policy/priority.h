/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a priority is worth, in the only measure that an LRU knows: time.
 *
 * 	place in the order = time of last use + (priority - 50) * PRIORITY_STEP_NS
 *
 * So one step counts like that much more recent use. It is soft: what has a high priority and is
 * not used goes in the end, what has a low one and is used stays, and nobody starves. Where two
 * times are compared only the difference matters, so the sum is kept free of signs.
 *
 * The step is 10 s: the pause between two turns of a chat is a few of those, so some steps are
 * enough to outlive the pauses of others; and all 49 of them are 8 minutes, by which an idle prefix
 * of the highest priority goes before one of 50 that is in use.
 *
 * The priority of a namespace is added where namespaces are compared, in no block: a change counts
 * at once for all of its blocks. That of a hint is added to the time of its one use.
 */
#ifndef KVP_POLICY_PRIORITY_H
#define KVP_POLICY_PRIORITY_H

#include "base/clock.h"

#define PRIORITY_DEFAULT 50u
#define PRIORITY_MAX     99u
#define PRIORITY_STEP_NS (10 * NSEC_PER_SEC)

/* To be added to times of use before they are compared with those of another priority. */
static inline uint64_t priority_bias(uint32_t priority)
{
	return priority * PRIORITY_STEP_NS;
}

/* The time that a use at now counts as. */
static inline uint64_t priority_shift(uint64_t now, uint32_t priority)
{
	uint64_t with = now + priority_bias(priority);
	uint64_t without = priority_bias(PRIORITY_DEFAULT);

	return with > without ? with - without : 0;
}

#endif
