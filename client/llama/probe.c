/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/llama/blob.h"
#include "client/llama/probe.h"
#include "client/llama/sequence.h"

#define PROBE_TOKEN 0 /* every vocabulary has it */

int probe_model(const struct llama_model *model, const char **ret_why)
{
	if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model))
		*ret_why =
			"the model has a recurrent state, which exists only at the last position";
	else if (llama_model_n_swa(model) > 0)
		*ret_why = "the model has a sliding window, which holds only the last positions";
	else if (llama_model_rope_type(model) & ENGINE_ROPE_MROPE &&
		 llama_model_rope_type(model) > 0)
		*ret_why = "the model has positions of more than one dimension (M-RoPE)";
	else if (llama_model_has_encoder(model) || llama_model_is_diffusion(model))
		*ret_why =
			"the model looks at later tokens too, so a prefix has no state of its own";
	else
		return 0;
	return -ENOTSUP;
}

/* A sequence that holds something, or -1. */
static int32_t find_used(struct llama_context *ctx, struct llama_memory_i *mem)
{
	for (uint32_t s = 0; s < llama_n_seq_max(ctx); s++)
		if (llama_memory_seq_pos_max(mem, (int32_t)s) >= 0)
			return (int32_t)s;
	return -1;
}

static int parse_sequence(struct llama_context *ctx, int32_t id, struct shape *ret_shape,
			  const char **ret_why)
{
	_cleanup_free_ void *data = NULL;
	struct blob b;
	size_t size;
	int r;

	*ret_why = "the engine did not give the state of a sequence";
	r = sequence_state(ctx, id, &data, &size);
	if (r < 0)
		return r;
	r = blob_parse(data, size, &b, ret_why);
	if (r < 0)
		return r;
	*ret_shape = b.shape;
	return 0;
}

/*
 * An empty sequence already shows whether there is one unified cache. Other caches are not decoded
 * into for nothing, and copying between their buffers could end the process.
 */
static int check_empty(struct llama_context *ctx, int32_t id, const char **ret_why)
{
	struct shape unused;
	int r = parse_sequence(ctx, id, &unused, ret_why);

	return r == -ENODATA ? 0 : r;
}

/* A long sequence is not read as a whole when its first token can be had alone. */
static int parse_used(struct llama_context *ctx, int32_t id, struct shape *ret_shape,
		      const char **ret_why)
{
	struct sequence q;
	int32_t first;
	int r;

	r = sequence_init(&q, ctx, NULL, 0, id);
	if (r < 0 || q.scratch < 0)
		return parse_sequence(ctx, id, ret_shape, ret_why);
	r = check_empty(ctx, q.scratch, ret_why);
	if (r < 0)
		return r;
	first = llama_memory_seq_pos_min(q.mem, id);
	llama_memory_seq_cp(q.mem, id, q.scratch, first, first + 1);
	r = parse_sequence(ctx, q.scratch, ret_shape, ret_why);
	llama_memory_seq_rm(q.mem, q.scratch, -1, -1);
	return r;
}

int probe_shape(struct llama_context *ctx, probe_decode_fn decode, struct shape *ret_shape,
		const char **ret_why)
{
	struct llama_memory_i *mem = llama_get_memory(ctx);
	int r;

	r = probe_model(llama_get_model(ctx), ret_why);
	if (r < 0)
		return r;
	*ret_why = "the context has no KV cache";
	if (!mem)
		return -ENOTSUP;
	if (find_used(ctx, mem) >= 0)
		return parse_used(ctx, find_used(ctx, mem), ret_shape, ret_why);
	r = check_empty(ctx, 0, ret_why);
	if (r < 0)
		return r;
	*ret_why = "the engine did not decode the token that shows the layout of its KV cache";
	r = decode(ctx, PROBE_TOKEN) == 0 ? 0 : -EIO;
	llama_synchronize(ctx);
	if (r == 0)
		r = parse_sequence(ctx, 0, ret_shape, ret_why);
	llama_memory_seq_rm(mem, 0, -1, -1);
	return r;
}
