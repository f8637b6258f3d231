/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C: the Castagnoli polynomial, reflected, with the register inverted at both ends (RFC 3720,
 * B.4). crc32c(0, "123456789", 9) is 0xe3069283.
 */
#ifndef KVP_KERNELS_CRC32C_H
#define KVP_KERNELS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what crc is the checksum of, followed by data. That of nothing is 0. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n);

/* The checksum of A followed by B, from that of A, that of B and the length of B. */
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

#endif
