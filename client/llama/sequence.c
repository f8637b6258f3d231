/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "client/llama/blob.h"
#include "client/llama/sequence.h"

/*
 * The engine's walk over its cells costs about as much per cell as copying so many bytes: an image
 * of at least that many bytes per cell goes to the engine as it is, smaller ones are joined up to a
 * buffer that stays in a cache.
 */
#define BYTES_PER_CELL 16u
#define JOINED_BYTES   MIB(4)

/* Large and used once: fresh 4 KiB pages would cost several times the copy itself. */
struct buffer {
	uint8_t *data;
	size_t size;
};

static int buffer_get(struct buffer *b, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	(void)madvise(p, size, MADV_HUGEPAGE);
	b->data = p;
	b->size = size;
	return 0;
}

static void buffer_put(struct buffer *b)
{
	if (b->data)
		munmap(b->data, b->size);
}

#define _cleanup_buffer_ _cleanup_(buffer_put)

static int32_t find_scratch(struct llama_context *ctx, struct llama_memory_i *mem, int32_t id)
{
	for (int32_t s = (int32_t)llama_n_seq_max(ctx) - 1; s >= 0; s--)
		if (s != id && llama_memory_seq_pos_max(mem, s) < 0)
			return s;
	return -1;
}

int sequence_init(struct sequence *q, struct llama_context *ctx, const struct shape *shape,
		  uint32_t block_tokens, int32_t id)
{
	struct llama_memory_i *mem = llama_get_memory(ctx);

	/* The engine ends the process when it is asked about a sequence that it does not have. */
	if (!mem || id < 0 || (uint32_t)id >= llama_n_seq_max(ctx))
		return -ERANGE;
	*q = (struct sequence){
		.ctx = ctx,
		.mem = mem,
		.shape = shape,
		.block_tokens = block_tokens,
		.id = id,
		.scratch = find_scratch(ctx, mem, id),
	};
	return 0;
}

int sequence_clear(struct sequence *q)
{
	uint64_t start = clock_ns();
	int r;

	llama_memory_seq_rm(q->mem, q->id, -1, -1);
	r = llama_memory_seq_pos_max(q->mem, q->id) < 0 ? 0 : -EIO;
	q->engine_ns += clock_ns() - start;
	return r;
}

static void clear_scratch(struct sequence *q)
{
	if (q->scratch >= 0)
		llama_memory_seq_rm(q->mem, q->scratch, -1, -1);
}

static uint64_t state_bytes(const struct sequence *q, uint32_t n_blocks)
{
	return shape_state_bytes(q->shape, (uint64_t)n_blocks * q->block_tokens);
}

/* How many blocks go through the engine at a time; 1: without a buffer. */
static uint32_t step_blocks(const struct sequence *q, uint32_t n)
{
	uint64_t image = state_bytes(q, 1);

	if (q->scratch < 0)
		return n;
	if (image >= (uint64_t)BYTES_PER_CELL * llama_n_ctx(q->ctx) || image >= JOINED_BYTES)
		return 1;
	return (uint32_t)MIN(JOINED_BYTES / image, n);
}

static int check_images(const struct sequence *q, const void *const *images, uint32_t first,
			uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		int r = blob_check_image(q->shape, images[i], state_bytes(q, 1),
					 (first + i) * q->block_tokens, q->block_tokens);
		if (r < 0)
			return -EBADMSG;
	}
	return 0;
}

/*
 * Gives the engine a state; with a scratch sequence it is appended, otherwise it is all that the
 * sequence holds.
 */
static int feed(struct sequence *q, const void *state, size_t size)
{
	int32_t to = q->scratch >= 0 ? q->scratch : q->id;
	uint64_t start = clock_ns();
	int r = 0;

	if (llama_state_seq_set_data(q->ctx, state, size, to) != size)
		r = -EIO;
	if (r == 0 && to == q->scratch) {
		llama_memory_seq_cp(q->mem, q->scratch, q->id, -1, -1);
		clear_scratch(q);
	}
	q->engine_ns += clock_ns() - start;
	return r;
}

static int load_joined(struct sequence *q, const void *const *images, uint32_t first, uint32_t n,
		       uint8_t *buf)
{
	int r = check_images(q, images, first, n);

	if (r < 0)
		return r;
	blob_join(q->shape, images, n, q->block_tokens, first * q->block_tokens, buf);
	return feed(q, buf, state_bytes(q, n));
}

static int load_direct(struct sequence *q, const void *image, uint32_t block)
{
	size_t size = state_bytes(q, 1);
	uint32_t n = q->block_tokens;

	return blob_check_front(q->shape, image, size, block * n, n) < 0 ? -EBADMSG
									  : feed(q, image, size);
}

static int load_steps(struct sequence *q, const void *const *images, uint32_t n)
{
	uint32_t step = step_blocks(q, n);
	_cleanup_buffer_ struct buffer buf = {0};
	int r = step > 1 ? buffer_get(&buf, state_bytes(q, step)) : 0;

	for (uint32_t i = 0; i < n && r == 0; i += step) {
		if (step > 1)
			r = load_joined(q, images + i, i, MIN(step, n - i), buf.data);
		else
			r = load_direct(q, images[i], i);
	}
	/* A device may still be reading from the images. */
	llama_synchronize(q->ctx);
	return r;
}

int sequence_load(struct sequence *q, const void *const *images, uint32_t n)
{
	int32_t last = (int32_t)(n * q->block_tokens) - 1;
	int r = sequence_clear(q);

	if (r == 0)
		r = load_steps(q, images, n);
	/* An empty or a short sequence decodes at any position without an error: look. */
	if (r == 0 && (llama_memory_seq_pos_max(q->mem, q->id) != last ||
		       (n && llama_memory_seq_pos_min(q->mem, q->id) != 0)))
		r = -EIO;
	if (r < 0) {
		clear_scratch(q);
		sequence_clear(q);
	}
	return r;
}

/* The engine wrote the number of the sequence that it read from; an image says 0. */
static void renumber(uint8_t *image, uint32_t n_cells)
{
	memset(image + 4, 0, 4);
	for (uint32_t i = 0; i < n_cells; i++)
		memset(image + shape_head_at(i) + 8, 0, 4);
}

/* Reads positions p0 to p1 - 1 by way of the scratch sequence. Returns the bytes, 0 on failure. */
static size_t read_range(struct sequence *q, uint32_t p0, uint32_t p1, uint8_t *dst, size_t size)
{
	uint64_t start = clock_ns();
	size_t n;

	llama_memory_seq_cp(q->mem, q->id, q->scratch, (int32_t)p0, (int32_t)p1);
	n = llama_state_seq_get_data(q->ctx, dst, size, q->scratch);
	clear_scratch(q);
	q->engine_ns += clock_ns() - start;
	return n;
}

/* Reads all of the sequence. */
static size_t read_whole(struct sequence *q, uint8_t *dst, size_t size)
{
	uint64_t start = clock_ns();
	size_t n = llama_state_seq_get_data(q->ctx, dst, size, q->id);

	q->engine_ns += clock_ns() - start;
	return n;
}

/*
 * The engine writes the image itself. Its cells may lie in another order than their positions: then
 * this fails.
 */
static int save_direct(struct sequence *q, uint32_t block, uint8_t *dst)
{
	uint32_t n = q->block_tokens;
	size_t size = state_bytes(q, 1);

	if (read_range(q, block * n, (block + 1) * n, dst, size) != size)
		return -EIO;
	renumber(dst, n);
	return blob_check_image(q->shape, dst, size, block * n, n);
}

/* Cuts n blocks, from block first on, out of a state that holds them. */
static int cut(struct sequence *q, const struct buffer *state, uint32_t first, uint32_t n,
	       void *const *dst, const char **ret_why)
{
	_cleanup_free_ uint32_t *order = NULL;
	struct blob b;
	int r;

	r = blob_parse(state->data, state->size, &b, ret_why);
	if (r < 0)
		return r;
	*ret_why = "the sequence does not hold the tokens that were asked for";
	if (!shape_equal(&b.shape, q->shape) || b.first > first * q->block_tokens ||
	    b.first + b.n_cells < (first + n) * q->block_tokens)
		return -EINVAL;
	if (!b.sorted) {
		order = malloc(b.n_cells * sizeof(*order));
		if (!order || blob_order(&b, order) < 0)
			return order ? -EINVAL : -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		blob_cut(&b, order, (first + i) * q->block_tokens, q->block_tokens, dst[i]);
	return 0;
}

static int save_buffered(struct sequence *q, uint32_t first, uint32_t n, void *const *dst,
			 const char **ret_why)
{
	_cleanup_buffer_ struct buffer buf = {0};
	size_t size = q->scratch >= 0 ? state_bytes(q, n) : llama_state_seq_get_size(q->ctx, q->id);
	size_t got;
	int r;

	*ret_why = "no memory for the state of the sequence";
	r = buffer_get(&buf, size ? size : 1);
	if (r < 0)
		return r;
	if (q->scratch >= 0)
		got = read_range(q, first * q->block_tokens, (first + n) * q->block_tokens,
				 buf.data, size);
	else
		got = read_whole(q, buf.data, size);
	*ret_why = "the engine did not give the state of the sequence";
	return got == size ? cut(q, &buf, first, n, dst, ret_why) : -EIO;
}

int sequence_save(struct sequence *q, uint32_t first, uint32_t n, void *const *dst,
		  const char **ret_why)
{
	uint32_t step = step_blocks(q, n);
	int r = 0;

	*ret_why = "the sequence does not hold the tokens that were asked for";
	if (llama_memory_seq_pos_min(q->mem, q->id) != 0 ||
	    llama_memory_seq_pos_max(q->mem, q->id) < (int32_t)((first + n) * q->block_tokens) - 1)
		return -EINVAL;
	for (uint32_t i = 0; i < n && r == 0; i += step) {
		uint32_t k = MIN(step, n - i);

		if (k == 1 && q->scratch >= 0 && save_direct(q, first + i, dst[i]) == 0)
			continue;
		r = save_buffered(q, first + i, k, dst + i, ret_why);
	}
	return r;
}

int sequence_state(struct llama_context *ctx, int32_t id, void **ret_data, size_t *ret_size)
{
	size_t size = llama_state_seq_get_size(ctx, id);
	_cleanup_free_ uint8_t *data = NULL;

	if (!size)
		return -EIO;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	if (llama_state_seq_get_data(ctx, data, size, id) != size)
		return -EIO;
	*ret_data = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}
