/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a model, a context and the options of the application to the descriptor of a namespace.
 *
 * What the weights file holds needs no field of its own, since its digest is one; a field is needed
 * for what can differ between two contexts of one file, and for names that people look for when two
 * programs do not share.
 */
#ifndef KVP_CLIENT_LLAMA_DESCRIBE_H
#define KVP_CLIENT_LLAMA_DESCRIBE_H

#include "client/kvpool.h"
#include "client/llama/engine.h"
#include "client/llama/shape.h"

struct kvpool_llama_options;

#define DESCRIBE_TEXT	   160
#define DESCRIBE_EXTRA_MAX 32

/*
 * A descriptor and the memory that its texts lie in. It also points to what the options point to.
 */
struct description {
	struct kvpool_ns_desc desc;
	uint8_t weights[32];
	char model[DESCRIBE_TEXT];
	char type_k[16], type_v[16];
	char layout[DESCRIBE_TEXT];
	char engine[DESCRIBE_TEXT];
	char rotation[DESCRIBE_TEXT];
	char rope_type[32];
	char rope_scaling[DESCRIBE_TEXT];
	char attention[32];
	struct kvpool_field extra[DESCRIBE_EXTRA_MAX];
};

/*
 * Fills *d, whose address must not change afterwards. Returns 0, or -errno with a reason in words:
 * the digest of the weights file cannot be made, or the options cannot be expressed.
 */
int describe(struct description *d, const struct llama_model *model, uint32_t n_ctx,
	     const struct shape *shape, const struct kvpool_llama_options *options,
	     const char **ret_why);

#endif
