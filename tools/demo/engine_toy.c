/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small transformer with random weights and one token a byte: grouped-query attention with RoPE,
 * RMS norm, a gated feed-forward layer. What it writes is noise, but its K/V is real, and it
 * attends over cached blocks where they lie in the pool, without a copy.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sha256.h"
#include "client/kvpool.h"
#include "tools/demo/engine.h"

#define VOCAB    256
#define LAYERS   4
#define DIM      128
#define HEADS    4
#define KV_HEADS 2
#define HEAD     (DIM / HEADS)
#define KV       (KV_HEADS * HEAD)
#define HIDDEN   256
#define BLOCK    16 /* tokens */

/* One block: K and V of its tokens, all layers. */
struct kv_block {
	float k[LAYERS][BLOCK][KV];
	float v[LAYERS][BLOCK][KV];
};

struct layer {
	float q[DIM][DIM], k[KV][DIM], v[KV][DIM], o[DIM][DIM];
	float gate[HIDDEN][DIM], up[HIDDEN][DIM], down[DIM][HIDDEN];
};

struct engine {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_write
		*claim; /* of what restore did not find: computed here, stored by publish */
	size_t claim_first;
	int waited;
	uint32_t n_blocks;
	struct kv_block *own;           /* blocks computed here */
	const struct kv_block **blocks; /* of the sequence: in the pool, or own */
	float embed[VOCAB][DIM];
	struct layer layers[LAYERS];
	float logits[VOCAB];
	float *scores;
};

const struct engine_prompt engine_prompt = { "Document:\n", "\nQuestion: ", "\nAnswer: " };

static void fill_random(float *w, size_t n, uint64_t *state, float scale)
{
	for (size_t i = 0; i < n; i++) {
		*state += 0x9e3779b97f4a7c15ull;
		w[i] = ((float)(mix64(*state) >> 40) / (float)(1 << 24) - 0.5f) * scale;
	}
}

static void make_weights(struct engine *e)
{
	uint64_t state = 7;

	fill_random(&e->embed[0][0], VOCAB * DIM, &state, 2.0f);
	fill_random((float *)e->layers, sizeof(e->layers) / (sizeof(float)), &state,
		    3.0f / sqrtf(DIM));
}

/* y = W x, rows of n */
static void multiply(float *y, const float *w, const float *x, int rows, int n)
{
	for (int r = 0; r < rows; r++) {
		float sum = 0;

		for (int i = 0; i < n; i++)
			sum += w[r * n + i] * x[i];
		y[r] = sum;
	}
}

static void norm(float *y, const float *x)
{
	float sum = 0;

	for (int i = 0; i < DIM; i++)
		sum += x[i] * x[i];
	sum = 1.0f / sqrtf(sum / DIM + 1e-5f);
	for (int i = 0; i < DIM; i++)
		y[i] = x[i] * sum;
}

static void rope(float *x, int heads, size_t pos)
{
	for (int h = 0; h < heads; h++)
		for (int i = 0; i < HEAD / 2; i++) {
			float a = (float)pos * powf(10000.0f, -2.0f * (float)i / HEAD);
			float *p = x + h * HEAD + i, *q = p + HEAD / 2;
			float re = *p * cosf(a) - *q * sinf(a), im = *p * sinf(a) + *q * cosf(a);

			*p = re;
			*q = im;
		}
}

static float dot(const float *a, const float *b)
{
	float sum = 0;

	for (int i = 0; i < HEAD; i++)
		sum += a[i] * b[i];
	return sum;
}

/* One head over positions 0 to pos, block by block. */
static void attend(struct engine *e, float *out, const float *q, int layer, int head, size_t pos)
{
	int kv = head / (HEADS / KV_HEADS) * HEAD;
	float top = -INFINITY, total = 0;

	for (size_t t = 0; t <= pos; t++) {
		e->scores[t] = dot(q, &e->blocks[t / BLOCK]->k[layer][t % BLOCK][kv]) / sqrtf(HEAD);
		top = fmaxf(top, e->scores[t]);
	}
	memset(out, 0, HEAD * sizeof(float));
	for (size_t t = 0; t <= pos; t++) {
		const float *v = &e->blocks[t / BLOCK]->v[layer][t % BLOCK][kv];
		float p = expf(e->scores[t] - top);

		total += p;
		for (int i = 0; i < HEAD; i++)
			out[i] += p * v[i];
	}
	for (int i = 0; i < HEAD; i++)
		out[i] /= total;
}

static void feed_forward(const struct layer *w, float *x)
{
	float n[DIM], gate[HIDDEN], up[HIDDEN], y[DIM];

	norm(n, x);
	multiply(gate, &w->gate[0][0], n, HIDDEN, DIM);
	multiply(up, &w->up[0][0], n, HIDDEN, DIM);
	for (int i = 0; i < HIDDEN; i++)
		up[i] *= gate[i] / (1.0f + expf(-gate[i]));
	multiply(y, &w->down[0][0], up, DIM, HIDDEN);
	for (int i = 0; i < DIM; i++)
		x[i] += y[i];
}

static void run_layer(struct engine *e, int l, float *x, size_t pos)
{
	const struct layer *w = &e->layers[l];
	struct kv_block *own = &e->own[pos / BLOCK];
	float n[DIM], q[DIM], y[DIM], z[DIM];

	norm(n, x);
	multiply(q, &w->q[0][0], n, DIM, DIM);
	multiply(own->k[l][pos % BLOCK], &w->k[0][0], n, KV, DIM);
	multiply(own->v[l][pos % BLOCK], &w->v[0][0], n, KV, DIM);
	rope(q, HEADS, pos);
	rope(own->k[l][pos % BLOCK], KV_HEADS, pos);
	for (int h = 0; h < HEADS; h++)
		attend(e, y + h * HEAD, q + h * HEAD, l, h, pos);
	multiply(z, &w->o[0][0], y, DIM, DIM);
	for (int i = 0; i < DIM; i++)
		x[i] += z[i];
	feed_forward(w, x);
}

int engine_decode(struct engine *e, const int32_t *tokens, size_t pos, size_t n)
{
	float x[DIM], y[DIM];

	if (pos + n > (size_t)e->n_blocks * BLOCK)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		e->blocks[(pos + i) / BLOCK] = &e->own[(pos + i) / BLOCK];
		memcpy(x, e->embed[tokens[i] & (VOCAB - 1)], sizeof(x));
		for (int l = 0; l < LAYERS; l++)
			run_layer(e, l, x, pos + i);
	}
	norm(y, x);
	multiply(e->logits, &e->embed[0][0], y, VOCAB, DIM);
	return 0;
}

static int open_pool(struct engine *e, const struct engine_config *cfg)
{
	struct kvpool_options o = { .size = sizeof(o), .socket = cfg->socket, .name = "demo" };
	uint8_t weights[SHA256_BYTES];
	struct kvpool_ns_desc d = {
		.size = sizeof(d),
		.model = "toy",
		.weights = weights,
		.type_k = "f32",
		.type_v = "f32",
		.n_layers = LAYERS,
		.n_kv_heads = KV_HEADS,
		.head_dim_k = HEAD,
		.head_dim_v = HEAD,
		.block_tokens = BLOCK,
		.block_bytes = sizeof(struct kv_block),
		.layout = "k[layer][token][head][dim] v[layer][token][head][dim]",
		.engine = "kvpool-demo-toy/1",
		.rope_type = "neox",
		.rope_freq_base = 10000,
	};
	int r = kvpool_connect(&o, &e->pool);

	sha256(e->layers, sizeof(e->layers), weights);
	if (r == 0)
		r = kvpool_ns_open(e->pool, &d, &e->ns);
	return r < 0 ? r : kvpool_lease_new(e->pool, e->n_blocks, &e->lease);
}

int engine_open(const struct engine_config *cfg, struct engine **ret, char *why, size_t n)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r = -ENOMEM;

	snprintf(why, n, "out of memory");
	if (!e)
		return r;
	e->n_blocks = cfg->context / BLOCK + 1;
	e->own = calloc(e->n_blocks, sizeof(*e->own));
	e->blocks = calloc(e->n_blocks, sizeof(*e->blocks));
	e->scores = calloc((size_t)e->n_blocks * BLOCK, sizeof(*e->scores));
	make_weights(e);
	if (e->own && e->blocks && e->scores)
		r = cfg->socket ? open_pool(e, cfg) : 0;
	if (r < 0) {
		if (e->pool)
			kvpool_error(e->pool, why, n);
		engine_close(e);
		return r;
	}
	*ret = e;
	return 0;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	kvpool_write_free(e->claim);
	kvpool_lease_free(e->lease);
	kvpool_ns_close(e->ns);
	kvpool_close(e->pool);
	free(e->scores);
	free(e->blocks);
	free(e->own);
	free(e);
}

const char *engine_describe(const struct engine *e)
{
	return "a small synthetic model with random weights";
}

int engine_tokenize(const struct engine *e, const char *text, size_t len, int32_t *tokens, int max)
{
	if (len > (size_t)max)
		return -E2BIG;
	for (size_t i = 0; i < len; i++)
		tokens[i] = (unsigned char)text[i];
	return (int)len;
}

size_t engine_piece(const struct engine *e, int32_t token, char *buf, size_t n)
{
	buf[0] = (char)(token >= ' ' && token < 127 ? token : '.');
	return 1;
}

int engine_is_end(const struct engine *e, int32_t token)
{
	return 0;
}

/* Reserves what is missing. Returns 1 when another process has it in work. */
static int claim(struct engine *e, const int32_t *tokens, size_t n)
{
	e->claim_first = kvpool_lease_blocks(e->lease);
	if (n / BLOCK <= e->claim_first)
		return 0;
	if (kvpool_reserve(e->ns, tokens, n, e->claim_first, &e->claim) < 0)
		return 0;
	if (kvpool_write_verdict(e->claim, 0) == KVPOOL_GRANTED)
		return 0;
	e->claim = kvpool_write_free(e->claim);
	return 1;
}

/* What another process computes now is waited for; what the pool has is attended over in place. */
size_t engine_restore(struct engine *e, const int32_t *tokens, size_t n)
{
	size_t have;

	if (!e->pool)
		return 0;
	e->waited = 0;
	e->claim = kvpool_write_free(e->claim);
	have = kvpool_acquire(e->ns, e->lease, tokens, n, 0);
	while (claim(e, tokens, n) && !e->waited) {
		e->waited = kvpool_wait(e->ns, tokens, n, have / BLOCK, 120000) >= 0;
		have = kvpool_acquire(e->ns, e->lease, tokens, n, 0);
	}
	for (size_t i = 0; i < have / BLOCK; i++)
		e->blocks[i] = kvpool_lease_block(e->lease, i);
	return have;
}

int engine_waited(const struct engine *e)
{
	return e->waited;
}

const float *engine_logits(const struct engine *e, int *ret_n)
{
	*ret_n = VOCAB;
	return e->logits;
}

long engine_publish(struct engine *e, const int32_t *tokens, size_t n)
{
	size_t count = e->claim ? kvpool_write_blocks(e->claim) : 0;
	long stored;

	for (size_t i = 0; i < count; i++) {
		void *to = kvpool_write_block(e->claim, i);

		if (to)
			memcpy(to, e->blocks[e->claim_first + i], sizeof(struct kv_block));
	}
	stored = count ? kvpool_commit(e->claim, count) : 0;
	e->claim = kvpool_write_free(e->claim);
	return stored;
}

void engine_clear(struct engine *e)
{
	if (e->lease)
		kvpool_release(e->lease);
}
