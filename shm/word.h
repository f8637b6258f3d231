/* SPDX-License-Identifier: Apache-2.0 */
/* Packing and taking apart the 64-bit words of shm/layout.h. */
#ifndef KVP_SHM_WORD_H
#define KVP_SHM_WORD_H

#include "shm/layout.h"

#define WORD_GEN_SHIFT  16
#define WORD_TIER_SHIFT 8
#define WORD_FLAG_SHIFT 4
#define WORD_GEN_MAX    ((UINT64_C(1) << 48) - 1)

static inline uint64_t word_make(enum desc_state state, unsigned int tiers, uint64_t gen)
{
	return gen << WORD_GEN_SHIFT | (uint64_t)tiers << WORD_TIER_SHIFT | (uint64_t)state;
}

static inline enum desc_state word_state(uint64_t w)
{
	return (enum desc_state)(w & 15);
}

static inline unsigned int word_flags(uint64_t w)
{
	return w >> WORD_FLAG_SHIFT & 15;
}

static inline unsigned int word_tiers(uint64_t w)
{
	return w >> WORD_TIER_SHIFT & 255;
}

static inline uint64_t word_gen(uint64_t w)
{
	return w >> WORD_GEN_SHIFT;
}

static inline uint64_t word_with_state(uint64_t w, enum desc_state state)
{
	return (w & ~UINT64_C(15)) | (uint64_t)state;
}

/* A block that a reader may pin in this tier. */
static inline int word_readable(uint64_t w, enum tier tier)
{
	return word_state(w) == DESC_COMMITTED && (word_tiers(w) >> tier & 1);
}

static inline uint64_t entry_make(uint32_t tag, uint64_t gen, uint32_t desc)
{
	return (uint64_t)tag << 48 | (gen & 0xffff) << 32 | ((uint64_t)desc + 1);
}

static inline uint32_t entry_tag(uint64_t e)
{
	return (uint32_t)(e >> 48);
}

static inline uint32_t entry_gen(uint64_t e)
{
	return (uint32_t)(e >> 32 & 0xffff);
}

/* The descriptor of an entry that is not empty. */
static inline uint32_t entry_desc(uint64_t e)
{
	return (uint32_t)e - 1;
}

static inline uint64_t hazard_make(uint32_t desc, enum tier tier, uint32_t span)
{
	return (uint64_t)span << 40 | (uint64_t)tier << 32 | ((uint64_t)desc + 1);
}

/* The descriptor that a hazard word names; DESC_NONE when it is empty. */
static inline uint32_t hazard_desc(uint64_t h)
{
	return (uint32_t)h - 1;
}

static inline uint32_t hazard_tier(uint64_t h)
{
	return (uint32_t)(h >> 32 & 255);
}

#endif
