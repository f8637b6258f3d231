/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/shape.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "shm/granule.h"
#include "shm/layout.h"

static const struct shape_type types[] = {
	{ "f32", 1, 4 },
	{ "f16", 1, 2 },
	{ "bf16", 1, 2 },
	{ "fp8", 1, 1 },          /* e4m3, e5m2: a scale for the tensor, or none */
	{ "int8", 1, 1 },         /* likewise */
	{ "int8_head", 1, 1, 4 }, /* an f32 scale for each token and head */
	{ "q8_0", 32, 34 },       /* ggml: an f16 scale for 32 elements */
	{ "q5_1", 32, 24 },
	{ "q5_0", 32, 22 },
	{ "q4_1", 32, 20 },
	{ "q4_0", 32, 18 },
	{ "iq4_nl", 32, 18 },
	{ "kivi4", 32, 20 }, /* 4 bits, an f16 scale and zero point for 32 elements */
	{ "nvfp4", 16, 9 },  /* 4 bits, an e4m3 scale for 16 elements */
};

const struct shape_type *shape_type(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

/* K or V of a token in all layers. */
static int side_bytes(const struct shape *s, const struct shape_type *t, uint64_t dim,
		      uint64_t *ret, const char **why)
{
	uint64_t row = s->kv_heads ? s->kv_heads * dim : dim, elements, bytes;

	if (row % t->group) {
		*why = t->group == 16 ? "needs rows of a multiple of 16 elements"
				      : "needs rows of a multiple of 32 elements";
		return -EINVAL;
	}
	if (__builtin_mul_overflow(s->layer_heads, dim, &elements) ||
	    __builtin_mul_overflow(elements / t->group, t->bytes, &bytes) ||
	    __builtin_add_overflow(bytes, dim ? s->layer_heads * t->head_bytes : 0, ret)) {
		*why = "takes more bytes for a token than there are";
		return -EINVAL;
	}
	return 0;
}

int shape_token_bytes(const struct shape *s, uint64_t *ret, const char **why)
{
	uint64_t k, v;
	int r = side_bytes(s, s->k, s->head_dim_k, &k, why);

	if (!r)
		r = side_bytes(s, s->v, s->head_dim_v, &v, why);
	if (!r && __builtin_add_overflow(k, v, ret)) {
		*why = "takes more bytes for a token than there are";
		r = -EINVAL;
	}
	return r;
}

uint64_t shape_pool_blocks(uint64_t pool_bytes, uint64_t block_bytes)
{
	uint32_t shift = granule_shift_of(pool_bytes);
	uint64_t stride, extent;

	if (!block_bytes || block_bytes > UINT64_MAX / 8)
		return 0;
	stride = ALIGN_UP(block_bytes, SLOT_UNIT);
	extent = granules_of_extent(stride, shift) << shift;
	return pool_bytes / extent * (extent / stride);
}
