/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of GGUF files, piece by piece, also wrong ones. */
#ifndef KVP_TESTS_FUZZ_GGUF_FILE_H
#define KVP_TESTS_FUZZ_GGUF_FILE_H

#include <stddef.h>
#include <stdint.h>

struct gguf_file {
	uint8_t data[4096];
	size_t n;
	uint64_t pairs;
};

void gguf_file_begin(struct gguf_file *f);
void gguf_file_text(struct gguf_file *f, const char *key, const char *value);
void gguf_file_u32(struct gguf_file *f, const char *key, uint32_t value);
void gguf_file_array(struct gguf_file *f, const char *key, const uint32_t *values, size_t n);
/* A list of tokens, as every model has one. */
void gguf_file_texts(struct gguf_file *f, const char *key, size_t n);
/* Any type, and any bytes for the value. */
void gguf_file_raw(struct gguf_file *f, const char *key, uint32_t type, const void *value,
		   size_t n);

/* A small model of the kind that most are. */
struct gguf_file gguf_file_llama(void);

#endif
