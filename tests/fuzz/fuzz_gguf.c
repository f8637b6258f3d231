/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header of a GGUF file. What is accepted is a shape whose size can be computed, and the same
 * again when it is parsed again.
 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/gguf_file.h"
#include "tools/kvpoolctl/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gguf g, again;
	const char *why = NULL;
	uint64_t bytes;

	memset(&g, 0, sizeof(g));
	memset(&again, 0, sizeof(again));
	if (gguf_parse(data, n, &g, &why) < 0) {
		assert(why && *why);
		return 0;
	}
	assert(memchr(g.architecture, 0, sizeof(g.architecture)));
	assert(g.shape.layers && g.shape.layer_heads && g.shape.head_dim_k);
	g.shape.k = g.shape.v = shape_type("f32");
	assert(shape_token_bytes(&g.shape, &bytes, &why) == 0 && bytes >= 4);
	assert(gguf_parse(data, n, &again, &why) == 0);
	assert(again.shape.layer_heads == g.shape.layer_heads && again.window == g.window);
	return 0;
}

void fuzz_seeds(void (*tell)(const void *data, size_t n))
{
	static const uint32_t heads[] = { 8, 0, 4 };
	struct gguf_file f = gguf_file_llama();

	tell(f.data, f.n);
	gguf_file_u32(&f, "llama.attention.key_length", 256);
	gguf_file_u32(&f, "llama.attention.sliding_window", 512);
	gguf_file_u32(&f, "llama.ssm.state_size", 16);
	tell(f.data, f.n);
	gguf_file_begin(&f);
	gguf_file_text(&f, "general.architecture", "x");
	gguf_file_u32(&f, "x.block_count", 3);
	gguf_file_u32(&f, "x.attention.key_length", 64);
	gguf_file_u32(&f, "x.attention.value_length", 64);
	gguf_file_array(&f, "x.attention.head_count_kv", heads, 3);
	tell(f.data, f.n);
	gguf_file_u32(&f, "x.attention.kv_lora_rank", 512);
	gguf_file_u32(&f, "x.rope.dimension_count", 64);
	gguf_file_raw(&f, "nested", 9, "\x09\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0ab",
		      26);
	tell(f.data, f.n);
}
