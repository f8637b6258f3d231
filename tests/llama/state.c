/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/llama/state.h"

struct state_spec state_plain(uint32_t format, uint32_t first, uint32_t n_cells)
{
	return (struct state_spec){
		.format = format,
		.n_layers = 2,
		.n_tensors = 4,
		.type = {1, 1, 1, 1},
		.row = {64, 48, 64, 80},
		.n_cells = n_cells,
		.first = first,
		.rot_k = format == 4 ? 64 : 0,
	};
}

void state_row(const struct state_spec *spec, uint32_t tensor, uint32_t pos, uint8_t *row)
{
	uint32_t x = tensor * 2654435761u ^ pos * 40503u ^ spec->salt;

	for (uint64_t i = 0; i < spec->row[tensor]; i++) {
		x = x * 1664525u + 1013904223u;
		row[i] = (uint8_t)(x >> 24);
	}
}

struct writer {
	uint8_t *data;
	size_t at;
};

static void w32(struct writer *w, uint32_t v)
{
	memcpy(w->data + w->at, &v, 4);
	w->at += 4;
}

static void w64(struct writer *w, uint64_t v)
{
	memcpy(w->data + w->at, &v, 8);
	w->at += 8;
}

static uint32_t pos_of(const struct state_spec *spec, uint32_t cell)
{
	return spec->first + (spec->order ? spec->order[cell] : cell);
}

static void write_cells(struct writer *w, const struct state_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_cells; i++) {
		w32(w, pos_of(spec, i));
		w32(w, spec->n_seq ? spec->n_seq : 1);
		if (spec->ext)
			for (int k = 0; k < 3; k++)
				w32(w, 7);
		w32(w, (uint32_t)spec->seq);
	}
}

static void write_tensor(struct writer *w, const struct state_spec *spec, uint32_t t)
{
	w32(w, (uint32_t)spec->type[t]);
	w64(w, spec->row[t]);
	for (uint32_t i = 0; i < spec->n_cells; i++) {
		state_row(spec, t, pos_of(spec, i), w->data + w->at);
		w->at += spec->row[t];
	}
}

/* V with FA off: type, element size, width, then as many bytes as rows would have. */
static void write_transposed(struct writer *w, const struct state_spec *spec, uint32_t t)
{
	w32(w, (uint32_t)spec->type[t]);
	w32(w, 2);
	w32(w, (uint32_t)spec->row[t] / 2);
	memset(w->data + w->at, 0x55, spec->row[t] * spec->n_cells);
	w->at += spec->row[t] * spec->n_cells;
}

struct state state_make(const struct state_spec *spec)
{
	size_t room = 4096 + 24ull * spec->n_cells + spec->trailing;
	struct writer w = {0};

	for (uint32_t t = 0; t < spec->n_tensors; t++)
		room += 12 + spec->row[t] * spec->n_cells;
	w.data = calloc(1, room);
	assert(w.data);
	w32(&w, 0xaf143cd8);
	w32(&w, (uint32_t)spec->seq);
	w32(&w, spec->n_streams ? spec->n_streams : 1);
	w32(&w, spec->n_cells);
	write_cells(&w, spec);
	if (spec->n_cells) {
		w32(&w, spec->transposed);
		w32(&w, spec->n_layers);
		if (spec->format == 4) {
			w32(&w, spec->rot_k);
			w32(&w, spec->rot_v);
		}
		for (uint32_t t = 0; t < spec->n_tensors; t++) {
			if (spec->transposed && t >= spec->n_layers)
				write_transposed(&w, spec, t);
			else
				write_tensor(&w, spec, t);
		}
	}
	memset(w.data + w.at, 0x11, spec->trailing);
	w.at += spec->trailing;
	assert(w.at <= room);
	return (struct state){w.data, w.at};
}

void state_free(struct state *s)
{
	free(s->data);
	*s = (struct state){0};
}
