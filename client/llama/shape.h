/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of the state of one llama.cpp sequence: which tensors it has, and therefore where each
 * byte of it lies.
 *
 * llama_state_seq_get_data writes, for a unified KV cache whose V is not transposed:
 *
 *	u32 magic, i32 sequence					8 bytes
 *	u32 streams (1), u32 cells				8 bytes
 *	per cell: i32 position, u32 sequences (1), i32 sequence	12 bytes each
 *	u32 V transposed (0), u32 layers			8 bytes
 *	u32 rotation of K, u32 rotation of V			8 bytes, format 4 only
 *	per tensor, K of each layer, then V of each layer (or no V at all):
 *		i32 type, u64 bytes of a row, then one row per cell
 *
 * A row holds all heads of one token, so a run of tokens is a run of rows in every tensor, whatever
 * the type. Formats 2 and 3 are the same for such a cache. Everything between the rows ("the
 * frame") follows from the shape, the number of cells, the first position and the sequence.
 *
 * A block of the pool is the state that the engine itself would write for a sequence 0 that holds
 * only the tokens of that block, at their positions ("an image"). So an image can be handed to the
 * engine as it lies in shared memory.
 */
#ifndef KVP_CLIENT_LLAMA_SHAPE_H
#define KVP_CLIENT_LLAMA_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_MAGIC	   0xaf143cd8u
#define SHAPE_LAYERS_MAX   512u
#define SHAPE_TENSORS_MAX  (2 * SHAPE_LAYERS_MAX)
#define SHAPE_ROW_MAX	   (1u << 20)
#define SHAPE_CELLS_AT	   16u /* bytes before the first cell */
#define SHAPE_CELL_BYTES   12u
#define SHAPE_TENSOR_BYTES 12u /* type and row size, before the rows */

struct shape_tensor {
	int32_t type; /* a ggml_type */
	uint32_t row; /* bytes of one token */
	uint64_t before; /* bytes of one token in the tensors before this one */
};

struct shape {
	uint32_t format; /* 3 (which format 2 equals) or 4 */
	uint32_t n_layers;
	uint32_t n_tensors; /* n_layers times K, then V */
	uint32_t rot_k, rot_v; /* size of the rotation of K and V; format 4 only, else 0 */
	uint64_t row_bytes; /* of one token, all tensors */
	struct shape_tensor tensors[SHAPE_TENSORS_MAX];
};

/* Adds a tensor. Returns 0, or -E2BIG when there are too many or the row is empty or too long. */
int shape_add_tensor(struct shape *s, int32_t type, uint64_t row);

/* Bytes of a state of n_cells cells. */
uint64_t shape_state_bytes(const struct shape *s, uint64_t n_cells);

/* Where the rows of tensor t begin in a state of n_cells cells. */
uint64_t shape_rows_at(const struct shape *s, uint32_t t, uint64_t n_cells);

/* Where the fields after the cells begin, and how many bytes they have. */
uint64_t shape_head_at(uint64_t n_cells);
uint32_t shape_head_bytes(const struct shape *s);

bool shape_equal(const struct shape *a, const struct shape *b);

/*
 * Writes the frame of a state of sequence seq with n_cells cells at first, first + 1, ...; the rows
 * stay as they are.
 */
void shape_write_frame(const struct shape *s, uint32_t first, uint32_t n_cells, int32_t seq,
		       void *dst);

#endif
