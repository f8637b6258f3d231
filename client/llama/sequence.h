/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves blocks between a sequence of a context and their images.
 *
 * The engine replaces a sequence when it is given a state, so blocks are appended by way of a
 * second, empty sequence ("scratch"): its cells are then shared with the real one and it is emptied
 * again. That needs no second copy of the cells and lets the engine read images where they lie, in
 * shared memory. The price is a walk of the engine over all its cells per block, so with many cells
 * and small blocks several images are joined first. A context of one sequence has no scratch: there
 * the whole state is joined, or cut, in one buffer.
 */
#ifndef KVP_CLIENT_LLAMA_SEQUENCE_H
#define KVP_CLIENT_LLAMA_SEQUENCE_H

#include "client/llama/engine.h"
#include "client/llama/shape.h"

struct sequence {
	struct llama_context *ctx;
	struct llama_memory_i *mem;
	const struct shape *shape;
	uint32_t block_tokens;
	int32_t id;
	int32_t scratch; /* an empty sequence of the same context, or -1 */
	uint64_t engine_ns; /* time inside the engine so far */
};

/* Returns 0, or -ERANGE when the context has no such sequence. */
int sequence_init(struct sequence *q, struct llama_context *ctx, const struct shape *shape,
		  uint32_t block_tokens, int32_t id);

/*
 * Makes the sequence hold exactly the tokens of n images, the first at position 0. Returns 0;
 * -EBADMSG: an image is not that of its block; -EIO: the engine did not take them (no room in its
 * cells); -ENOMEM. After a failure the sequence is empty.
 */
int sequence_load(struct sequence *q, const void *const *images, uint32_t n);

/*
 * Writes the images of n blocks, from block first on, to dst[0], dst[1], ...; each has
 * shape_state_bytes() bytes. Returns 0, or -errno and a reason in words: the sequence does not hold
 * those tokens, or its state cannot be cut. The sequence is as it was.
 */
int sequence_save(struct sequence *q, uint32_t first, uint32_t n, void *const *dst,
		  const char **ret_why);

/* Removes all tokens. Returns 0 or -EIO. */
int sequence_clear(struct sequence *q);

/*
 * Reads the state of the sequence into memory from the C allocator that the caller frees. Returns
 * 0, -EIO or -ENOMEM.
 */
int sequence_state(struct llama_context *ctx, int32_t id, void **ret_data, size_t *ret_size);

#endif
