/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one-shot EVP calls allocate a context, and a reused EVP context needs an owner per thread.
 * The low-level calls of the same library run on a context on the stack and take the same
 * accelerated path; OpenSSL 3 marks them deprecated in favour of EVP, hence the define.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/sha256.h"

void sha256_pair(const void *a, size_t n_a, const void *b, size_t n_b, uint8_t out[SHA256_BYTES])
{
	SHA256_CTX ctx;

	SHA256_Init(&ctx);
	SHA256_Update(&ctx, a, n_a);
	SHA256_Update(&ctx, b, n_b);
	SHA256_Final(out, &ctx);
}

void sha256(const void *data, size_t n, uint8_t out[SHA256_BYTES])
{
	sha256_pair(data, n, NULL, 0, out);
}
