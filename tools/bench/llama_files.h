/* SPDX-License-Identifier: Apache-2.0 */
/* Where the model and the text of the llama cases are. */
#ifndef KVP_TOOLS_BENCH_LLAMA_FILES_H
#define KVP_TOOLS_BENCH_LLAMA_FILES_H

#include "tools/bench/bench.h"

#define LLAMA_FILES_PATH 4096
#define LLAMA_FILES_WHY  (LLAMA_FILES_PATH + 128)

struct llama_files {
	char model[LLAMA_FILES_PATH];
	const char *model_name; /* the last part of its path */
	const char *text;
};

/*
 * Takes the files that the options name; otherwise the model from $MODEL or from the env.sh that
 * tools/llama-setup writes, and the text from where Debian has it. Returns 0, or -ENOENT and which
 * file is missing and what to do.
 */
int llama_files_find(struct llama_files *f, const struct bench_options *opt,
		     char why[LLAMA_FILES_WHY]);

#endif
