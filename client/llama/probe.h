/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns the shape of a context's state from the engine itself, before anything has been computed
 * for an application.
 *
 * What types the cache has, whether V is transposed, which layers have a cache and which format the
 * engine writes can not be asked for; the state of a sequence with one token tells all of it. When
 * every sequence is empty, one token is decoded into sequence 0 and removed again; otherwise a
 * sequence that holds something is read. No sequence is changed by it; the logits of the last
 * decode are, when it had to decode.
 */
#ifndef KVP_CLIENT_LLAMA_PROBE_H
#define KVP_CLIENT_LLAMA_PROBE_H

#include "client/llama/engine.h"
#include "client/llama/shape.h"

/* Decodes one token into sequence 0, which is empty, as the next one. Returns 0 when it is done. */
typedef int (*probe_decode_fn)(struct llama_context *ctx, int32_t token);

/*
 * Refuses, with a reason in words, a model or a context whose state cannot be cut into blocks
 * exactly: a recurrent or hybrid model, a sliding window, positions of more than one dimension, an
 * encoder, more than one KV buffer. Returns 0 or -ENOTSUP.
 */
int probe_model(const struct llama_model *model, const char **ret_why);

/* Returns 0 and the shape, or -errno and a reason in words. */
int probe_shape(struct llama_context *ctx, probe_decode_fn decode, struct shape *ret_shape,
		const char **ret_why);

#endif
