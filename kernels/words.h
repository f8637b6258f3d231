/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass in steps of one word, for short runs and for the ends of long ones. Included by a
 * variant after it has defined WORDS_TARGET, the function attribute for its instructions, and
 *
 *	words_crc64(crc, word)	crc extended by 8 bytes, the lowest first
 *	words_crc8(crc, byte)	crc extended by one
 *
 * crc is the bare register here: without the inversion at the start and at the end.
 */
#ifndef KVP_KERNELS_WORDS_H
#define KVP_KERNELS_WORDS_H

#include <string.h>

#include "kernels/pass.h"

/* Loads a word and stores it where the pass asks for it. */
WORDS_TARGET PASS_INLINE uint64_t words_take(uint8_t *dst, const uint8_t *src, size_t at,
					     const enum pass pass)
{
	uint64_t word;

	memcpy(&word, src + at, sizeof(word));
	if (pass != PASS_READ) {
		pin_value(word, "r");
		memcpy(dst + at, &word, sizeof(word));
	}
	return word;
}

WORDS_TARGET PASS_INLINE uint32_t words_pass(uint32_t crc, uint8_t *dst, const uint8_t *src,
					     size_t from, size_t to, const enum pass pass)
{
	size_t at = from;

	for (; to - at >= sizeof(uint64_t); at += sizeof(uint64_t))
		crc = words_crc64(crc, words_take(dst, src, at, pass));
	for (; at < to; at++) {
		uint8_t byte = src[at];

		if (pass != PASS_READ) {
			pin_value(byte, "r");
			dst[at] = byte;
		}
		crc = words_crc8(crc, byte);
	}
	return crc;
}

#endif
