/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include "tests/fuzz/gguf_file.h"

#include <assert.h>
#include <string.h>

#define PAIRS_AT 16 /* where the header counts its keys */

static void put(struct gguf_file *f, const void *data, size_t n)
{
	assert(f->n + n <= sizeof(f->data));
	if (n)
		memcpy(f->data + f->n, data, n);
	f->n += n;
}

static void put_u32(struct gguf_file *f, uint32_t n)
{
	put(f, &n, sizeof(n));
}

static void put_u64(struct gguf_file *f, uint64_t n)
{
	put(f, &n, sizeof(n));
}

static void put_text(struct gguf_file *f, const char *s)
{
	put_u64(f, strlen(s));
	put(f, s, strlen(s));
}

void gguf_file_begin(struct gguf_file *f)
{
	*f = (struct gguf_file){ 0 };
	put(f, "GGUF", 4);
	put_u32(f, 3);
	put_u64(f, 291);
	put_u64(f, 0);
}

void gguf_file_raw(struct gguf_file *f, const char *key, uint32_t type, const void *value, size_t n)
{
	put_text(f, key);
	put_u32(f, type);
	put(f, value, n);
	f->pairs++;
	memcpy(f->data + PAIRS_AT, &f->pairs, sizeof(f->pairs));
}

void gguf_file_text(struct gguf_file *f, const char *key, const char *value)
{
	gguf_file_raw(f, key, 8, NULL, 0);
	put_text(f, value);
}

void gguf_file_u32(struct gguf_file *f, const char *key, uint32_t value)
{
	gguf_file_raw(f, key, 4, &value, sizeof(value));
}

void gguf_file_array(struct gguf_file *f, const char *key, const uint32_t *values, size_t n)
{
	gguf_file_raw(f, key, 9, NULL, 0);
	put_u32(f, 4);
	put_u64(f, n);
	put(f, values, n * sizeof(*values));
}

void gguf_file_texts(struct gguf_file *f, const char *key, size_t n)
{
	gguf_file_raw(f, key, 9, NULL, 0);
	put_u32(f, 8);
	put_u64(f, n);
	while (n--)
		put_text(f, "token");
}

struct gguf_file gguf_file_llama(void)
{
	struct gguf_file f;
	float base = 500000;

	gguf_file_begin(&f);
	/* The architecture need not come first. */
	gguf_file_text(&f, "general.name", "a model");
	gguf_file_u32(&f, "llama.block_count", 32);
	gguf_file_text(&f, "general.architecture", "llama");
	gguf_file_u32(&f, "llama.embedding_length", 4096);
	gguf_file_u32(&f, "llama.attention.head_count", 32);
	gguf_file_u32(&f, "llama.attention.head_count_kv", 8);
	gguf_file_raw(&f, "llama.rope.freq_base", 6, &base, sizeof(base));
	gguf_file_u32(&f, "other.block_count", 99);
	gguf_file_texts(&f, "tokenizer.ggml.tokens", 50);
	return f;
}
