/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass by carry-less multiplication of whole vectors. A vector holds polynomials of 128 bits,
 * each of them something that is congruent (mod P) to all the bytes that its place has seen. To
 * append data that lies D bits further on, each one is multiplied by x^D: its two halves, which
 * stand for h * x^64 and l, times x^(D + 64) mod P and x^D mod P. Four vectors in turn hide the
 * latency of the multiplication, so D is four vectors in the loop, and one vector when they are
 * brought together. What is left in one vector is reduced by the CRC instruction.
 *
 * Bits are reflected, as CRC32C wants it; a product of two reflected words comes out one place
 * low, so that the constants are x^(D + 63) and x^(D - 1), and they stand in the upper half of
 * their word.
 *
 * Included by a variant that has defined what words.h wants, and
 *
 *	fold_vec, FOLD_WIDTH			the type of a vector and its bytes
 *	FOLD_AHEAD				how far ahead of the loads to prefetch, in bytes
 *	FOLD_BY_FOUR, FOLD_BY_ONE		pairs of constants for D = four vectors and D = one
 *	fold_pin(v), fold_pin_four(v, w, x, y)	pin_value() for vectors
 *	fold_load, fold_store, fold_stream	unaligned load, store; aligned non-temporal store
 *	fold_seed(crc)				a vector of zeros but for crc in its lowest 32 bits
 *	fold_key(h, l)				a vector with a pair of constants in each 128 bits
 *	fold_add(a, key, data)			a * x^D + data
 *	fold_xor(a, b)
 */
#ifndef KVP_KERNELS_FOLD_H
#define KVP_KERNELS_FOLD_H

#include "kernels/words.h"

#define FOLD_GROUP (4 * FOLD_WIDTH)

/*
 * How far ahead to prefetch for a copy without a checksum. One with a checksum has more
 * instructions to a line and wants another distance, FOLD_AHEAD. Both are measured: some distances
 * are worse than none and cost a fifth of the speed of a large copy.
 */
#define FOLD_AHEAD_PLAIN 256

struct fold_four {
	fold_vec a, b, c, d;
};

WORDS_TARGET PASS_INLINE void fold_put(uint8_t *dst, size_t at, fold_vec v, const enum pass pass)
{
	if (pass == PASS_COPY)
		fold_store(dst + at, v);
	else if (pass == PASS_STREAM)
		fold_stream(dst + at, v);
}

WORDS_TARGET PASS_INLINE fold_vec fold_take(uint8_t *dst, const uint8_t *src, size_t at,
					    const enum pass pass)
{
	fold_vec v = fold_load(src + at);

	fold_pin(v);
	fold_put(dst, at, v, pass);
	return v;
}

/* A group. Loads and stores that took turns here cost a tenth of the speed of a large copy. */
WORDS_TARGET PASS_INLINE struct fold_four fold_take_four(uint8_t *dst, const uint8_t *src,
							 size_t at, const enum pass pass)
{
	struct fold_four v = {
		.a = fold_load(src + at),
		.b = fold_load(src + at + FOLD_WIDTH),
		.c = fold_load(src + at + 2 * FOLD_WIDTH),
		.d = fold_load(src + at + 3 * FOLD_WIDTH),
	};

	fold_pin_four(v.a, v.b, v.c, v.d);
	fold_put(dst, at, v.a, pass);
	fold_put(dst, at + FOLD_WIDTH, v.b, pass);
	fold_put(dst, at + 2 * FOLD_WIDTH, v.c, pass);
	fold_put(dst, at + 3 * FOLD_WIDTH, v.d, pass);
	return v;
}

/* The register after the bytes that v stands for. */
WORDS_TARGET PASS_INLINE uint32_t fold_reduce(fold_vec v)
{
	uint8_t bytes[FOLD_WIDTH];

	fold_store(bytes, v);
	return words_pass(0, NULL, bytes, 0, sizeof(bytes), PASS_READ);
}

PASS_INLINE void fold_prefetch(const uint8_t *src)
{
	/* Spelled out: the compiler keeps a loop of four turns, and a large copy loses a fifth. */
	__builtin_prefetch(src);
	__builtin_prefetch(src + PASS_LINE);
	if (FOLD_GROUP > 2 * PASS_LINE) {
		__builtin_prefetch(src + 2 * PASS_LINE);
		__builtin_prefetch(src + 3 * PASS_LINE);
	}
}

/*
 * The pass over [from, to), which is at least one group long; what is left over is less than a
 * vector.
 */
WORDS_TARGET PASS_INLINE uint32_t fold_groups(uint32_t crc, uint8_t *dst, const uint8_t *src,
					      size_t from, size_t to, const enum pass pass)
{
	const fold_vec four = fold_key(FOLD_BY_FOUR), one = fold_key(FOLD_BY_ONE);
	struct fold_four sum = fold_take_four(dst, src, from, pass);
	size_t at = from + FOLD_GROUP;
	fold_vec all;

	sum.a = fold_xor(sum.a, fold_seed(crc));
	for (; to - at >= FOLD_GROUP; at += FOLD_GROUP) {
		struct fold_four next;

		fold_prefetch(src + at + FOLD_AHEAD);
		next = fold_take_four(dst, src, at, pass);
		sum.a = fold_add(sum.a, four, next.a);
		sum.b = fold_add(sum.b, four, next.b);
		sum.c = fold_add(sum.c, four, next.c);
		sum.d = fold_add(sum.d, four, next.d);
	}
	all = fold_add(sum.a, one, sum.b);
	all = fold_add(all, one, sum.c);
	all = fold_add(all, one, sum.d);
	for (; to - at >= FOLD_WIDTH; at += FOLD_WIDTH)
		all = fold_add(all, one, fold_take(dst, src, at, pass));
	return fold_reduce(all);
}

WORDS_TARGET PASS_INLINE uint32_t fold_pass(uint32_t crc, uint8_t *dst, const uint8_t *src,
					    size_t n, const enum pass pass)
{
	const enum pass ends = pass == PASS_READ ? PASS_READ : PASS_COPY;
	size_t at = pass == PASS_STREAM ? pass_head(dst, n) : 0;

	crc = words_pass(crc, dst, src, 0, at, ends);
	if (n - at >= FOLD_GROUP) {
		crc = fold_groups(crc, dst, src, at, n, pass);
		at = n - (n - at) % FOLD_WIDTH;
	}
	return words_pass(crc, dst, src, at, n, ends);
}

/* The functions of the table; the first is the same pass without a checksum. */
WORDS_TARGET static void fold_stream_plain(void *to, const void *from, size_t n)
{
	const uint8_t *src = from;
	uint8_t *dst = to;
	size_t at = pass_head(dst, n);

	memcpy(dst, src, at);
	for (; n - at >= FOLD_GROUP; at += FOLD_GROUP) {
		fold_prefetch(src + at + FOLD_AHEAD_PLAIN);
		fold_take_four(dst, src, at, PASS_STREAM);
	}
	memcpy(dst + at, src + at, n - at);
}

WORDS_TARGET static uint32_t fold_crc(uint32_t crc, const void *data, size_t n)
{
	return ~fold_pass(~crc, NULL, data, n, PASS_READ);
}

WORDS_TARGET static uint32_t fold_copy_crc(void *dst, const void *src, size_t n)
{
	return ~fold_pass(~0u, dst, src, n, PASS_COPY);
}

WORDS_TARGET static uint32_t fold_stream_crc(void *dst, const void *src, size_t n)
{
	return ~fold_pass(~0u, dst, src, n, PASS_STREAM);
}

#endif
