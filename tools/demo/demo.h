/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demonstration: processes that share the prefix of one prompt, and the proof that nothing
 * differs.
 *
 * One program plays all parts. Without --part it is the stage: it starts a private daemon and then
 * itself, once for each process of the story, and compares what they answer. With --part it is one
 * of those processes.
 */
#ifndef KVP_TOOLS_DEMO_H
#define KVP_TOOLS_DEMO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DEMO_ANSWER_MAX 512

struct demo_options {
	const char *model;
	const char *document[2]; /* paths: the one that is shared first, and the new one */
	const char *question;
	const char *socket;
	const char *daemon, *ctl; /* programs */
	const char *json;         /* file to write, or NULL */
	const char *part;         /* name of the part to play, or NULL */
	uint32_t tokens;          /* of document in the prompt */
	uint32_t answer;          /* tokens to generate */
	uint32_t split;           /* cold parts: compare with a prefill that is split here */
	int result_fd;            /* where a part writes its struct demo_result and the logits */
};

/* What a part tells the stage. n_logits floats follow it. */
struct demo_result {
	uint32_t prompt_tokens, reused_tokens;
	uint32_t waited;
	uint32_t n_logits;
	double ttft;             /* seconds from the prompt to the first token of the answer */
	double restore, publish; /* of which, in kvpool */
	int64_t published;       /* blocks, or -errno */
	char answer[DEMO_ANSWER_MAX];
	char model[128];
};

/* Plays one part. Returns an exit code. */
int demo_part(const struct demo_options *opt);

/* Plays the story. Returns an exit code: 0 only when all of it came out as it must. */
int demo_stage(const struct demo_options *opt);

/* One process of the story, as the stage remembers it. */
struct demo_run {
	const char *name; /* in JSON */
	const char *text; /* in the table */
	pid_t pid;
	int fd;
	struct demo_result result;
	float *logits;
};

/* The table for people, and kvpool.demo/1. bit_equal: logits of the warm run are those of the cold
 * one, split alike. */
void demo_print(const struct demo_run *runs, size_t n, int bit_equal, double speedup);
int demo_write_json(const char *file, const struct demo_run *runs, size_t n, int bit_equal,
		    double speedup);

#endif
