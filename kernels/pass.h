/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every variant of the copy kernels is made of: a pass goes over the bytes [from, to) of src
 * once, extends a checksum by them and, unless it only reads, stores them at the same offset of
 * dst.
 *
 * The checksum must be that of the bytes that were stored, even while another process writes to
 * src. So a pass loads each byte once, and pins what it loaded: a compiler is free to load plain
 * memory a second time, and a value that went through pin_value() is one that it can no longer get
 * from memory.
 */
#ifndef KVP_KERNELS_PASS_H
#define KVP_KERNELS_PASS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* A pass is inlined with its kind as a constant, so that each kind becomes a loop of its own. */
#define PASS_INLINE static inline __attribute__((always_inline))

#ifdef __clang__
#define PASS_UNROLL_8 _Pragma("clang loop unroll_count(8)")
#else
#define PASS_UNROLL_8 _Pragma("GCC unroll 8")
#endif

enum pass {
	PASS_READ,   /* checksum only; dst is not used */
	PASS_COPY,   /* ordinary stores */
	PASS_STREAM, /* non-temporal stores of whole cache lines, ordinary stores at both ends */
};

#define PASS_LINE 64

/* "r" for a general register, "x" for an SSE or AVX one, "v" for any vector register of AVX-512. */
#define pin_value(v, constraint) __asm__("" : "+" constraint(v))

/* How many bytes of dst precede its first whole cache line, at most n. */
PASS_INLINE size_t pass_head(const uint8_t *dst, size_t n)
{
	size_t head = -(uintptr_t)dst & (PASS_LINE - 1);

	return MIN(head, n);
}

#endif
