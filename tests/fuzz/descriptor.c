/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "base/sha256.h"
#include "tests/fuzz/descriptor.h"

const struct parts descriptor_minimal = {
	.part = {
		{ NSDESC_ENGINE, "example-1" },
		{ NSDESC_MODEL, "tiny" },
		{ NSDESC_WEIGHTS, "weights" },
		{ NSDESC_TYPE_K, "f16" },
		{ NSDESC_TYPE_V, "f16" },
		{ NSDESC_LAYERS, .x = 2 },
		{ NSDESC_KV_HEADS, .x = 1 },
		{ NSDESC_HEAD_DIM_K, .x = 64 },
		{ NSDESC_HEAD_DIM_V, .x = 64 },
		{ NSDESC_LAYOUT, "token-major" },
		{ NSDESC_BLOCK_TOKENS, .x = 16 },
		{ NSDESC_BLOCK_BYTES, .x = 8192 },
	},
	.count = 12,
};

const struct parts descriptor_full = {
	.part = {
		{ NSDESC_MODEL, "mod\xc3\xa8le 8B" },
		{ NSDESC_WEIGHTS, "weights" },
		{ NSDESC_ADAPTER, "domain", 1.0 },
		{ NSDESC_ADAPTER, "style", 0.5 },
		{ NSDESC_TYPE_K, "q8_0" },
		{ NSDESC_TYPE_V, "q4_0" },
		{ NSDESC_LAYERS, .x = 32 },
		{ NSDESC_KV_HEADS, .x = 8 },
		{ NSDESC_HEAD_DIM_K, .x = 128 },
		{ NSDESC_HEAD_DIM_V, .x = 128 },
		{ NSDESC_LAYOUT, "layer-major" },
		{ NSDESC_ROTATION, "hadamard-64" },
		{ NSDESC_BLOCK_TOKENS, .x = 32 },
		{ NSDESC_BLOCK_BYTES, .x = 2 << 20 },
		{ NSDESC_ROPE_TYPE, "neox" },
		{ NSDESC_ROPE_FREQ_BASE, .x = 500000 },
		{ NSDESC_ROPE_FREQ_SCALE, .x = 0.25 },
		{ NSDESC_ROPE_SCALING, "yarn factor=4" },
		{ NSDESC_TP_RANK, .x = 3 },
		{ NSDESC_TP_SIZE, .x = 4 },
		{ NSDESC_ENGINE, "example-1" },
		{ NSDESC_GROUP_RULE, .x = NSDESC_RULE_TRAILING },
		{ NSDESC_GROUP_N, .x = 128 },
		{ NSDESC_GROUP_INDEX, .x = 1 },
		{ NSDESC_GROUP_COUNT, .x = 2 },
		{ NSDESC_SALT, "team-7", .n = 6 },
		{ NSDESC_EXTRA, "flash_attn=1" },
		{ NSDESC_EXTRA, "vision=off" },
	},
	.count = 28,
};

struct part *part_of(const struct parts *parts, enum nsdesc_tag tag)
{
	for (unsigned int i = 0; i < parts->count; i++)
		if (parts->part[i].tag == tag)
			return (struct part *)&parts->part[i];
	return NULL;
}

void part_remove(struct parts *parts, enum nsdesc_tag tag)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < parts->count; i++)
		if (parts->part[i].tag != tag)
			parts->part[kept++] = parts->part[i];
	parts->count = kept;
}

void part_set(struct parts *parts, struct part part)
{
	struct part *there = part_of(parts, part.tag);

	if (there)
		*there = part;
	else
		part_add(parts, part);
}

void part_add(struct parts *parts, struct part part)
{
	assert(parts->count < PARTS_MAX);
	parts->part[parts->count++] = part;
}

static void put_bytes(struct nsdesc_builder *b, const struct part *p)
{
	uint8_t digest[SHA256_BYTES];

	if (p->tag == NSDESC_SALT) {
		nsdesc_put(b, p->tag, p->text, p->n);
		return;
	}
	sha256(p->text, strlen(p->text), digest);
	if (p->tag == NSDESC_ADAPTER)
		nsdesc_put_adapter(b, digest, p->x);
	else
		nsdesc_put(b, p->tag, digest, sizeof(digest));
}

static void put_part(struct nsdesc_builder *b, const struct part *p)
{
	switch (nsdesc_field_find(p->tag)->kind) {
	case NSDESC_KIND_TEXT:
		nsdesc_put_text(b, p->tag, p->text);
		break;
	case NSDESC_KIND_NUMBER:
		nsdesc_put_number(b, p->tag, (uint64_t)p->x);
		break;
	case NSDESC_KIND_DOUBLE:
		nsdesc_put_double(b, p->tag, p->x);
		break;
	case NSDESC_KIND_BYTES:
		put_bytes(b, p);
		break;
	}
}

long descriptor_build(const struct parts *parts, struct nsdesc_builder *b, uint8_t *out)
{
	nsdesc_begin(b);
	for (unsigned int i = 0; i < parts->count; i++)
		put_part(b, &parts->part[i]);
	return nsdesc_finish(b, out);
}

struct descriptor descriptor_good(const struct parts *parts)
{
	static struct nsdesc_builder b;
	struct descriptor d;
	long n = descriptor_build(parts, &b, d.data);

	assert(n > 0);
	d.n = (size_t)n;
	return d;
}
