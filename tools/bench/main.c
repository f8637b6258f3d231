/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "tools/bench/bench.h"

#define DESCRIPTORS_MAX (1u << 26)

static const struct bench_group *const groups[] = {
	&bench_lookup, &bench_hash, &bench_turn, &bench_zero_copy, &bench_copy,
	&bench_full,   &bench_llama,
};

struct command {
	struct bench_options opt;
	int json;
	const char *file;
};

/* True for all of what, and for what it has before a slash. */
static int is_name_of(const char *name, const char *what)
{
	size_t len = strlen(name);

	return !strncmp(name, what, len) && (!what[len] || what[len] == '/');
}

/* "lookup" and "lookup/128" both choose the group lookup. */
static int chooses(const char *name, const struct bench_group *g)
{
	int found = is_name_of(name, g->name);

	for (unsigned int i = 0; g->cases[i]; i++)
		found |= is_name_of(name, g->cases[i]);
	return found;
}

static int is_chosen(const struct bench_group *g, char *const names[], int n)
{
	for (int i = 0; i < n; i++)
		if (chooses(names[i], g))
			return 1;
	return 0;
}

static int is_known(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++)
		if (chooses(name, groups[i]))
			return 1;
	return 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: kvpool-bench [OPTIONS] [GROUP|CASE...]\n"
		"Measures kvpool against limits of this machine, with a private daemon.\n\n"
		"  --json[=FILE]       kvpool.bench/1 on stdout or in FILE, instead of a table\n"
		"  --rounds N          rounds of value and limit in turns (default 21, 5 to %u "
		"count)\n"
		"  --descriptors N     blocks in the pool beside what is measured (default 1000000)\n"
		"  --model FILE        GGUF file for the llama cases (default: $MODEL, or what\n"
		"                      tools/llama-setup left in the cache folder)\n"
		"  --text FILE         where their prompts are from (default: the GPL-3 of "
		"Debian)\n"
		"  --daemon PATH       kvpoold to start (default: beside this program)\n"
		"  -h, --help\n\nGroups and their cases:\n",
		BENCH_ROUNDS_MAX);
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++) {
		fprintf(to, "  %-10s", groups[i]->name);
		for (unsigned int k = 0; groups[i]->cases[k]; k++)
			fprintf(to, "%s %s", k ? "," : "", groups[i]->cases[k]);
		fputc('\n', to);
	}
	fprintf(to, "\nExit code: 0 every bar holds, 3 one does not, 1 a case could not run, 2 "
		    "usage.\n");
}

static uint64_t count_argument(const char *name, const char *text, uint64_t min, uint64_t max)
{
	const char *why;
	uint64_t n;

	if (parse_count(text, min, max, &n, &why) < 0) {
		fprintf(stderr, "kvpool-bench: --%s: \"%s\" %s\n", name, text, why);
		exit(2);
	}
	return n;
}

static void apply(struct command *c, int o)
{
	switch (o) {
	case 'j':
		c->json = 1;
		c->file = optarg;
		return;
	case 'r':
		c->opt.rounds = (unsigned int)count_argument("rounds", optarg, 1, BENCH_ROUNDS_MAX);
		return;
	case 'n':
		c->opt.descriptors = count_argument("descriptors", optarg, 1024, DESCRIPTORS_MAX);
		return;
	case 'm':
		c->opt.model = optarg;
		return;
	case 't':
		c->opt.text = optarg;
		return;
	case 'd':
		c->opt.daemon = optarg;
		return;
	default:
		usage(o == 'h' ? stdout : stderr);
		exit(o == 'h' ? 0 : 2);
	}
}

static void parse(struct command *c, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "json", optional_argument, NULL, 'j' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "descriptors", required_argument, NULL, 'n' },
		{ "model", required_argument, NULL, 'm' },
		{ "text", required_argument, NULL, 't' },
		{ "daemon", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
		apply(c, o);
	for (int i = optind; i < argc; i++)
		if (!is_known(argv[i])) {
			fprintf(stderr, "kvpool-bench: no group or case \"%s\": see --help\n",
				argv[i]);
			exit(2);
		}
}

/* Returns 0, or 1 when it could not run although it should have. */
static int run_group(const struct bench_group *g, const struct bench_options *opt, int by_name)
{
	int r = g->run(opt);

	if (r < 0)
		fprintf(stderr, "kvpool-bench: %s could not run: %s\n", g->name, strerror(-r));
	return r < 0 || (r == BENCH_NOT_RUN && by_name);
}

int main(int argc, char **argv)
{
	struct command c = { .opt = { .rounds = 21, .descriptors = 1000000 } };
	int failed = 0;

	parse(&c, argc, argv);
	if (!c.opt.daemon)
		c.opt.daemon = private_program("daemon", "kvpoold");
	bench_emit_to(c.json);
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++) {
		int by_name = is_chosen(groups[i], argv + optind, argc - optind);

		if (by_name || optind == argc)
			failed |= run_group(groups[i], &c.opt, by_name);
	}
	if (c.json && bench_write_json(c.file) < 0)
		failed = 1;
	return failed ? 1 : bench_missed() ? 3 : 0;
}
