/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "client/llama/blob.h"

#define TYPE_MAX 255 /* more than ggml has element types */
#define TYPE_F32 0

/* Words are not aligned in a state. */
static uint32_t word(const uint8_t *data, size_t at)
{
	uint32_t v;

	memcpy(&v, data + at, sizeof(v));
	return v;
}

static uint64_t word64(const uint8_t *data, size_t at)
{
	uint64_t v;

	memcpy(&v, data + at, sizeof(v));
	return v;
}

/* A state that is being read. Nothing is read at or behind size. */
struct reader {
	const uint8_t *data;
	size_t size;
	size_t at;
};

static bool reader_has(const struct reader *r, uint64_t n)
{
	return n <= r->size - r->at;
}

/* One tensor: its head, then a row per cell. */
static bool read_tensor(struct reader *r, uint32_t n_cells, struct shape *s)
{
	uint32_t type;
	uint64_t row;

	if (!reader_has(r, SHAPE_TENSOR_BYTES))
		return false;
	type = word(r->data, r->at);
	row = word64(r->data, r->at + 4);
	if (type > TYPE_MAX || shape_add_tensor(s, (int32_t)type, row) < 0)
		return false;
	r->at += SHAPE_TENSOR_BYTES;
	if (!reader_has(r, row * n_cells))
		return false;
	r->at += row * n_cells;
	return true;
}

/* What follows the cells. True when it can be read; r->at is then where the tensors end. */
static bool read_tensors(struct reader *r, uint32_t n_cells, uint32_t format, struct shape *s)
{
	memset(s, 0, offsetof(struct shape, tensors));
	s->format = format;
	if (!reader_has(r, shape_head_bytes(s)))
		return false;
	s->n_layers = word(r->data, r->at + 4);
	if (word(r->data, r->at) != 0 || !s->n_layers || s->n_layers > SHAPE_LAYERS_MAX)
		return false;
	if (format >= 4) {
		s->rot_k = word(r->data, r->at + 8);
		s->rot_v = word(r->data, r->at + 12);
	}
	r->at += shape_head_bytes(s);
	while (s->n_tensors < s->n_layers)
		if (!read_tensor(r, n_cells, s))
			return false;
	/* Models with compressed attention have no V at all. */
	while (s->n_tensors < 2 * s->n_layers && r->at < r->size)
		if (!read_tensor(r, n_cells, s))
			return false;
	/*
	 * No state can be read in both formats. One of format 4, read as 3, has a first row of
	 * rot_v bytes plus 2^32 times the type of K: too long, or empty for f32. One of format 3,
	 * read as 4, has the row size of K as rot_v and f32 as the type of K, and that is refused
	 * here (an f32 K beside a rotated V, which nobody uses, with it).
	 */
	if (s->rot_v && s->tensors[0].type == TYPE_F32)
		return false;
	return s->n_tensors == s->n_layers || s->n_tensors == 2 * s->n_layers;
}

/* The cells, each belonging to the one sequence only. Fills first and sorted. */
static int read_cells(const struct reader *r, struct blob *b, const char **ret_why)
{
	uint32_t low = UINT32_MAX, high = 0, start = word(r->data, SHAPE_CELLS_AT);

	b->sorted = true;
	for (uint32_t i = 0; i < b->n_cells; i++) {
		size_t at = shape_head_at(i);
		uint32_t pos = word(r->data, at);

		if (word(r->data, at + 4) != 1 || (int32_t)word(r->data, at + 8) != b->seq) {
			*ret_why = "a cell of the KV cache belongs to other sequences than the one "
				   "asked for";
			return -ENOTSUP;
		}
		if (pos < low)
			low = pos;
		if (pos > high)
			high = pos;
		if (pos != start + i)
			b->sorted = false;
	}
	if (high > INT32_MAX || high - low != b->n_cells - 1) {
		*ret_why = "the positions of the sequence have holes";
		return -ENOTSUP;
	}
	b->first = low;
	return 0;
}

/* True when all cells have the one sequence where a cell of cell_bytes has it. */
static bool cells_look_like(const struct reader *r, uint32_t n_cells, uint32_t cell_bytes)
{
	if (!n_cells || n_cells > (r->size - SHAPE_CELLS_AT) / cell_bytes)
		return false;
	for (uint32_t i = 0; i < n_cells; i++) {
		size_t at = SHAPE_CELLS_AT + (size_t)cell_bytes * i;

		if (word(r->data, at + 4) != 1 ||
		    word(r->data, at + cell_bytes - 4) != word(r->data, 4))
			return false;
	}
	return true;
}

/* Why a state that no format explains cannot be used; it may still be one of the known kinds. */
static int explain(const struct reader *r, uint32_t n_cells, const char **ret_why)
{
	static const uint32_t ext_bytes = SHAPE_CELL_BYTES + 12;
	uint64_t head_at = shape_head_at(n_cells);
	struct reader t;
	struct shape s;

	for (uint32_t format = 3; format <= 4; format++) {
		t = (struct reader){r->data, r->size, head_at};
		if (cells_look_like(r, n_cells, SHAPE_CELL_BYTES) &&
		    read_tensors(&t, n_cells, format, &s) && t.at < t.size) {
			*ret_why = "the state has more parts than a KV cache (a sliding window or "
				   "a recurrent state)";
			return -ENOTSUP;
		}
		t = (struct reader){r->data, r->size, SHAPE_CELLS_AT + (size_t)ext_bytes * n_cells};
		if (cells_look_like(r, n_cells, ext_bytes) &&
		    read_tensors(&t, n_cells, format, &s) && t.at == t.size) {
			*ret_why = "the cells carry more than a position (M-RoPE or an n-gram "
				   "embedding)";
			return -ENOTSUP;
		}
	}
	if (cells_look_like(r, n_cells, SHAPE_CELL_BYTES) && r->size - head_at >= 8 &&
	    word(r->data, head_at) == 1 && word(r->data, head_at + 4) <= SHAPE_LAYERS_MAX) {
		*ret_why = "V is stored transposed: flash attention is off in this context";
		return -ENOTSUP;
	}
	*ret_why = "the state has a format that this version of kvpool does not know";
	return -EINVAL;
}

/* What comes before the cells. */
static int read_start(const struct reader *r, struct blob *b, const char **ret_why)
{
	if (r->size < SHAPE_CELLS_AT || word(r->data, 0) != SHAPE_MAGIC) {
		*ret_why = "not the state of a llama.cpp sequence";
		return -EINVAL;
	}
	if (word(r->data, 8) != 1) {
		*ret_why = "the KV cache is not unified (kv_unified is off and there is more than "
			   "one sequence)";
		return -ENOTSUP;
	}
	b->data = r->data;
	b->seq = (int32_t)word(r->data, 4);
	b->n_cells = word(r->data, 12);
	if (!b->n_cells && r->size > SHAPE_CELLS_AT) {
		*ret_why = "the state has more parts than a KV cache (a sliding window or a "
			   "recurrent state)";
		return -ENOTSUP;
	}
	*ret_why = "the sequence is empty";
	return b->n_cells ? 0 : -ENODATA;
}

/* The format that explains all bytes. */
static bool read_shape(struct reader *r, uint32_t n_cells, struct shape *s)
{
	for (uint32_t format = 3; format <= 4; format++) {
		r->at = shape_head_at(n_cells);
		if (read_tensors(r, n_cells, format, s) && r->at == r->size)
			return true;
	}
	return false;
}

int blob_parse(const void *data, size_t size, struct blob *ret_blob, const char **ret_why)
{
	struct reader r = {data, size, 0};
	struct blob b;
	int err;

	err = read_start(&r, &b, ret_why);
	if (err < 0)
		return err;
	if (b.n_cells > (size - SHAPE_CELLS_AT) / SHAPE_CELL_BYTES ||
	    !read_shape(&r, b.n_cells, &b.shape))
		return explain(&r, b.n_cells, ret_why);
	err = read_cells(&r, &b, ret_why);
	if (err < 0)
		return err;
	*ret_blob = b;
	return 0;
}

int blob_order(const struct blob *b, uint32_t *order)
{
	memset(order, 0xff, b->n_cells * sizeof(*order));
	for (uint32_t i = 0; i < b->n_cells; i++) {
		uint32_t k = word(b->data, shape_head_at(i)) - b->first;

		if (order[k] != UINT32_MAX)
			return -EINVAL;
		order[k] = i;
	}
	return 0;
}

/* Rows of n cells, from cell k on in order of position. */
static void gather(uint8_t *dst, const uint8_t *rows, uint32_t row, const uint32_t *order,
		   uint32_t k, uint32_t n)
{
	if (!order) {
		memcpy(dst, rows + (uint64_t)k * row, (uint64_t)n * row);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(dst + (uint64_t)i * row, rows + (uint64_t)order[k + i] * row, row);
}

void blob_cut(const struct blob *b, const uint32_t *order, uint32_t pos, uint32_t n, void *dst)
{
	const struct shape *s = &b->shape;

	shape_write_frame(s, pos, n, 0, dst);
	for (uint32_t t = 0; t < s->n_tensors; t++)
		gather((uint8_t *)dst + shape_rows_at(s, t, n),
		       b->data + shape_rows_at(s, t, b->n_cells), s->tensors[t].row, order,
		       pos - b->first, n);
}

static bool cells_are(const uint8_t *data, uint32_t pos, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t at = shape_head_at(i);

		if (word(data, at) != pos + i || word(data, at + 4) != 1 || word(data, at + 8) != 0)
			return false;
	}
	return true;
}

static bool tensors_are(const struct shape *s, const uint8_t *data, uint32_t n)
{
	for (uint32_t t = 0; t < s->n_tensors; t++) {
		uint64_t at = shape_rows_at(s, t, n) - SHAPE_TENSOR_BYTES;

		if (word(data, at) != (uint32_t)s->tensors[t].type ||
		    word64(data, at + 4) != s->tensors[t].row)
			return false;
	}
	return true;
}

int blob_check_front(const struct shape *s, const void *data, size_t size, uint32_t pos, uint32_t n)
{
	uint64_t head = shape_head_at(n);

	if (size != shape_state_bytes(s, n))
		return -EINVAL;
	if (word(data, 0) != SHAPE_MAGIC || word(data, 4) != 0 || word(data, 8) != 1 ||
	    word(data, 12) != n)
		return -EINVAL;
	if (word(data, head) != 0 || word(data, head + 4) != s->n_layers)
		return -EINVAL;
	if (s->format >= 4 &&
	    (word(data, head + 8) != s->rot_k || word(data, head + 12) != s->rot_v))
		return -EINVAL;
	return cells_are(data, pos, n) ? 0 : -EINVAL;
}

int blob_check_image(const struct shape *s, const void *data, size_t size, uint32_t pos, uint32_t n)
{
	int r = blob_check_front(s, data, size, pos, n);

	return r < 0 || tensors_are(s, data, n) ? r : -EINVAL;
}

void blob_join(const struct shape *s, const void *const *images, uint32_t n_images, uint32_t n,
	       uint32_t first, void *dst)
{
	uint32_t n_cells = n_images * n;

	shape_write_frame(s, first, n_cells, 0, dst);
	for (uint32_t t = 0; t < s->n_tensors; t++) {
		uint8_t *rows = (uint8_t *)dst + shape_rows_at(s, t, n_cells);
		uint64_t from = shape_rows_at(s, t, n), run = (uint64_t)s->tensors[t].row * n;

		for (uint32_t i = 0; i < n_images; i++)
			memcpy(rows + i * run, (const uint8_t *)images[i] + from, run);
	}
}
