/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_BASE_HASH_H
#define KVP_BASE_HASH_H

#include <stdint.h>

/*
 * A bijection that spreads every input bit over the word (two rounds of xor-shift and odd
 * multiplication).
 */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/*
 * Both halves of a product. With a secret number added to each factor nobody can choose words whose
 * results are equal more often than chance has it.
 */
static inline uint64_t fold64(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide p = (wide)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

#endif
