/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the demonstration needs of an engine. Two programs are built from it: one with libllama and
 * a real model (engine_llama.c), one with a small model of its own, for machines that have neither
 * (engine_toy.c).
 */
#ifndef KVP_TOOLS_DEMO_ENGINE_H
#define KVP_TOOLS_DEMO_ENGINE_H

#include <stddef.h>
#include <stdint.h>

struct engine;

struct engine_config {
	const char *model;  /* path; unused by the toy */
	const char *socket; /* of the pool; NULL: compute everything */
	uint32_t context;   /* tokens that fit */
};

/* Returns 0 and the engine, or -errno and a reason in words. */
int engine_open(const struct engine_config *cfg, struct engine **ret, char *why, size_t n);
void engine_close(struct engine *e);

/* A line about the model. */
const char *engine_describe(const struct engine *e);

/* How a question about a document is put to this model: what stands before, between and after. */
struct engine_prompt {
	const char *before, *between, *after;
};

extern const struct engine_prompt engine_prompt;

/* Tokens of len bytes of text. Returns how many, or -errno: at most max are written. */
int engine_tokenize(const struct engine *e, const char *text, size_t len, int32_t *tokens, int max);

/* The text of a token; returns its length, at most n. */
size_t engine_piece(const struct engine *e, int32_t token, char *buf, size_t n);

/* True when the model says that its answer ends here. */
int engine_is_end(const struct engine *e, int32_t token);

/* Takes from the pool what it has of a prompt. Returns the tokens that need not be computed. */
size_t engine_restore(struct engine *e, const int32_t *tokens, size_t n);

/* Whether the last restore waited for another process that computed the same. */
int engine_waited(const struct engine *e);

/* Computes n tokens from position pos on. Returns 0 or -errno. */
int engine_decode(struct engine *e, const int32_t *tokens, size_t pos, size_t n);

/* The logits after the last token computed: n of them. Valid until the next decode. */
const float *engine_logits(const struct engine *e, int *ret_n);

/* Stores in the pool what it does not have of the computed tokens. Returns the blocks stored, or
 * -errno. */
long engine_publish(struct engine *e, const int32_t *tokens, size_t n);

/* Forgets all tokens. */
void engine_clear(struct engine *e);

#endif
