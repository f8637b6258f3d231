/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "client/llama/shape.h"

int shape_add_tensor(struct shape *s, int32_t type, uint64_t row)
{
	if (s->n_tensors == SHAPE_TENSORS_MAX || !row || row > SHAPE_ROW_MAX)
		return -E2BIG;
	s->tensors[s->n_tensors++] = (struct shape_tensor){
		.type = type,
		.row = (uint32_t)row,
		.before = s->row_bytes,
	};
	s->row_bytes += row;
	return 0;
}

uint64_t shape_head_at(uint64_t n_cells)
{
	return SHAPE_CELLS_AT + SHAPE_CELL_BYTES * n_cells;
}

uint32_t shape_head_bytes(const struct shape *s)
{
	return s->format >= 4 ? 16 : 8;
}

uint64_t shape_rows_at(const struct shape *s, uint32_t t, uint64_t n_cells)
{
	return shape_head_at(n_cells) + shape_head_bytes(s) + SHAPE_TENSOR_BYTES * (t + 1ull) +
	       s->tensors[t].before * n_cells;
}

uint64_t shape_state_bytes(const struct shape *s, uint64_t n_cells)
{
	return shape_head_at(n_cells) + shape_head_bytes(s) + SHAPE_TENSOR_BYTES * s->n_tensors +
	       s->row_bytes * n_cells;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
	if (a->format != b->format || a->n_layers != b->n_layers || a->n_tensors != b->n_tensors ||
	    a->rot_k != b->rot_k || a->rot_v != b->rot_v)
		return false;
	return !memcmp(a->tensors, b->tensors, a->n_tensors * sizeof(a->tensors[0]));
}

static uint8_t *put(uint8_t *at, const void *data, size_t n)
{
	memcpy(at, data, n);
	return at + n;
}

static uint8_t *put_u32(uint8_t *at, uint32_t v)
{
	return put(at, &v, sizeof(v));
}

static void write_tensor_head(const struct shape_tensor *t, uint8_t *rows)
{
	uint64_t row = t->row;

	put(put(rows - SHAPE_TENSOR_BYTES, &t->type, sizeof(t->type)), &row, sizeof(row));
}

void shape_write_frame(const struct shape *s, uint32_t first, uint32_t n_cells, int32_t seq,
		       void *dst)
{
	uint8_t *at = dst;

	at = put_u32(at, SHAPE_MAGIC);
	at = put_u32(at, (uint32_t)seq);
	at = put_u32(at, 1);
	at = put_u32(at, n_cells);
	for (uint32_t i = 0; i < n_cells; i++) {
		at = put_u32(at, first + i);
		at = put_u32(at, 1);
		at = put_u32(at, (uint32_t)seq);
	}
	at = put_u32(at, 0);
	at = put_u32(at, s->n_layers);
	if (s->format >= 4)
		put_u32(put_u32(at, s->rot_k), s->rot_v);
	for (uint32_t t = 0; t < s->n_tensors; t++)
		write_tensor_head(&s->tensors[t], (uint8_t *)dst + shape_rows_at(s, t, n_cells));
}
