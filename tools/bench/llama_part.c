/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/llama_part.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "client/llama/kvpool-llama.h"
#include "tools/bench/bench.h"
#include "tools/demo/engine.h"
#include "tools/demo/engine_llama.h"

#define TOKENS_MAX   65536u
#define TEXT_MAX     MIB(1)
#define TOKENS_ROOM  (TEXT_MAX + 16) /* no tokeniser makes more than a token a byte, and a few */
#define CONTEXT_MORE 64u             /* tokens of context beside the prompt */
#define COPIES       3u              /* of which the fastest counts */

struct job {
	const char *socket, *model, *text;
	uint64_t tokens;
};

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "kvpool-bench-llama: %s: %s\n", what, why);
	return -EIO;
}

/* The first tokens of the text; the caller frees them. */
static int read_prompt(const struct engine *e, const struct job *job, int32_t **ret)
{
	_cleanup_free_ char *text = malloc(TEXT_MAX);
	_cleanup_free_ int32_t *tokens = malloc(TOKENS_ROOM * sizeof(*tokens));
	FILE *f = fopen(job->text, "r");
	size_t len;
	int n;

	if (!f)
		return fail(job->text, strerror(errno));
	len = text && tokens ? fread(text, 1, TEXT_MAX, f) : 0;
	fclose(f);
	if (!text || !tokens)
		return fail(job->text, strerror(ENOMEM));
	n = engine_tokenize(e, text, len, tokens, (int)TOKENS_ROOM);
	if (n < 0 || (uint64_t)n < job->tokens) {
		char why[96];

		snprintf(why, sizeof(why), "has %d tokens, and %llu are needed: give a longer text",
			 n, (unsigned long long)job->tokens);
		return fail(job->text, why);
	}
	*ret = TAKE_PTR(tokens);
	return 0;
}

/* What an application has to know before it can go on. */
static int pick_token(const struct engine *e)
{
	int n, best = 0;
	const float *logits = engine_logits(e, &n);

	for (int i = 1; i < n; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

/* memcpy of as many bytes as were restored, from memory like the pool's. Seconds, or -errno. */
static double time_copy(uint64_t bytes)
{
	void *from = bench_shared_memory(bytes);
	void *to = malloc(bytes);
	double best = -ENOMEM;

	if (from && to) {
		memset(to, 1, bytes);
		for (unsigned int i = 0; i < COPIES; i++) {
			double t = bench_now();

			memcpy(to, from, bytes);
			/* Somebody might read it: the copy must not be left out. */
			__asm__ volatile("" : : "r"(to) : "memory");
			t = bench_now() - t;
			best = i ? MIN(best, t) : t;
		}
	}
	free(to);
	if (from)
		munmap(from, bytes);
	return best;
}

static int run(struct engine *e, const int32_t *tokens, struct llama_part *p)
{
	struct kvpool_llama *adapter = engine_adapter(e);
	struct kvpool_llama_stats s = { .size = sizeof(s) };
	double t0 = bench_now(), t1, t2;
	volatile int first;
	int r;

	p->reused_tokens = (uint32_t)engine_restore(e, tokens, p->tokens);
	t1 = bench_now();
	r = engine_decode(e, tokens + p->reused_tokens, p->reused_tokens,
			  p->tokens - p->reused_tokens);
	if (r < 0)
		return fail("the engine does not compute the prompt", strerror(-r));
	first = pick_token(e);
	(void)first;
	t2 = bench_now();
	p->stored_blocks = engine_publish(e, tokens, p->tokens);
	p->publish = bench_now() - t2;
	p->restore = t1 - t0;
	p->prefill = t2 - t1;
	kvpool_llama_get_stats(adapter, &s);
	p->restore_own = (double)(s.restore_ns - s.restore_engine_ns) * 1e-9;
	p->block_tokens = kvpool_ns_block_tokens(kvpool_llama_ns(adapter));
	if (p->reused_tokens)
		p->copy = time_copy(p->reused_tokens / p->block_tokens *
				    kvpool_ns_block_bytes(kvpool_llama_ns(adapter)));
	return p->copy < 0 ? fail("memcpy", strerror(ENOMEM)) : 0;
}

static int run_job(const struct job *job)
{
	struct llama_part p = { .size = sizeof(p),
				.pid = (int32_t)getpid(),
				.tokens = (uint32_t)job->tokens };
	struct engine_config cfg = { .model = job->model,
				     .socket = job->socket,
				     .context = p.tokens + CONTEXT_MORE };
	_cleanup_free_ int32_t *tokens = NULL;
	struct engine *e;
	char why[256];
	int r;

	if (engine_open(&cfg, &e, why, sizeof(why)) < 0)
		return fail(job->model, why);
	r = read_prompt(e, job, &tokens);
	if (r == 0)
		r = run(e, tokens, &p);
	engine_close(e);
	if (r == 0 && (fwrite(&p, sizeof(p), 1, stdout) != 1 || fflush(stdout)))
		r = fail("cannot tell the result", strerror(errno));
	return r;
}

int main(int argc, char **argv)
{
	struct job job;
	const char *why;

	if (argc != 5 || parse_count(argv[4], 2, TOKENS_MAX, &job.tokens, &why) < 0) {
		fprintf(stderr, "Usage: kvpool-bench-llama SOCKET MODEL TEXT TOKENS\n"
				"A part of kvpool-bench, which starts it.\n");
		return 2;
	}
	job.socket = argv[1];
	job.model = argv[2];
	job.text = argv[3];
	return run_job(&job) < 0 ? 1 : 0;
}
