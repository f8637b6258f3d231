/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a model from the header of a GGUF file. The bytes are foreign: every length is
 * checked against what is there, nothing is allocated, and nothing but numbers is taken out.
 */
#ifndef KVP_TOOLS_KVPOOLCTL_GGUF_H
#define KVP_TOOLS_KVPOOLCTL_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "tools/kvpoolctl/exit.h"
#include "tools/kvpoolctl/shape.h"

#define GGUF_HEADER_MAX (64u << 20) /* bytes of a header that are looked at */
#define GGUF_NAME_MAX   64u

struct gguf {
	struct shape shape; /* without types: those of the cache are no part of the file */
	char architecture[GGUF_NAME_MAX];
	uint64_t window;    /* of layers with a sliding window, 0: none */
	uint64_t recurrent; /* size of the state of layers without K/V, 0: none */
};

/*
 * Returns 0, or -EINVAL and *why, which completes a sentence that begins with the name of the file.
 */
int gguf_parse(const uint8_t *data, size_t n, struct gguf *ret, const char **why);

/* Reads the header of a file. */
enum ctl_exit gguf_open(const char *path, struct gguf *ret);

#endif
