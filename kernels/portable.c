/* SPDX-License-Identifier: Apache-2.0 */
/* The pass for any processor: eight bytes at a time through eight tables. */
#include <endian.h>

#include "kernels/copy_ops.h"

#define WORDS_TARGET

/*
 * table[k][v] is the register that holds v, moved on by k + 1 zero bytes. That is linear in the
 * bits of v, so a table is written as what its eight single bits give, and the compiler adds up
 * the rest.
 */
#define BITS(v, a, b, c, d, e, f, g, h)                                                       \
	(((v) & 1 ? a : 0) ^ ((v) & 2 ? b : 0) ^ ((v) & 4 ? c : 0) ^ ((v) & 8 ? d : 0) ^      \
	 ((v) & 16 ? e : 0) ^ ((v) & 32 ? f : 0) ^ ((v) & 64 ? g : 0) ^ ((v) & 128 ? h : 0))
#define ROW4(v, ...)                                                          \
	BITS((v), __VA_ARGS__), BITS((v) + 1, __VA_ARGS__), BITS((v) + 2, __VA_ARGS__), \
	BITS((v) + 3, __VA_ARGS__)
#define ROW16(v, ...)                                                         \
	ROW4((v), __VA_ARGS__), ROW4((v) + 4, __VA_ARGS__), ROW4((v) + 8, __VA_ARGS__), \
	ROW4((v) + 12, __VA_ARGS__)
#define ROW64(v, ...)                                                         \
	ROW16((v), __VA_ARGS__), ROW16((v) + 16, __VA_ARGS__), ROW16((v) + 32, __VA_ARGS__), \
	ROW16((v) + 48, __VA_ARGS__)
#define ROW256(...)                                                           \
	ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__), \
	ROW64(192, __VA_ARGS__)

static const uint32_t table[8][256] = {
	{ ROW256(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf,
		 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78) },
	{ ROW256(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8,
		 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9) },
	{ ROW256(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5,
		 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743) },
	{ ROW256(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6,
		 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f) },
	{ ROW256(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91,
		 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c) },
	{ ROW256(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f,
		 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6) },
	{ ROW256(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53,
		 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4) },
	{ ROW256(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da,
		 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664) },
};

static inline uint32_t words_crc8(uint32_t crc, uint8_t byte)
{
	return crc >> 8 ^ table[0][(crc ^ byte) & 0xff];
}

static inline uint32_t words_crc64(uint32_t crc, uint64_t word)
{
	uint64_t v = le64toh(word) ^ crc;

	return table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
	       table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
	       table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
}

#include "kernels/words.h"

static uint32_t portable_crc(uint32_t crc, const void *data, size_t n)
{
	return ~words_pass(~crc, NULL, data, 0, n, PASS_READ);
}

static uint32_t portable_copy_crc(void *dst, const void *src, size_t n)
{
	return ~words_pass(~0u, dst, src, 0, n, PASS_COPY);
}

static void portable_stream(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
}

static void portable_drain(void)
{
}

const struct kvp_copy_ops kvp_copy_ops_portable = {
	.name = "portable",
	.crc = portable_crc,
	.copy_crc = portable_copy_crc,
	.stream = portable_stream,
	.stream_crc = portable_copy_crc,
	.drain = portable_drain,
};
