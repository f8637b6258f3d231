/* SPDX-License-Identifier: Apache-2.0 */
/* A real model through libllama. This file is what an application does to share its prefixes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/llama/kvpool-llama.h"
#include "tools/demo/engine.h"
#include "tools/demo/engine_llama.h"

struct engine {
	struct llama_model *model;
	struct llama_context *ctx;
	const struct llama_vocab *vocab;
	struct kvpool *pool;
	struct kvpool_llama *shared;
	char description[128];
};

/* The chat form that SmolLM2 was trained with. */
const struct engine_prompt engine_prompt = {
	.before = "<|im_start|>system\nYou are a helpful assistant. Answer from the "
		  "document.<|im_end|>\n"
		  "<|im_start|>user\n",
	.between = "\n\nQuestion: ",
	.after = "<|im_end|>\n<|im_start|>assistant\n",
};

static void quiet(enum ggml_log_level level, const char *text, void *arg)
{
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static int open_model(struct engine *e, const struct engine_config *cfg,
		      struct llama_context_params *params, char *why, size_t n)
{
	struct llama_model_params model_params = llama_model_default_params();

	model_params.n_gpu_layers = 0;
	e->model = llama_model_load_from_file(cfg->model, model_params);
	if (!e->model) {
		snprintf(why, n, "libllama cannot load the model %s", cfg->model);
		return -ENOENT;
	}
	*params = llama_context_default_params();
	params->n_ctx = cfg->context;
	params->n_batch = cfg->context;
	params->n_ubatch = 512;
	params->n_seq_max = 2;
	params->kv_unified = true;
	params->flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
	params->n_threads = params->n_threads_batch = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
	e->ctx = llama_init_from_model(e->model, *params);
	if (!e->ctx) {
		snprintf(why, n, "libllama cannot make a context of %u tokens", cfg->context);
		return -ENOMEM;
	}
	e->vocab = llama_model_get_vocab(e->model);
	llama_model_desc(e->model, e->description, sizeof(e->description));
	return 0;
}

static int open_pool(struct engine *e, const struct engine_config *cfg,
		     const struct llama_context_params *params, char *why, size_t n)
{
	struct kvpool_options o = { .size = sizeof(o), .socket = cfg->socket, .name = "demo" };
	struct kvpool_llama_options shared;
	int r = kvpool_connect(&o, &e->pool);

	if (r < 0)
		return r;
	kvpool_llama_options_init(&shared, params);
	shared.model_path = cfg->model;
	shared.wait_ms = 120000;
	return kvpool_llama_open(e->pool, e->ctx, &shared, &e->shared, why, n);
}

int engine_open(const struct engine_config *cfg, struct engine **ret, char *why, size_t n)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct llama_context_params params;
	int r;

	if (!e)
		return -ENOMEM;
	snprintf(why, n, "out of memory");
	llama_log_set(quiet, NULL);
	llama_backend_init();
	r = open_model(e, cfg, &params, why, n);
	if (r == 0 && cfg->socket)
		r = open_pool(e, cfg, &params, why, n);
	if (r < 0) {
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
	kvpool_llama_close(e->shared);
	kvpool_close(e->pool);
	if (e->ctx)
		llama_free(e->ctx);
	if (e->model)
		llama_model_free(e->model);
	free(e);
}

struct kvpool_llama *engine_adapter(const struct engine *e)
{
	return e->shared;
}

const char *engine_describe(const struct engine *e)
{
	return e->description;
}

int engine_tokenize(const struct engine *e, const char *text, size_t len, int32_t *tokens, int max)
{
	int n = llama_tokenize(e->vocab, text, (int32_t)len, tokens, max, false, true);

	return n < 0 ? -E2BIG : n;
}

size_t engine_piece(const struct engine *e, int32_t token, char *buf, size_t n)
{
	int len = llama_token_to_piece(e->vocab, token, buf, (int32_t)n, 0, false);

	return len < 0 ? 0 : (size_t)len;
}

int engine_is_end(const struct engine *e, int32_t token)
{
	return llama_vocab_is_eog(e->vocab, token);
}

size_t engine_restore(struct engine *e, const int32_t *tokens, size_t n)
{
	return e->shared ? kvpool_llama_restore(e->shared, 0, tokens, n) : 0;
}

int engine_waited(const struct engine *e)
{
	struct kvpool_llama_stats s = { .size = sizeof(s) };

	return e->shared && kvpool_llama_get_stats(e->shared, &s) == 0 && s.waits > 0;
}

int engine_decode(struct engine *e, const int32_t *tokens, size_t pos, size_t n)
{
	struct llama_batch b = llama_batch_init((int32_t)n, 0, 1);
	int r;

	b.n_tokens = (int32_t)n;
	for (size_t i = 0; i < n; i++) {
		b.token[i] = tokens[i];
		b.pos[i] = (llama_pos)(pos + i);
		b.n_seq_id[i] = 1;
		b.seq_id[i][0] = 0;
		b.logits[i] = i == n - 1;
	}
	r = llama_decode(e->ctx, b);
	llama_batch_free(b);
	llama_synchronize(e->ctx);
	return r ? -EIO : 0;
}

const float *engine_logits(const struct engine *e, int *ret_n)
{
	*ret_n = llama_vocab_n_tokens(e->vocab);
	return llama_get_logits_ith(e->ctx, -1);
}

long engine_publish(struct engine *e, const int32_t *tokens, size_t n)
{
	return e->shared ? kvpool_llama_publish(e->shared, 0, tokens, n) : 0;
}

void engine_clear(struct engine *e)
{
	llama_memory_clear(llama_get_memory(e->ctx), true);
}
