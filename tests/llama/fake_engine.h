/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up libllama for tests: a context with a few sequences over one array of cells, states of
 * the format that tests/llama/state.c makes, and knobs for everything that an engine may do wrong.
 * Tests link it instead of libllama.
 */
#ifndef KVP_TESTS_LLAMA_FAKE_ENGINE_H
#define KVP_TESTS_LLAMA_FAKE_ENGINE_H

#include "client/llama/engine.h"
#include "tests/llama/state.h"

#define FAKE_CELLS 4096
#define FAKE_SEQS  4
#define FAKE_META  24

struct fake_cell {
	uint32_t seqs; /* bit per sequence; 0: free */
	int32_t pos;
	uint8_t *rows; /* of all tensors */
};

struct llama_memory_i {
	struct fake_cell cells[FAKE_CELLS];
};

struct llama_model {
	int rope_type;
	int32_t n_swa;
	bool encoder, recurrent, hybrid, diffusion;
	struct {
		const char *key, *value;
	} meta[FAKE_META];
};

struct llama_context {
	struct llama_model model;
	struct llama_memory_i mem;
	/* Of the states that it writes; n_cells, first, order and seq are not used. */
	struct state_spec spec;
	uint32_t n_ctx, n_seq_max;
	bool scatter; /* takes free cells from the end: positions run against cells */

	/* Faults. */
	int set_fails_at; /* the how-manieth set_data fails; 0: none */
	bool set_forgets; /* set_data says that it took all, and leaves the sequence empty */
	bool set_drops_first; /* the same, but only the first cell is missing */
	bool get_fails;
	bool decode_fails;

	/* What happened. */
	unsigned int sets, gets, decodes;
	size_t largest; /* bytes of the largest state that went through */
};

/* A context of the given size, without tokens; fake_free frees what is in it and it. */
struct llama_context *fake_new(uint32_t format, uint32_t n_ctx, uint32_t n_seq_max);
void fake_free(struct llama_context *ctx);

/*
 * Computes n tokens of a sequence, at its end. Rows depend on the position and the salt of the
 * spec.
 */
int fake_decode(struct llama_context *ctx, int32_t seq, uint32_t n);

/* What probe_shape calls. */
int fake_decode_one(struct llama_context *ctx, int32_t token);

/*
 * Succeeds when the sequence holds exactly the positions [0, n) with the rows that decoding gives.
 */
bool fake_holds(struct llama_context *ctx, int32_t seq, uint32_t n);

uint32_t fake_used_cells(const struct llama_context *ctx);

void fake_set_meta(struct llama_context *ctx, const char *key, const char *value);

#endif
