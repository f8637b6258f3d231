/* SPDX-License-Identifier: Apache-2.0 */
/* The pass with VPCLMULQDQ on 32 bytes, for x86-64 processors that have it without AVX-512. */
#ifdef __x86_64__
#include "kernels/copy_ops.h"

#define WORDS_TARGET __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))
#define FOLD_WIDTH   32
#define FOLD_AHEAD   256

/* x^1087 and x^1023, x^319 and x^255 (mod P). */
#define FOLD_BY_FOUR 0x6577b245, 0x7417153f
#define FOLD_BY_ONE  0x33ccbbbc, 0xa2158b34

#include "kernels/x86.h"

typedef __m256i fold_vec;

#define fold_pin(v)                 pin_value(v, "x")
#define fold_pin_four(v, w, x, y) __asm__("" : "+x"(v), "+x"(w), "+x"(x), "+x"(y))

WORDS_TARGET static inline fold_vec fold_load(const uint8_t *src)
{
	return _mm256_loadu_si256((const __m256i *)src);
}

WORDS_TARGET static inline void fold_store(uint8_t *dst, fold_vec v)
{
	_mm256_storeu_si256((__m256i *)dst, v);
}

WORDS_TARGET static inline void fold_stream(uint8_t *dst, fold_vec v)
{
	_mm256_stream_si256((__m256i *)dst, v);
}

WORDS_TARGET static inline fold_vec fold_seed(uint32_t crc)
{
	return _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)crc));
}

WORDS_TARGET static inline fold_vec fold_key(uint32_t h, uint32_t l)
{
	long long hi = (long long)((uint64_t)h << 32), lo = (long long)((uint64_t)l << 32);

	return _mm256_set_epi64x(lo, hi, lo, hi);
}

WORDS_TARGET static inline fold_vec fold_xor(fold_vec a, fold_vec b)
{
	return _mm256_xor_si256(a, b);
}

WORDS_TARGET static inline fold_vec fold_add(fold_vec a, fold_vec key, fold_vec data)
{
	fold_vec h = _mm256_clmulepi64_epi128(a, key, 0x00);
	fold_vec l = _mm256_clmulepi64_epi128(a, key, 0x11);

	return fold_xor(fold_xor(h, l), data);
}

#include "kernels/fold.h"

const struct kvp_copy_ops kvp_copy_ops_avx2 = {
	.name = "avx2",
	.crc = fold_crc,
	.copy_crc = fold_copy_crc,
	.stream = fold_stream_plain,
	.stream_crc = fold_stream_crc,
	.drain = x86_drain,
};
#endif
