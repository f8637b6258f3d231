/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tools/demo/demo.h"
#include "tools/demo/engine.h"

struct part {
	const struct demo_options *opt;
	struct engine *e;
	int32_t *tokens;
	size_t n, room;
	struct demo_result result;
	float *logits; /* of the first token of the answer */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail(const struct part *p, const char *what, int r)
{
	fprintf(stderr, "kvpool-demo (%s): %s: %s\n", p->opt->part, what, strerror(-r));
	return r;
}

static int append(struct part *p, const char *text, size_t len, size_t most)
{
	int n = engine_tokenize(p->e, text, len, p->tokens + p->n, (int)(p->room - p->n));

	if (n < 0)
		return n;
	p->n += (size_t)n < most ? (size_t)n : most;
	return 0;
}

/* The start of the document, as long as the prompt wants it. The caller frees it. */
static char *read_document(const char *path, size_t max, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	char *text = f ? malloc(max) : NULL;

	if (text)
		*ret_len = fread(text, 1, max, f);
	if (f)
		fclose(f);
	return text;
}

static int build_prompt(struct part *p)
{
	/* No tokeniser makes more than a token a byte of text, and few less than one in eight. */
	size_t len, max = (size_t)p->opt->tokens * 8;
	_cleanup_free_ char *text = read_document(p->opt->document[0], max, &len);
	int r;

	p->room = max + 1024;
	p->tokens = malloc(p->room * sizeof(*p->tokens));
	if (!text || !p->tokens)
		return fail(p, p->opt->document[0], text ? -ENOMEM : -errno);
	r = append(p, engine_prompt.before, strlen(engine_prompt.before), SIZE_MAX);
	if (r == 0)
		r = append(p, text, len, p->opt->tokens - p->n);
	if (r == 0)
		r = append(p, engine_prompt.between, strlen(engine_prompt.between), SIZE_MAX);
	if (r == 0)
		r = append(p, p->opt->question, strlen(p->opt->question), SIZE_MAX);
	if (r == 0)
		r = append(p, engine_prompt.after, strlen(engine_prompt.after), SIZE_MAX);
	return r < 0 ? fail(p, "the prompt does not become tokens", r) : 0;
}

static int32_t best(const float *logits, int n)
{
	int k = 0;

	for (int i = 1; i < n; i++)
		if (logits[i] > logits[k])
			k = i;
	return k;
}

static int keep_logits(struct part *p)
{
	int n;
	const float *l = engine_logits(p->e, &n);

	p->logits = realloc(p->logits, (size_t)n * sizeof(*l));
	if (!p->logits)
		return -ENOMEM;
	memcpy(p->logits, l, (size_t)n * sizeof(*l));
	p->result.n_logits = (uint32_t)n;
	return 0;
}

/* Until the first token of the answer is known; then stores what was computed. */
static int prefill(struct part *p)
{
	double start = now(), t;
	size_t have = engine_restore(p->e, p->tokens, p->n);
	int r;

	p->result.restore = now() - start;
	p->result.reused_tokens = (uint32_t)have;
	p->result.waited = (uint32_t)engine_waited(p->e);
	r = engine_decode(p->e, p->tokens + have, have, p->n - have);
	if (r == 0)
		r = keep_logits(p);
	p->result.ttft = now() - start;
	if (r < 0)
		return fail(p, "prefill", r);
	t = now();
	p->result.published = engine_publish(p->e, p->tokens, p->n);
	p->result.publish = now() - t;
	return 0;
}

/* The same prompt once more without a cache, cut where the warm run was cut: only then are equal
 * bits to be expected. */
static int prefill_split(struct part *p)
{
	size_t at = p->opt->split;
	int r;

	engine_clear(p->e);
	r = engine_decode(p->e, p->tokens, 0, at);
	if (r == 0)
		r = engine_decode(p->e, p->tokens + at, at, p->n - at);
	return r == 0 ? keep_logits(p) : fail(p, "split prefill", r);
}

static int answer(struct part *p)
{
	size_t len = 0;
	int n;
	const float *logits = engine_logits(p->e, &n);
	int32_t token = best(logits, n);

	for (uint32_t i = 0; i < p->opt->answer && !engine_is_end(p->e, token); i++) {
		int r = engine_decode(p->e, &token, p->n + i, 1);

		if (r < 0)
			return fail(p, "decode", r);
		len += engine_piece(p->e, token, p->result.answer + len, DEMO_ANSWER_MAX - 1 - len);
		logits = engine_logits(p->e, &n);
		token = best(logits, n);
	}
	p->result.answer[len] = '\0';
	return 0;
}

static int write_all(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n) {
		ssize_t w = write(fd, at, n);

		if (w < 0 && errno != EINTR)
			return -errno;
		if (w > 0) {
			at += w;
			n -= (size_t)w;
		}
	}
	return 0;
}

static int tell(struct part *p)
{
	int r = write_all(p->opt->result_fd, &p->result, sizeof(p->result));

	if (r == 0)
		r = write_all(p->opt->result_fd, p->logits, p->result.n_logits * sizeof(float));
	return r < 0 ? fail(p, "cannot tell the result", r) : 0;
}

int demo_part(const struct demo_options *opt)
{
	struct part p = { .opt = opt };
	struct engine_config cfg = { opt->model, opt->socket, opt->tokens + opt->answer + 256 };
	char why[256];
	int r = engine_open(&cfg, &p.e, why, sizeof(why));

	if (r < 0)
		fprintf(stderr, "kvpool-demo (%s): %s\n", opt->part, why);
	if (r == 0) {
		snprintf(p.result.model, sizeof(p.result.model), "%s", engine_describe(p.e));
		r = build_prompt(&p);
	}
	p.result.prompt_tokens = (uint32_t)p.n;
	if (r == 0)
		r = prefill(&p);
	if (r == 0 && opt->split)
		r = prefill_split(&p);
	if (r == 0)
		r = answer(&p);
	if (r == 0)
		r = tell(&p);
	engine_close(p.e);
	free(p.logits);
	free(p.tokens);
	return r < 0 ? 1 : 0;
}
