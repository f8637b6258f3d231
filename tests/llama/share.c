/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program that uses the adapter, for share.sh to run several of:
 *
 *	share MODEL TYPE TEXT TOKENS MODE
 *
 * pool	restores, computes the rest, publishes
 * claim	restores, says so, and waits to be killed
 * split=N	computes all without a pool, the first N tokens in a batch of their own
 *
 * Prints what was restored and stored, and the last logits as a digest: only equal bits are equal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "client/llama/kvpool-llama.h"

#define TEXT_MAX (1 << 18)

#define need(what)                                                                         \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #what); \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

struct program {
	const char *path;
	struct llama_model *model;
	struct llama_context *ctx;
	struct llama_context_params params;
	int32_t tokens[TEXT_MAX];
	size_t n_tokens;
};

static struct program p;

static void quiet(enum ggml_log_level level, const char *text, void *unused)
{
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static enum ggml_type find_type(const char *name)
{
	for (int t = 0; t < GGML_TYPE_COUNT; t++)
		if (ggml_type_name(t) && !strcmp(ggml_type_name(t), name))
			return t;
	fprintf(stderr, "there is no type %s\n", name);
	exit(2);
}

static void read_prompt(const char *path)
{
	static char text[TEXT_MAX];
	FILE *f = fopen(path, "rb");
	size_t n;

	need(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	need(llama_tokenize(llama_model_get_vocab(p.model), text, (int)n, p.tokens, TEXT_MAX, true,
			    false) >= (int)p.n_tokens);
}

static void begin(char **args)
{
	struct llama_model_params params = llama_model_default_params();

	llama_log_set(quiet, NULL);
	llama_backend_init();
	params.n_gpu_layers = 0;
	p.path = args[0];
	p.model = llama_model_load_from_file(p.path, params);
	need(p.model);
	p.n_tokens = strtoul(args[3], NULL, 10);
	need(p.n_tokens > 0);
	read_prompt(args[2]);
	p.params = llama_context_default_params();
	p.params.n_ctx = (uint32_t)(p.n_tokens + 256) / 256 * 256;
	p.params.n_batch = p.params.n_ctx;
	p.params.n_seq_max = 2;
	p.params.kv_unified = true;
	p.params.n_threads = p.params.n_threads_batch = 2;
	p.params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
	p.params.type_k = p.params.type_v = find_type(args[1]);
	p.ctx = llama_init_from_model(p.model, p.params);
	need(p.ctx);
}

static void decode(size_t from, size_t to)
{
	struct llama_batch b = llama_batch_init((int)(to - from), 0, 1);

	b.n_tokens = (int)(to - from);
	for (size_t i = from; i < to; i++) {
		b.token[i - from] = p.tokens[i];
		b.pos[i - from] = (int)i;
		b.n_seq_id[i - from] = 1;
		b.seq_id[i - from][0] = 0;
		b.logits[i - from] = i == to - 1;
	}
	need(llama_decode(p.ctx, b) == 0);
	llama_batch_free(b);
	llama_synchronize(p.ctx);
}

static void print_logits(void)
{
	size_t n = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(p.model));
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(llama_get_logits_ith(p.ctx, -1), n * sizeof(float), digest);
	hex_encode(digest, sizeof(digest), hex);
	printf(" logits=%s\n", hex);
}

/* Says as one word why there was no more, and in what the namespace differs from others. */
static void print_why(struct kvpool_llama *shared)
{
	char text[512];

	kvpool_llama_why(shared, text, sizeof(text));
	printf(" why=\"%s\"", text);
	kvpool_ns_difference(kvpool_llama_ns(shared), text, sizeof(text));
	printf(" difference='%s'", text);
}

static int with_pool(const char *mode)
{
	struct kvpool_llama_options o;
	struct kvpool_llama *shared;
	struct kvpool *pool;
	char why[256] = "";
	size_t have;
	long stored;

	kvpool_llama_options_init(&o, &p.params);
	o.model_path = p.path;
	o.wait_ms = 60000;
	need(kvpool_connect(NULL, &pool) == 0);
	if (kvpool_llama_open(pool, p.ctx, &o, &shared, why, sizeof(why)) < 0) {
		fprintf(stderr, "cannot share: %s\n", why);
		return 1;
	}
	have = kvpool_llama_restore(shared, 0, p.tokens, p.n_tokens);
	printf("restored=%zu", have);
	print_why(shared);
	if (!strcmp(mode, "claim")) {
		printf("\n");
		fflush(stdout);
		pause();
	}
	decode(have, p.n_tokens);
	stored = kvpool_llama_publish(shared, 0, p.tokens, p.n_tokens);
	printf(" stored=%ld", stored);
	print_logits();
	kvpool_llama_close(shared);
	kvpool_close(pool);
	return 0;
}

int main(int argc, char **argv)
{
	size_t split;

	if (argc != 6) {
		fprintf(stderr, "usage: see the comment at the top of the file\n");
		return 2;
	}
	begin(argv + 1);
	if (sscanf(argv[5], "split=%zu", &split) != 1)
		return with_pool(argv[5]);
	if (split)
		decode(0, split);
	decode(split, p.n_tokens);
	printf("restored=0 stored=0");
	print_logits();
	return 0;
}
