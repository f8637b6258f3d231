/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes states of llama.cpp sequences, sound and broken ones, byte by byte, without the code under
 * test. Each row is filled with a pattern of its tensor and its position, so that a row in a wrong
 * place is seen.
 */
#ifndef KVP_TESTS_LLAMA_STATE_H
#define KVP_TESTS_LLAMA_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_TENSORS 16

struct state_spec {
	uint32_t format; /* 3 or 4 */
	uint32_t n_layers;
	uint32_t n_tensors; /* n_layers with K only, up to twice that */
	int32_t type[STATE_TENSORS];
	uint64_t row[STATE_TENSORS];
	uint32_t n_cells;
	uint32_t first;
	const uint32_t *order; /* position of cell i is first + order[i]; NULL: in order */
	int32_t seq;
	uint32_t rot_k, rot_v;
	uint32_t salt; /* changes all patterns */

	/* What makes it something else than one plain unified cache. */
	uint32_t n_streams; /* 0: 1 */
	bool transposed;
	bool ext; /* 12 more bytes per cell */
	uint32_t trailing; /* bytes of a further part */
	uint32_t n_seq; /* of each cell; 0: 1 */
};

struct state {
	uint8_t *data;
	size_t size;
};

/* A cache of two layers, f16, n_cells cells in order from position first on. */
struct state_spec state_plain(uint32_t format, uint32_t first, uint32_t n_cells);

struct state state_make(const struct state_spec *spec);
void state_free(struct state *s);

/* The bytes of one row. */
void state_row(const struct state_spec *spec, uint32_t tensor, uint32_t pos, uint8_t *row);

#endif
