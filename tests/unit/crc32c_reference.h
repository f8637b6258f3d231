/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C bit by bit, as the definition says it, and bytes to try it on. */
#ifndef KVP_TESTS_UNIT_CRC32C_REFERENCE_H
#define KVP_TESTS_UNIT_CRC32C_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t reference_crc32c(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *bytes = data;

	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

/* xorshift64: the same numbers in each run. */
static inline uint64_t reference_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline void reference_fill(uint8_t *data, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(reference_random(&seed) >> 32);
}

#endif
