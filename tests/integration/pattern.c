/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "tests/integration/pattern.h"

#define BLOCKS_MAX 4096u

struct kvpool *pattern_connect(const char *socket, const char *name)
{
	struct kvpool_options o = {
		.size = sizeof(o), .socket = socket, .name = name, .timeout_ms = 20000
	};
	struct kvpool *pool;

	assert(kvpool_connect(&o, &pool) == 0);
	assert(kvpool_state(pool) == KVPOOL_CONNECTED);
	return pool;
}

struct kvpool_ns *pattern_ns(struct kvpool *pool, const char *model, uint64_t block_bytes)
{
	static const uint8_t weights[32] = { 1, 2, 3 };
	struct kvpool_ns_desc d = {
		.size = sizeof(d),
		.model = model,
		.weights = weights,
		.type_k = "f16",
		.type_v = "f16",
		.n_layers = 2,
		.n_kv_heads = 1,
		.head_dim_k = 8,
		.head_dim_v = 8,
		.block_tokens = PATTERN_BLOCK_TOKENS,
		.block_bytes = block_bytes,
		.layout = "pattern",
		.engine = "test/1",
	};
	struct kvpool_ns *ns;

	assert(kvpool_ns_open(pool, &d, &ns) == 0);
	return ns;
}

void pattern_tokens(uint64_t c, size_t blocks, int32_t *tokens)
{
	for (size_t i = 0; i < blocks * PATTERN_BLOCK_TOKENS + 1; i++)
		tokens[i] = (int32_t)(mix64(c << 24 | i) & 0x7fffffff);
}

/* Word w of a block; the last bytes of an odd size are the start of the next word. */
static uint64_t word(uint64_t c, size_t i, size_t w)
{
	return mix64(mix64(c * 4099 + i) + w);
}

void pattern_fill(uint64_t c, size_t i, void *block, uint64_t bytes)
{
	char *to = block;

	for (size_t w = 0; w * 8 < bytes; w++) {
		uint64_t v = word(c, i, w);

		memcpy(to + w * 8, &v, bytes - w * 8 < 8 ? bytes - w * 8 : 8);
	}
}

int pattern_check(uint64_t c, size_t i, const void *block, uint64_t bytes)
{
	const char *from = block;

	for (size_t w = 0; w * 8 < bytes; w++) {
		uint64_t v = word(c, i, w);

		if (memcmp(from + w * 8, &v, bytes - w * 8 < 8 ? bytes - w * 8 : 8))
			return 0;
	}
	return 1;
}

struct fill {
	uint64_t c, bytes;
};

static int fill_block(void *arg, size_t i, void *block)
{
	const struct fill *f = arg;

	pattern_fill(f->c, i, block, f->bytes);
	return 0;
}

int pattern_publish(struct kvpool_ns *ns, uint64_t c, size_t blocks)
{
	struct fill f = { c, kvpool_ns_block_bytes(ns) };
	int32_t tokens[BLOCKS_MAX * PATTERN_BLOCK_TOKENS + 1];

	assert(blocks <= BLOCKS_MAX);
	pattern_tokens(c, blocks, tokens);
	return kvpool_publish(ns, tokens, blocks * PATTERN_BLOCK_TOKENS, fill_block, &f);
}

size_t pattern_acquire(struct kvpool_ns *ns, struct kvpool_lease *lease, uint64_t c, size_t blocks)
{
	int32_t tokens[BLOCKS_MAX * PATTERN_BLOCK_TOKENS + 1];
	size_t found;

	assert(blocks <= BLOCKS_MAX);
	pattern_tokens(c, blocks, tokens);
	found = kvpool_acquire(ns, lease, tokens, blocks * PATTERN_BLOCK_TOKENS + 1, 0);
	assert(found == kvpool_lease_tokens(lease) && found % PATTERN_BLOCK_TOKENS == 0);
	found /= PATTERN_BLOCK_TOKENS;
	assert(found == kvpool_lease_blocks(lease) && found <= blocks);
	for (size_t i = 0; i < found; i++)
		assert(pattern_check(c, i, kvpool_lease_block(lease, i),
				     kvpool_ns_block_bytes(ns)));
	return found;
}
