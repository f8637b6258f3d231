/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/llama_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT  "/usr/share/common-licenses/GPL-3"
#define MODEL "MODEL="

/* Undoes the backslashes that a shell puts before what it would take for its own. */
static void unquote(const char *from, char *to)
{
	for (; *from && *from != '\n'; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
}

/* The value of MODEL in a file of shell variables. Returns 0 or -ENOENT. */
static int read_env(const char *path, char ret[LLAMA_FILES_PATH])
{
	char line[LLAMA_FILES_PATH];
	FILE *f = fopen(path, "r");
	int r = -ENOENT;

	while (f && r < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, MODEL, strlen(MODEL))) {
			unquote(line + strlen(MODEL), ret);
			r = 0;
		}
	if (f)
		fclose(f);
	return r;
}

static int find_model(const char *given, char ret[LLAMA_FILES_PATH])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[LLAMA_FILES_PATH];

	if (!given)
		given = getenv("MODEL");
	if (given && *given) {
		snprintf(ret, LLAMA_FILES_PATH, "%s", given);
		return 0;
	}
	if (cache && *cache)
		snprintf(path, sizeof(path), "%s/kvpool/env.sh", cache);
	else
		snprintf(path, sizeof(path), "%s/.cache/kvpool/env.sh", home ? home : "");
	return read_env(path, ret);
}

int llama_files_find(struct llama_files *f, const struct bench_options *opt,
		     char why[LLAMA_FILES_WHY])
{
	const char *slash;

	f->text = opt->text ? opt->text : TEXT;
	if (find_model(opt->model, f->model) < 0) {
		snprintf(why, LLAMA_FILES_WHY,
			 "there is no model: give --model FILE, or run tools/llama-setup");
		return -ENOENT;
	}
	if (access(f->model, R_OK) < 0) {
		snprintf(why, LLAMA_FILES_WHY, "the model %s: %s; give --model FILE", f->model,
			 strerror(errno));
		return -ENOENT;
	}
	if (access(f->text, R_OK) < 0) {
		snprintf(why, LLAMA_FILES_WHY, "the text %s: %s; give --text FILE", f->text,
			 strerror(errno));
		return -ENOENT;
	}
	slash = strrchr(f->model, '/');
	f->model_name = slash ? slash + 1 : f->model;
	return 0;
}
