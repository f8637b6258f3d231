/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/compiler.h"
#include "tools/bench/bench.h"

static json_t *results; /* NULL: a table */
static int missed;	/* bars that did not hold */

/* Seconds are measured; people read this unit. */
static double in_unit(double seconds, const char *unit)
{
	return !strcmp(unit, "ns")   ? seconds * 1e9
	       : !strcmp(unit, "us") ? seconds * 1e6
				     : seconds * 1e3;
}

static json_t *with_json(const struct bench_with *w)
{
	json_t *o = json_pack("{s:I, s:i, s:i, s:b, s:i, s:i, s:I}", "descriptors",
			      (json_int_t)w->descriptors, "writer_pid", (int)w->writer_pid,
			      "reader_pid", (int)w->reader_pid, "pool_full", w->pool_full, "cpus",
			      (int)w->cpus, "rounds", (int)w->rounds, "page_bytes",
			      (json_int_t)w->page_bytes);

	if (w->syscalls_counted)
		json_object_set_new(o, "syscalls", json_integer((json_int_t)w->syscalls));
	return o;
}

static void emit_json(const struct bench_result *r)
{
	json_t *o = json_pack("{s:s, s:f, s:f, s:s, s:s, s:f, s:f, s:f, s:o}", "case", r->name,
			      "value", in_unit(r->value, r->unit), "value_median",
			      in_unit(r->value_median, r->unit), "unit", r->unit, "limit", r->limit,
			      "limit_value", in_unit(r->limit_value, r->unit), "limit_median",
			      in_unit(r->limit_median, r->unit), "ratio", r->ratio, "with",
			      with_json(&r->with));

	if (r->bar) {
		json_object_set_new(o, "bar", json_real(r->bar));
		json_object_set_new(o, "holds", json_boolean(r->holds));
	}
	if (r->why_not)
		json_object_set_new(o, "why_not", json_string(r->why_not));
	json_array_append_new(results, o);
}

static void emit_row(const struct bench_result *r)
{
	static int header;

	if (!header++)
		printf("%-18s %10s %10s %4s  %8s %8s  %-5s  %s\n", "CASE", "VALUE", "LIMIT", "UNIT",
		       "RATIO", "BAR", "HOLDS", "LIMIT IS");
	printf("%-18s %10.1f %10.1f %4s  %8.3f ", r->name, in_unit(r->value, r->unit),
	       in_unit(r->limit_value, r->unit), r->unit, r->ratio);
	if (r->bar)
		printf("%s%7.2f  %-5s  ", r->sense == BENCH_AT_MOST ? "<" : ">", r->bar,
		       r->holds ? "yes" : "NO");
	else
		printf("%8s  %-5s  ", "-", "-");
	printf("%s%s%s\n", r->limit, r->why_not ? "; does not count: " : "",
	       r->why_not ? r->why_not : "");
	fflush(stdout);
}

void bench_emit(struct bench_result *r)
{
	int within = r->sense == BENCH_AT_MOST ? r->ratio <= r->bar : r->ratio >= r->bar;

	if (!r->why_not && r->with.rounds < 5)
		r->why_not = "fewer than 5 rounds";
	r->holds = within && !r->why_not;
	if (r->bar && !r->holds)
		missed++;
	if (results)
		emit_json(r);
	else
		emit_row(r);
}

static const struct bench_group *const groups[] = {
	&bench_lookup,
	&bench_hash,
	&bench_zero_copy,
	&bench_copy,
};

/* "lookup" and "lookup/128" both choose the group lookup; no name chooses all. */
static int chosen(const struct bench_group *g, char *const names[], int n)
{
	size_t len = strlen(g->name);

	for (int i = 0; i < n; i++)
		if (!strncmp(names[i], g->name, len) && (!names[i][len] || names[i][len] == '/'))
			return 1;
	return n == 0;
}

static int known(char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++)
		if (chosen(groups[i], &name, 1))
			return 1;
	return 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: kvpool-bench [OPTIONS] [GROUP...]\n"
		"Measures kvpool against limits of this machine, with a private daemon.\n\n"
		"  --json[=FILE]       kvpool.bench/1 on stdout or in FILE, instead of a table\n"
		"  --rounds N          rounds of value and limit in turns (default 7, 5 to 64 "
		"count)\n"
		"  --descriptors N     other blocks in the pool during lookups (default 1000000)\n"
		"  --daemon PATH       kvpoold to start (default: beside this program)\n"
		"  -h, --help\n\nGroups:");
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++)
		fprintf(to, " %s", groups[i]->name);
	fprintf(to, "\nExit code: 0 every bar holds, 3 one does not, 1 a case could not run, 2 "
		    "usage.\n");
}

struct command {
	struct bench_options opt;
	int json;
	const char *file;
};

static uint64_t count_argument(const char *name, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*end || end == text || n < min || n > max) {
		fprintf(stderr, "kvpool-bench: --%s %s: must be a number from %llu to %llu\n", name,
			text, (unsigned long long)min, (unsigned long long)max);
		exit(2);
	}
	return n;
}

static void parse(struct command *c, int argc, char **argv)
{
	static const struct option long_options[] = {
		{"json", optional_argument, NULL, 'j'},
		{"rounds", required_argument, NULL, 'r'},
		{"descriptors", required_argument, NULL, 'n'},
		{"daemon", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (o == 'j') {
			c->json = 1;
			c->file = optarg;
		} else if (o == 'r') {
			c->opt.rounds =
				(unsigned int)count_argument("rounds", optarg, 1, BENCH_ROUNDS_MAX);
		} else if (o == 'n') {
			c->opt.descriptors = count_argument("descriptors", optarg, 1024, 1u << 26);
		} else if (o == 'd') {
			c->opt.daemon = optarg;
		} else {
			usage(o == 'h' ? stdout : stderr);
			exit(o == 'h' ? 0 : 2);
		}
	}
	for (int i = optind; i < argc; i++)
		if (!known(argv[i])) {
			fprintf(stderr, "kvpool-bench: no group \"%s\": see --help\n", argv[i]);
			exit(2);
		}
}

static int write_json(const char *file)
{
	json_t *o = json_pack("{s:s, s:o}", "schema", "kvpool.bench/1", "results", results);
	int r = file ? json_dump_file(o, file, JSON_INDENT(1))
		     : json_dumpf(o, stdout, JSON_INDENT(1));

	if (!file)
		putchar('\n');
	json_decref(o);
	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot write %s\n", file ? file : "the results");
	return r;
}

int main(int argc, char **argv)
{
	struct command c = {.opt = {.rounds = 7, .descriptors = 1000000}};
	int failed = 0;

	parse(&c, argc, argv);
	if (!c.opt.daemon)
		c.opt.daemon = private_program("daemon", "kvpoold");
	if (c.json)
		results = json_array();
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++) {
		int r;

		if (!chosen(groups[i], argv + optind, argc - optind))
			continue;
		r = groups[i]->run(&c.opt);
		if (r < 0) {
			fprintf(stderr, "kvpool-bench: %s could not run: %s\n", groups[i]->name,
				strerror(-r));
			failed = 1;
		}
	}
	if (c.json && write_json(c.file) < 0)
		failed = 1;
	return failed ? 1 : missed ? 3 : 0;
}
