/* SPDX-License-Identifier: Apache-2.0 */
/* Files of token ids, and the keys of the prefixes that they are (doc/keys.md). */
#ifndef KVP_TOOLS_KVPOOLCTL_TOKENS_H
#define KVP_TOOLS_KVPOOLCTL_TOKENS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/kvpoolctl/exit.h"

#define TOKENS_MAX       (16u << 20)
#define TOKENS_KEY_BYTES 32u

struct tokens {
	uint32_t *ids;
	size_t n;
};

/*
 * Reads decimal ids from 0 to 2^32 - 1 with blanks, commas or new lines between them. name is for
 * messages. EXIT_FAILED and the line where it is none of that. The caller frees *ret.
 */
enum ctl_exit tokens_read(FILE *in, const char *name, struct tokens *ret);

/* The same from the file of that name, "-" is stdin. */
enum ctl_exit tokens_open(const char *name, struct tokens *ret);
void tokens_free(struct tokens *t);

/*
 * Full blocks that a lookup of these tokens asks for: the last token is always computed, so a block
 * that ends with it does not count.
 */
size_t tokens_blocks(const struct tokens *t, uint32_t block_tokens);

/* Writes the keys of the first n blocks, 32 bytes each; seed is the fingerprint of a namespace. */
void tokens_keys(const struct tokens *t, uint32_t block_tokens,
		 const uint8_t seed[TOKENS_KEY_BYTES], size_t n, uint8_t *out);

#endif
