/* SPDX-License-Identifier: Apache-2.0 */
/* The pass with VPCLMULQDQ on 64 bytes. */
#ifdef __x86_64__
#include "kernels/copy_ops.h"

#define WORDS_TARGET __attribute__((target("sse4.2,pclmul,avx2,avx512f,avx512vl,vpclmulqdq")))
#define FOLD_WIDTH   64
#define FOLD_AHEAD   640

/* x^2111 and x^2047, x^575 and x^511 (mod P). */
#define FOLD_BY_FOUR 0xe9a5d8be, 0x1426a815
#define FOLD_BY_ONE  0x1c19243b, 0x75bba45b

#include "kernels/x86.h"

typedef __m512i fold_vec;

#define fold_pin(v)                 pin_value(v, "v")
#define fold_pin_four(v, w, x, y) __asm__("" : "+v"(v), "+v"(w), "+v"(x), "+v"(y))

WORDS_TARGET static inline fold_vec fold_load(const uint8_t *src)
{
	return _mm512_loadu_si512(src);
}

WORDS_TARGET static inline void fold_store(uint8_t *dst, fold_vec v)
{
	_mm512_storeu_si512(dst, v);
}

WORDS_TARGET static inline void fold_stream(uint8_t *dst, fold_vec v)
{
	_mm512_stream_si512((__m512i *)dst, v);
}

WORDS_TARGET static inline fold_vec fold_seed(uint32_t crc)
{
	return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc));
}

WORDS_TARGET static inline fold_vec fold_key(uint32_t h, uint32_t l)
{
	long long hi = (long long)((uint64_t)h << 32), lo = (long long)((uint64_t)l << 32);

	return _mm512_set_epi64(lo, hi, lo, hi, lo, hi, lo, hi);
}

WORDS_TARGET static inline fold_vec fold_xor(fold_vec a, fold_vec b)
{
	return _mm512_xor_si512(a, b);
}

WORDS_TARGET static inline fold_vec fold_add(fold_vec a, fold_vec key, fold_vec data)
{
	fold_vec h = _mm512_clmulepi64_epi128(a, key, 0x00);
	fold_vec l = _mm512_clmulepi64_epi128(a, key, 0x11);

	return _mm512_ternarylogic_epi64(h, l, data, 0x96); /* h ^ l ^ data */
}

#include "kernels/fold.h"

const struct kvp_copy_ops kvp_copy_ops_avx512 = {
	.name = "avx512",
	.crc = fold_crc,
	.copy_crc = fold_copy_crc,
	.stream = fold_stream_plain,
	.stream_crc = fold_stream_crc,
	.drain = x86_drain,
};
#endif
