/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "tests/llama/fake_engine.h"

static size_t row_bytes(const struct state_spec *spec)
{
	size_t n = 0;

	for (uint32_t t = 0; t < spec->n_tensors; t++)
		n += spec->row[t];
	return n;
}

struct llama_context *fake_new(uint32_t format, uint32_t n_ctx, uint32_t n_seq_max)
{
	struct llama_context *ctx = calloc(1, sizeof(*ctx));

	assert(ctx && n_ctx <= FAKE_CELLS && n_seq_max <= FAKE_SEQS);
	ctx->spec = state_plain(format, 0, 0);
	ctx->n_ctx = n_ctx;
	ctx->n_seq_max = n_seq_max;
	for (uint32_t i = 0; i < n_ctx; i++) {
		ctx->mem.cells[i].rows = calloc(1, row_bytes(&ctx->spec));
		assert(ctx->mem.cells[i].rows);
	}
	fake_set_meta(ctx, "general.architecture", "fake");
	fake_set_meta(ctx, "general.name", "Fake model");
	fake_set_meta(ctx, "fake.context_length", "4096");
	return ctx;
}

void fake_free(struct llama_context *ctx)
{
	for (uint32_t i = 0; i < ctx->n_ctx; i++)
		free(ctx->mem.cells[i].rows);
	free(ctx);
}

void fake_set_meta(struct llama_context *ctx, const char *key, const char *value)
{
	unsigned int i = 0;

	while (ctx->model.meta[i].key && strcmp(ctx->model.meta[i].key, key) != 0)
		i++;
	assert(i < FAKE_META);
	ctx->model.meta[i].key = key;
	ctx->model.meta[i].value = value;
}

static struct fake_cell *free_cell(struct llama_context *ctx)
{
	for (uint32_t i = 0; i < ctx->n_ctx; i++) {
		struct fake_cell *c = &ctx->mem.cells[ctx->scatter ? ctx->n_ctx - 1 - i : i];

		if (!c->seqs)
			return c;
	}
	return NULL;
}

static void fill_rows(const struct state_spec *spec, uint32_t pos, uint8_t *rows)
{
	for (uint32_t t = 0; t < spec->n_tensors; t++) {
		state_row(spec, t, pos, rows);
		rows += spec->row[t];
	}
}

int fake_decode(struct llama_context *ctx, int32_t seq, uint32_t n)
{
	int32_t pos = llama_memory_seq_pos_max(&ctx->mem, seq) + 1;

	ctx->decodes++;
	for (uint32_t i = 0; i < n; i++) {
		struct fake_cell *c = free_cell(ctx);

		if (!c)
			return 1;
		c->seqs = 1u << seq;
		c->pos = pos + (int32_t)i;
		fill_rows(&ctx->spec, (uint32_t)c->pos, c->rows);
	}
	return 0;
}

int fake_decode_one(struct llama_context *ctx, int32_t token)
{
	assert(token >= 0);
	return ctx->decode_fails ? -1 : fake_decode(ctx, 0, 1);
}

static struct fake_cell *find_cell(struct llama_memory_i *mem, int32_t seq, int32_t pos)
{
	for (uint32_t i = 0; i < FAKE_CELLS; i++)
		if (mem->cells[i].seqs & 1u << seq && mem->cells[i].pos == pos)
			return &mem->cells[i];
	return NULL;
}

bool fake_holds(struct llama_context *ctx, int32_t seq, uint32_t n)
{
	uint8_t rows[1024];
	uint32_t have = 0;

	assert(row_bytes(&ctx->spec) <= sizeof(rows));
	for (uint32_t i = 0; i < FAKE_CELLS; i++)
		have += ctx->mem.cells[i].seqs >> seq & 1;
	for (uint32_t pos = 0; pos < n; pos++) {
		struct fake_cell *c = find_cell(&ctx->mem, seq, (int32_t)pos);

		fill_rows(&ctx->spec, pos, rows);
		if (!c || memcmp(c->rows, rows, row_bytes(&ctx->spec)) != 0)
			return false;
	}
	return have == n;
}

uint32_t fake_used_cells(const struct llama_context *ctx)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ctx->n_ctx; i++)
		n += ctx->mem.cells[i].seqs != 0;
	return n;
}

/*
 * ------------------------------------------------------------------------------------------
 * The functions of libllama
 */

uint32_t llama_n_ctx(const struct llama_context *ctx)
{
	return ctx->n_ctx;
}

uint32_t llama_n_seq_max(const struct llama_context *ctx)
{
	return ctx->n_seq_max;
}

void llama_synchronize(struct llama_context *ctx)
{
}

const struct llama_model *llama_get_model(const struct llama_context *ctx)
{
	return &ctx->model;
}

struct llama_memory_i *llama_get_memory(const struct llama_context *ctx)
{
	return (struct llama_memory_i *)&ctx->mem;
}

int llama_model_rope_type(const struct llama_model *model)
{
	return model->rope_type;
}

float llama_model_rope_freq_scale_train(const struct llama_model *model)
{
	return 1.0f;
}

int32_t llama_model_n_ctx_train(const struct llama_model *model)
{
	return 4096;
}

int32_t llama_model_n_embd(const struct llama_model *model)
{
	return 256;
}

int32_t llama_model_n_head(const struct llama_model *model)
{
	return 4;
}

int32_t llama_model_n_head_kv(const struct llama_model *model)
{
	return 2;
}

int32_t llama_model_n_swa(const struct llama_model *model)
{
	return model->n_swa;
}

bool llama_model_has_encoder(const struct llama_model *model)
{
	return model->encoder;
}

bool llama_model_is_recurrent(const struct llama_model *model)
{
	return model->recurrent;
}

bool llama_model_is_hybrid(const struct llama_model *model)
{
	return model->hybrid;
}

bool llama_model_is_diffusion(const struct llama_model *model)
{
	return model->diffusion;
}

int32_t llama_model_meta_val_str(const struct llama_model *model, const char *key, char *buf,
				 size_t size)
{
	for (unsigned int i = 0; i < FAKE_META && model->meta[i].key; i++)
		if (!strcmp(model->meta[i].key, key))
			return snprintf(buf, size, "%s", model->meta[i].value);
	if (size)
		buf[0] = '\0';
	return -1;
}

bool llama_memory_seq_rm(struct llama_memory_i *mem, int32_t seq, int32_t p0, int32_t p1)
{
	assert(p0 < 0 && p1 < 0);
	for (uint32_t i = 0; i < FAKE_CELLS; i++)
		mem->cells[i].seqs &= ~(1u << seq);
	return true;
}

void llama_memory_seq_cp(struct llama_memory_i *mem, int32_t from, int32_t to, int32_t p0,
			 int32_t p1)
{
	for (uint32_t i = 0; i < FAKE_CELLS; i++) {
		struct fake_cell *c = &mem->cells[i];

		if (c->seqs & 1u << from && c->pos >= p0 && (p1 < 0 || c->pos < p1))
			c->seqs |= 1u << to;
	}
}

static int32_t limit(struct llama_memory_i *mem, int32_t seq, bool max)
{
	int32_t found = -1;

	for (uint32_t i = 0; i < FAKE_CELLS; i++) {
		const struct fake_cell *c = &mem->cells[i];

		if (c->seqs & 1u << seq && (found < 0 || (max ? c->pos > found : c->pos < found)))
			found = c->pos;
	}
	return found;
}

int32_t llama_memory_seq_pos_min(struct llama_memory_i *mem, int32_t seq)
{
	return limit(mem, seq, false);
}

int32_t llama_memory_seq_pos_max(struct llama_memory_i *mem, int32_t seq)
{
	return limit(mem, seq, true);
}

/* The state of what a sequence holds, with the rows that its cells really have. */
static struct state sequence_bytes(struct llama_context *ctx, int32_t seq)
{
	uint32_t order[FAKE_CELLS], cells[FAKE_CELLS], n = 0;
	struct state_spec spec = ctx->spec;
	struct state s;
	size_t at;

	for (uint32_t i = 0; i < ctx->n_ctx; i++) {
		if (ctx->mem.cells[i].seqs & 1u << seq) {
			order[n] = (uint32_t)ctx->mem.cells[i].pos;
			cells[n++] = i;
		}
	}
	spec.order = order;
	spec.n_cells = n;
	spec.seq = seq;
	s = state_make(&spec);
	at = 16 + (spec.ext ? 24 : 12) * (size_t)n + (spec.format == 4 ? 16 : 8);
	for (uint32_t t = 0, before = 0; n && !spec.transposed && t < spec.n_tensors; t++) {
		at += 12;
		for (uint32_t i = 0; i < n; i++, at += spec.row[t])
			memcpy(s.data + at, ctx->mem.cells[cells[i]].rows + before, spec.row[t]);
		before += (uint32_t)spec.row[t];
	}
	return s;
}

size_t llama_state_seq_get_size(struct llama_context *ctx, int32_t seq)
{
	struct state s = sequence_bytes(ctx, seq);
	size_t n = s.size;

	state_free(&s);
	return n;
}

size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, int32_t seq)
{
	struct state s = sequence_bytes(ctx, seq);
	size_t n = s.size <= size && !ctx->get_fails ? s.size : 0;

	ctx->gets++;
	ctx->largest = MAX(ctx->largest, n);
	if (n)
		memcpy(dst, s.data, n);
	state_free(&s);
	return n;
}

/* Takes the rows of one cell out of a state whose frame was found to be the expected one. */
static void take_cell(struct llama_context *ctx, const uint8_t *rows, uint32_t n, uint32_t i,
		      struct fake_cell *c)
{
	uint8_t *to = c->rows;

	for (uint32_t t = 0; t < ctx->spec.n_tensors; t++) {
		rows += 12;
		memcpy(to, rows + ctx->spec.row[t] * i, ctx->spec.row[t]);
		rows += ctx->spec.row[t] * n;
		to += ctx->spec.row[t];
	}
}

static bool take_state(struct llama_context *ctx, const uint8_t *src, size_t size, int32_t seq)
{
	uint32_t n, head = ctx->spec.format == 4 ? 16 : 8;

	memcpy(&n, src + 12, 4);
	if (size != 16 + 12ull * n + head + 12ull * ctx->spec.n_tensors + row_bytes(&ctx->spec) * n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct fake_cell *c = free_cell(ctx);

		if (!c)
			return false;
		c->seqs = 1u << seq;
		memcpy(&c->pos, src + 16 + 12 * i, 4);
		take_cell(ctx, src + 16 + 12 * n + head, n, i, c);
		if (ctx->set_forgets || (ctx->set_drops_first && i == 0 && c->pos == 0))
			c->seqs = 0;
	}
	return true;
}

size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size,
				int32_t seq)
{
	ctx->sets++;
	ctx->largest = MAX(ctx->largest, size);
	llama_memory_seq_rm(&ctx->mem, seq, -1, -1);
	if (ctx->set_fails_at && ctx->sets == (unsigned int)ctx->set_fails_at)
		return 0;
	if (!take_state(ctx, src, size, seq)) {
		llama_memory_seq_rm(&ctx->mem, seq, -1, -1);
		return 0;
	}
	return size;
}
