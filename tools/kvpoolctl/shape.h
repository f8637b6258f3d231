/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The K/V of a model: how many bytes a token takes. bytes = 2 x layers x kv_heads x tokens x
 * head_dim x bytes of an element, with the scales of quantised types.
 */
#ifndef KVP_TOOLS_KVPOOLCTL_SHAPE_H
#define KVP_TOOLS_KVPOOLCTL_SHAPE_H

#include <stdint.h>

/* Elements come in groups, which take so many bytes. */
struct shape_type {
	const char *name;
	uint32_t group, bytes;
	uint32_t head_bytes; /* besides, for each head */
};

/* NULL when there is no such type. */
const struct shape_type *shape_type(const char *name);

struct shape {
	uint64_t layers;
	uint64_t kv_heads;    /* of each layer; 0: they differ */
	uint64_t layer_heads; /* their sum over the layers */
	uint64_t head_dim_k;
	uint64_t head_dim_v; /* 0: V is a part of what K stores (MLA) */
	const struct shape_type *k, *v;
};

/*
 * 0 and the bytes of a token, or -EINVAL and *why, which completes a sentence that begins with the
 * name of a type.
 */
int shape_token_bytes(const struct shape *s, uint64_t *ret, const char **why);

/*
 * Blocks that a pool of so many bytes holds of one namespace, as kvpoold divides it: see
 * shm/granule.h.
 */
uint64_t shape_pool_blocks(uint64_t pool_bytes, uint64_t block_bytes);

#endif
