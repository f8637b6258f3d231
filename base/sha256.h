/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) from libcrypto.
 *
 * The context lies on the caller's stack: no allocation, no lock and no lazy initialisation, so a
 * lookup can hash from any thread, and in a process that may make no system call.
 */
#ifndef KVP_BASE_SHA256_H
#define KVP_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

/* out = SHA-256(data); out may be data. */
void sha256(const void *data, size_t n, uint8_t out[SHA256_BYTES]);

/* out = SHA-256(a || b); out may be a or b. */
void sha256_pair(const void *a, size_t n_a, const void *b, size_t n_b, uint8_t out[SHA256_BYTES]);

#endif
