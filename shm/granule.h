/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the memory of a pool is cut up: into granules, and these into extents of one namespace each.
 *
 * The granule is the largest power of two of which the pool has at least 128 when it begins, from
 * 64 KiB to 64 MiB. An extent is one granule, or as many as hold four blocks; so a small pool still
 * serves several namespaces, and one of 8 GiB or more has extents of 64 MiB.
 */
#ifndef KVP_SHM_GRANULE_H
#define KVP_SHM_GRANULE_H

#include "base/compiler.h"

#define GRANULES_MIN     128u
#define GRANULE_MIN_LOG2 16u /* 64 KiB */
#define GRANULE_MAX_LOG2 26u /* 64 MiB */
#define EXTENT_BLOCKS    4u

/* Of a pool that begins with so many bytes. Its owner rounds them down to whole granules. */
static inline uint32_t granule_shift_of(uint64_t pool_bytes)
{
	uint32_t shift = log2_floor(MAX(pool_bytes / GRANULES_MIN, UINT64_C(1)));

	return MIN(MAX(shift, GRANULE_MIN_LOG2), GRANULE_MAX_LOG2);
}

/* How many an extent has whose slots lie stride bytes apart, at most 2^61. */
static inline uint64_t granules_of_extent(uint64_t stride, uint32_t shift)
{
	uint64_t bytes = EXTENT_BLOCKS * stride + (UINT64_C(1) << shift) - 1;

	return MAX(bytes >> shift, UINT64_C(1));
}

#endif
