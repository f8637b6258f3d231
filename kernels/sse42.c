/* SPDX-License-Identifier: Apache-2.0 */
/* The pass with the CRC32 instruction of SSE4.2, for x86-64 processors without VPCLMULQDQ. */
#ifdef __x86_64__
#include "kernels/copy_ops.h"

#define WORDS_TARGET __attribute__((target("sse4.2,pclmul")))
#define LANES_AHEAD  LANES_GROUP

#include "kernels/x86.h"

/* crc * k, not reduced. */
WORDS_TARGET static inline __m128i sse42_product(uint32_t crc, uint32_t k)
{
	return _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)k), 0);
}

/*
 * A product of two registers stands one place low in its 64 bits, and reducing them with the CRC
 * instruction multiplies by x^32: the constant for e places is x^(e - 33) mod P, here with e =
 * 1536, 1024 and 512.
 */
WORDS_TARGET static inline uint32_t lanes_join(uint32_t crc, uint32_t a, uint32_t b, uint32_t c)
{
	__m128i sum = sse42_product(crc, 0xab7aff2a);

	sum = _mm_xor_si128(sum, sse42_product(a, 0x0d3b6092));
	sum = _mm_xor_si128(sum, sse42_product(b, 0x9e4addf8));
	return words_crc64(0, (uint64_t)_mm_cvtsi128_si64(sum)) ^ c;
}

WORDS_TARGET static inline void lanes_stream(uint8_t *dst, uint64_t word)
{
	_mm_stream_si64((long long *)dst, (long long)word);
}

#include "kernels/lanes.h"

WORDS_TARGET static void sse42_stream(void *to, const void *from, size_t n)
{
	const uint8_t *src = from;
	uint8_t *dst = to;
	size_t at = pass_head(dst, n);

	memcpy(dst, src, at);
	for (; n - at >= sizeof(uint64_t); at += sizeof(uint64_t))
		lanes_take(dst, src, at, PASS_STREAM);
	memcpy(dst + at, src + at, n - at);
}

const struct kvp_copy_ops kvp_copy_ops_sse42 = {
	.name = "sse42",
	.crc = lanes_crc,
	.copy_crc = lanes_copy_crc,
	.stream = sse42_stream,
	.stream_crc = lanes_stream_crc,
	.drain = x86_drain,
};
#endif
