/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvpool-bench-llama SOCKET MODEL TEXT TOKENS: one process of the llama cases. It takes from the
 * pool what is there of a prompt, computes the rest, stores what it computed, and writes a struct
 * llama_part to its standard output. Whether that was a cold or a warm start is told by what was
 * there. It is a program of its own because it links libllama.
 */
#ifndef KVP_TOOLS_BENCH_LLAMA_PART_H
#define KVP_TOOLS_BENCH_LLAMA_PART_H

#include <stdint.h>

/* Times are in seconds. The model is loaded, and the prompt made of tokens, before any of them. */
struct llama_part {
	uint32_t size; /* of this struct: both programs must be of one build */
	int32_t pid;
	uint32_t tokens, reused_tokens, block_tokens;
	int64_t stored_blocks; /* or -errno */
	double restore;        /* all of it */
	double restore_own;    /* of it, outside of the engine */
	double prefill;        /* of what was not restored, until the first token is known */
	double publish;        /* all of it */
	double copy;           /* memcpy of the bytes that were restored; 0 for none */
};

#endif
