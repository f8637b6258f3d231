/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass with a CRC instruction. It takes three cycles or so and one can start in each, so three
 * neighbouring runs of LANES_RUN bytes, the lanes, are checksummed side by side, each from zero.
 * Then
 *
 *	crc' = crc * x^(3 * L) + a * x^(2 * L) + b * x^L + c (mod P), with L = 8 * LANES_RUN
 *
 * which takes three carry-less products whose sum is reduced once. The old crc enters only there,
 * so the chain from one group to the next is short and the lanes of the next group need not wait
 * for it. A lane is one cache line: longer ones read and write at three distant places, which the
 * prefetchers and the write-combining buffers like less than one.
 *
 * Included by a variant that has defined what words.h wants, and
 *
 *	LANES_AHEAD				how far ahead of the loads to prefetch, in bytes
 *	lanes_join(crc, a, b, c)		the line above
 *	lanes_stream(dst, word)			non-temporal store of a word, dst aligned to 8
 */
#ifndef KVP_KERNELS_LANES_H
#define KVP_KERNELS_LANES_H

#include "kernels/words.h"

#define LANES_RUN   64
#define LANES_GROUP (3 * LANES_RUN)

WORDS_TARGET PASS_INLINE uint64_t lanes_take(uint8_t *dst, const uint8_t *src, size_t at,
					     const enum pass pass)
{
	uint64_t word;

	if (pass != PASS_STREAM)
		return words_take(dst, src, at, pass);
	word = words_take(NULL, src, at, PASS_READ);
	pin_value(word, "r");
	lanes_stream(dst + at, word);
	return word;
}

WORDS_TARGET PASS_INLINE uint32_t lanes_group(uint32_t crc, uint8_t *dst, const uint8_t *src,
					      size_t at, const enum pass pass)
{
	uint32_t a = 0, b = 0, c = 0;
	size_t end = at + LANES_RUN;

	__builtin_prefetch(src + at + LANES_AHEAD);
	__builtin_prefetch(src + at + LANES_AHEAD + LANES_RUN);
	__builtin_prefetch(src + at + LANES_AHEAD + 2 * LANES_RUN);
	/* As a loop of eight turns this is slower by a quarter. */
	PASS_UNROLL_8
	for (; at < end; at += sizeof(uint64_t)) {
		a = words_crc64(a, lanes_take(dst, src, at, pass));
		b = words_crc64(b, lanes_take(dst, src, at + LANES_RUN, pass));
		c = words_crc64(c, lanes_take(dst, src, at + 2 * LANES_RUN, pass));
	}
	return lanes_join(crc, a, b, c);
}

WORDS_TARGET PASS_INLINE uint32_t lanes_pass(uint32_t crc, uint8_t *dst, const uint8_t *src,
					     size_t n, const enum pass pass)
{
	const enum pass ends = pass == PASS_READ ? PASS_READ : PASS_COPY;
	size_t at = pass == PASS_STREAM ? pass_head(dst, n) : 0;

	crc = words_pass(crc, dst, src, 0, at, ends);
	for (; n - at >= LANES_GROUP; at += LANES_GROUP)
		crc = lanes_group(crc, dst, src, at, pass);
	return words_pass(crc, dst, src, at, n, ends);
}

/* The functions of the table. */
WORDS_TARGET static uint32_t lanes_crc(uint32_t crc, const void *data, size_t n)
{
	return ~lanes_pass(~crc, NULL, data, n, PASS_READ);
}

WORDS_TARGET static uint32_t lanes_copy_crc(void *dst, const void *src, size_t n)
{
	return ~lanes_pass(~0u, dst, src, n, PASS_COPY);
}

WORDS_TARGET static uint32_t lanes_stream_crc(void *dst, const void *src, size_t n)
{
	return ~lanes_pass(~0u, dst, src, n, PASS_STREAM);
}

#endif
