/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle on a real engine and a real model: what one process cut into blocks, another one joins
 * and goes on from, bit for bit as if it had computed it itself.
 *
 *	oracle publish MODEL TYPE TEXT FILE SEQUENCES	writes the blocks of a prompt
 *	oracle consume MODEL TYPE TEXT FILE WRONG	compares with a run that computes all
 *	oracle refuse MODEL f16 TEXT - -		contexts that cannot be cut
 *
 * Only bits count. Tokens do not: with one wrong block among 62 a real model still wrote the 48
 * right ones. Neither does a tolerance: another batch size changes the logits as much as a wrong
 * block does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llama.h>

#include "client/llama/probe.h"
#include "client/llama/sequence.h"

#define BLOCK	 8u /* small, so that a context of modest size makes them be joined */
#define BLOCKS	 36u
#define TOKENS	 (BLOCKS * BLOCK + 12) /* the last ones are computed by the consumer */
#define TEXT_MAX (1 << 16)

#define need(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #what);         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct oracle {
	struct llama_model *model;
	int n_vocab;
	enum ggml_type type;
	int32_t tokens[TOKENS];
};

/* How blocks get into a sequence: which of the ways depends on the context alone. */
static const struct way {
	const char *name;
	uint32_t n_ctx, n_seq_max;
} ways[] = {
	{"one state", 512, 1},
	{"block by block", 512, 2},
	{"joined", 16384, 2},
};

static void quiet(enum ggml_log_level level, const char *text, void *unused)
{
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static void no_log(enum ggml_log_level level, const char *text, void *unused)
{
}

static enum ggml_type find_type(const char *name)
{
	for (int t = 0; t < GGML_TYPE_COUNT; t++)
		if (ggml_type_name(t) && !strcmp(ggml_type_name(t), name))
			return t;
	fprintf(stderr, "there is no type %s\n", name);
	exit(2);
}

static void read_prompt(struct oracle *o, const char *path)
{
	static char text[TEXT_MAX];
	static int32_t tokens[TEXT_MAX];
	FILE *f = fopen(path, "rb");
	size_t n;

	need(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	need(llama_tokenize(llama_model_get_vocab(o->model), text, (int)n, tokens, TEXT_MAX, true,
			    false) >= (int)TOKENS);
	memcpy(o->tokens, tokens, sizeof(o->tokens));
}

static void begin(struct oracle *o, char **args)
{
	struct llama_model_params params = llama_model_default_params();

	llama_log_set(quiet, NULL);
	llama_backend_init();
	params.n_gpu_layers = 0;
	o->model = llama_model_load_from_file(args[0], params);
	need(o->model);
	o->n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(o->model));
	o->type = find_type(args[1]);
	read_prompt(o, args[2]);
}

static struct llama_context_params context_params(struct oracle *o, uint32_t n_ctx,
						  uint32_t n_seq_max)
{
	struct llama_context_params p = llama_context_default_params();

	p.n_ctx = n_ctx;
	p.n_batch = 512;
	p.n_ubatch = 512;
	p.n_seq_max = n_seq_max;
	p.kv_unified = true;
	p.n_threads = p.n_threads_batch = 2;
	p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
	p.type_k = p.type_v = o->type;
	return p;
}

static struct llama_context *make_context(struct oracle *o, uint32_t n_ctx, uint32_t n_seq_max)
{
	struct llama_context *ctx =
		llama_init_from_model(o->model, context_params(o, n_ctx, n_seq_max));

	need(ctx);
	return ctx;
}

static int decode_one(struct llama_context *ctx, int32_t token)
{
	return llama_decode(ctx, llama_batch_get_one(&token, 1));
}

static void learn(struct llama_context *ctx, struct shape *shape)
{
	const char *why = "";

	if (probe_shape(ctx, decode_one, shape, &why) < 0) {
		fprintf(stderr, "refused: %s\n", why);
		exit(1);
	}
}

static void decode(struct llama_context *ctx, const int32_t *tokens, uint32_t pos, uint32_t n)
{
	struct llama_batch b = llama_batch_init((int)n, 0, 1);

	b.n_tokens = (int)n;
	for (uint32_t i = 0; i < n; i++) {
		b.token[i] = tokens[i];
		b.pos[i] = (int)(pos + i);
		b.n_seq_id[i] = 1;
		b.seq_id[i][0] = 0;
		b.logits[i] = i == n - 1;
	}
	need(llama_decode(ctx, b) == 0);
	llama_batch_free(b);
	llama_synchronize(ctx);
}

/* Decodes what follows the blocks; returns a copy of the last logits. */
static float *finish(struct oracle *o, struct llama_context *ctx)
{
	float *logits = malloc(sizeof(float) * (size_t)o->n_vocab);
	uint32_t from = BLOCKS * BLOCK;

	need(logits);
	decode(ctx, o->tokens + from, from, TOKENS - from);
	memcpy(logits, llama_get_logits_ith(ctx, -1), sizeof(float) * (size_t)o->n_vocab);
	llama_memory_clear(llama_get_memory(ctx), true);
	return logits;
}

static int publish(struct oracle *o, const char *path, uint32_t n_seq_max)
{
	struct llama_context *ctx = make_context(o, 512, n_seq_max);
	void *images[BLOCKS];
	const char *why = "";
	struct shape shape;
	struct sequence q;
	size_t size;
	FILE *f = fopen(path, "wb");

	need(f);
	learn(ctx, &shape);
	size = shape_state_bytes(&shape, BLOCK);
	for (uint32_t i = 0; i < BLOCKS; i++)
		need((images[i] = malloc(size)));
	decode(ctx, o->tokens, 0, TOKENS);
	need(sequence_init(&q, ctx, &shape, BLOCK, 0) == 0);
	if (sequence_save(&q, 0, BLOCKS, images, &why) < 0) {
		fprintf(stderr, "not saved: %s\n", why);
		return 1;
	}
	need(llama_memory_seq_pos_max(llama_get_memory(ctx), 0) == (int)TOKENS - 1);
	for (uint32_t i = 0; i < BLOCKS; i++)
		need(fwrite(images[i], 1, size, f) == size);
	need(fclose(f) == 0);
	printf("published %u blocks of %zu bytes, %u layers, %s, format %u\n", BLOCKS, size,
	       shape.n_layers, ggml_type_name(o->type), shape.format);
	return 0;
}

static uint8_t *read_blocks(const char *path, size_t size)
{
	uint8_t *data = malloc(size * BLOCKS);
	FILE *f = fopen(path, "rb");

	need(f && data);
	need(fread(data, size, BLOCKS, f) == BLOCKS);
	fclose(f);
	return data;
}

static float *restored(struct oracle *o, struct llama_context *ctx, const struct shape *shape,
		       const void *const *images)
{
	struct sequence q;

	need(sequence_init(&q, ctx, shape, BLOCK, 0) == 0);
	need(sequence_load(&q, images, BLOCKS) == 0);
	need(llama_memory_seq_pos_max(llama_get_memory(ctx), 1 % (int)llama_n_seq_max(ctx)) ==
	     (llama_n_seq_max(ctx) > 1 ? -1 : (int)(BLOCKS * BLOCK) - 1));
	return finish(o, ctx);
}

/*
 * A block whose tensors are said to have another type must leave an empty sequence, whoever sees it
 * first.
 */
static int refuses_damage(struct oracle *o, struct llama_context *ctx, const struct shape *shape,
			  const void *const *images)
{
	uint8_t *type = (uint8_t *)images[3] + shape_rows_at(shape, 5, BLOCK) - SHAPE_TENSOR_BYTES;
	struct sequence q;
	int r;

	*type ^= 3;
	llama_log_set(no_log, NULL);
	need(sequence_init(&q, ctx, shape, BLOCK, 0) == 0);
	r = sequence_load(&q, images, BLOCKS);
	llama_log_set(quiet, NULL);
	*type ^= 3;
	return r < 0 && llama_memory_seq_pos_max(llama_get_memory(ctx), 0) < 0;
}

/* Returns how many checks failed. */
static int compare_way(struct oracle *o, const struct way *way, const char *path,
		       const char *wrong_path)
{
	struct llama_context *ctx = make_context(o, way->n_ctx, way->n_seq_max);
	float *cold, *again, *warm, *wrong;
	const void *images[BLOCKS];
	struct shape shape;
	uint8_t *blocks, *others;
	size_t size, bytes = sizeof(float) * (size_t)o->n_vocab;
	int failed;

	/* Once before and once after the probe: it must leave no trace in what follows. */
	decode(ctx, o->tokens, 0, BLOCKS * BLOCK);
	cold = finish(o, ctx);
	learn(ctx, &shape);
	decode(ctx, o->tokens, 0, BLOCKS * BLOCK);
	again = finish(o, ctx);

	size = shape_state_bytes(&shape, BLOCK);
	blocks = read_blocks(path, size);
	others = read_blocks(wrong_path, size);
	for (uint32_t i = 0; i < BLOCKS; i++)
		images[i] = blocks + size * i;
	failed = !refuses_damage(o, ctx, &shape, images);
	warm = restored(o, ctx, &shape, images);
	images[BLOCKS / 2] = others + size * (BLOCKS / 2);
	wrong = restored(o, ctx, &shape, images);

	failed += !!memcmp(cold, again, bytes) + !!memcmp(cold, warm, bytes) +
		 !memcmp(cold, wrong, bytes);
	printf("%-5s %-15s after probe %s, restored %s, with one wrong block %s\n",
	       ggml_type_name(o->type), way->name, memcmp(cold, again, bytes) ? "DIFFERS" : "equal",
	       memcmp(cold, warm, bytes) ? "DIFFERS" : "equal",
	       memcmp(cold, wrong, bytes) ? "differs" : "EQUAL");
	free(cold);
	free(again);
	free(warm);
	free(wrong);
	free(blocks);
	free(others);
	llama_free(ctx);
	return failed;
}

static int expect_refusal(struct oracle *o, struct llama_context_params p, const char *says)
{
	struct llama_context *ctx = llama_init_from_model(o->model, p);
	const char *why = "nothing";
	struct shape shape;
	int r;

	need(ctx);
	r = probe_shape(ctx, decode_one, &shape, &why);
	printf("refused with: %s\n", why);
	llama_free(ctx);
	return r < 0 && strstr(why, says) ? 0 : 1;
}

static int refuse(struct oracle *o)
{
	struct llama_context_params p = context_params(o, 512, 2);
	int failed;

	p.kv_unified = false;
	failed = expect_refusal(o, p, "not unified");
	p = context_params(o, 512, 2);
	p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
	return failed + expect_refusal(o, p, "transposed");
}

int main(int argc, char **argv)
{
	struct oracle o;
	int failed = 0;

	if (argc != 7) {
		fprintf(stderr, "usage: see the comment at the top of the file\n");
		return 2;
	}
	begin(&o, argv + 2);
	if (!strcmp(argv[1], "publish"))
		return publish(&o, argv[5], (uint32_t)atoi(argv[6]));
	if (!strcmp(argv[1], "refuse"))
		return refuse(&o);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		failed += compare_way(&o, &ways[i], argv[5], argv[6]);
	return failed != 0;
}
