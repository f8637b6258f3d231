/* SPDX-License-Identifier: Apache-2.0 */
/* What the variants for x86-64 have in common. */
#ifndef KVP_KERNELS_X86_H
#define KVP_KERNELS_X86_H

#include <immintrin.h>
#include <stdint.h>

WORDS_TARGET static inline uint32_t words_crc8(uint32_t crc, uint8_t byte)
{
	return _mm_crc32_u8(crc, byte);
}

WORDS_TARGET static inline uint32_t words_crc64(uint32_t crc, uint64_t word)
{
	return (uint32_t)_mm_crc32_u64(crc, word);
}

/* Non-temporal stores are not ordered by what a release store compiles to; this does it. */
static void x86_drain(void)
{
	_mm_sfence();
}

#endif
