/* SPDX-License-Identifier: Apache-2.0 */
/* The pass with the CRC32 instructions of ARMv8, joined by PMULL. */
#ifdef __aarch64__
#include <arm_neon.h>
#include <string.h>

#include "kernels/copy_ops.h"

#ifdef __clang__
#define WORDS_TARGET __attribute__((target("crc,crypto")))
#else
#define WORDS_TARGET __attribute__((target("+crc+crypto")))
#endif
#define LANES_AHEAD 1024

/*
 * Not by <arm_acle.h>: older compilers offer its functions only where the whole file may use them.
 */
WORDS_TARGET static inline uint32_t words_crc8(uint32_t crc, uint8_t byte)
{
	__asm__("crc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
	return crc;
}

WORDS_TARGET static inline uint32_t words_crc64(uint32_t crc, uint64_t word)
{
	__asm__("crc32cx %w0, %w0, %1" : "+r"(crc) : "r"(word));
	return crc;
}

/* crc * k, not reduced: less than 64 bits. */
WORDS_TARGET static inline uint64_t armv8_product(uint32_t crc, uint32_t k)
{
	return (uint64_t)vmull_p64(crc, k);
}

/* The constants are those of the variant for SSE4.2. */
WORDS_TARGET static inline uint32_t lanes_join(uint32_t crc, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t sum = armv8_product(crc, 0xab7aff2a);

	sum ^= armv8_product(a, 0x0d3b6092) ^ armv8_product(b, 0x9e4addf8);
	return words_crc64(0, sum) ^ c;
}

/*
 * STNP would be the store, but it is a mere hint that the large cores take for an ordinary store.
 */
WORDS_TARGET static inline void lanes_stream(uint8_t *dst, uint64_t word)
{
	memcpy(dst, &word, sizeof(word));
}

#include "kernels/lanes.h"

static void armv8_stream(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
}

/* All stores are ordinary ones, and a release store orders them. */
static void armv8_drain(void)
{
}

const struct kvp_copy_ops kvp_copy_ops_armv8 = {
	.name = "armv8",
	.crc = lanes_crc,
	.copy_crc = lanes_copy_crc,
	.stream = armv8_stream,
	.stream_crc = lanes_stream_crc,
	.drain = armv8_drain,
};
#endif
