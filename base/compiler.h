/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_BASE_COMPILER_H
#define KVP_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/* The smaller and the larger of two values, each evaluated once. */
#define MIN(a, b)                                           \
	({                                                  \
		__typeof__(1 ? (a) : (b)) a_ = (a), b_ = (b); \
		a_ < b_ ? a_ : b_;                          \
	})
#define MAX(a, b)                                           \
	({                                                  \
		__typeof__(1 ? (a) : (b)) a_ = (a), b_ = (b); \
		a_ > b_ ? a_ : b_;                          \
	})

/* Rounds up to a power of two. */
#define ALIGN_UP(x, a) (((x) + ((__typeof__(x))(a) - 1)) & ~((__typeof__(x))(a) - 1))

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

/* True when x is a power of two. */
static inline int is_pow2(uint64_t x)
{
	return x && !(x & (x - 1));
}

/* The number of bits below the highest set one; x must not be 0. */
static inline unsigned int log2_floor(uint64_t x)
{
	return 63 - (unsigned int)__builtin_clzll(x);
}

/* The smallest power of two that is not below x (x <= 2^63). */
static inline uint64_t pow2_ceil(uint64_t x)
{
	return x <= 1 ? 1 : (uint64_t)2 << log2_floor(x - 1);
}

#endif
