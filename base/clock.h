/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One clock for every deadline: CLOCK_BOOTTIME, in nanoseconds, so that a suspend counts and a
 * clock change does not.
 */
#ifndef KVP_BASE_CLOCK_H
#define KVP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

#endif
