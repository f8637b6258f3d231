/* SPDX-License-Identifier: Apache-2.0 */
/* Results as a table or as kvpool.bench/1, and whether their bars hold. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "tools/bench/bench.h"

static json_t *results, *not_run; /* NULL: a table */
static int missed;                /* bars that did not hold */

void bench_emit_to(int json)
{
	if (!json)
		return;
	results = json_array();
	not_run = json_array();
}

int bench_missed(void)
{
	return missed;
}

/* Seconds are measured, or bytes; people read this unit. */
static double in_unit(double x, const char *unit)
{
	return !strcmp(unit, "ns")   ? x * 1e9
	       : !strcmp(unit, "us") ? x * 1e6
	       : !strcmp(unit, "ms") ? x * 1e3
				     : x;
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
	if (w->model) {
		json_object_set_new(o, "model", json_string(w->model));
		json_object_set_new(o, "tokens", json_integer(w->tokens));
		json_object_set_new(o, "reused_tokens", json_integer(w->reused_tokens));
	}
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
		json_object_set_new(
			o, "sense",
			json_string(r->sense == BENCH_AT_MOST ? "at_most" : "at_least"));
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

	if (!r->why_not && r->with.writer_pid && r->with.writer_pid == r->with.reader_pid)
		r->why_not = "the reader had written it itself";
	if (!r->why_not && (r->value <= 0 || r->limit_value <= 0))
		r->why_not = "nothing was measured";
	if (!r->why_not && r->bar && r->with.rounds < BENCH_ROUNDS_MIN)
		r->why_not = "too few rounds";
	r->holds = within && !r->why_not;
	if (r->bar && !r->holds)
		missed++;
	if (results)
		emit_json(r);
	else
		emit_row(r);
}

void bench_not_run(const char *group, const char *why)
{
	fprintf(stderr, "kvpool-bench: %s did not run: %s\n", group, why);
	if (not_run)
		json_array_append_new(not_run, json_pack("{s:s, s:s}", "group", group, "why", why));
}

int bench_write_json(const char *file)
{
	json_t *o = json_pack("{s:s, s:o, s:o}", "schema", "kvpool.bench/1", "results", results,
			      "not_run", not_run);
	int r = file ? json_dump_file(o, file, JSON_INDENT(1))
		     : json_dumpf(o, stdout, JSON_INDENT(1));

	if (!file && (putchar('\n') == EOF || fflush(stdout)))
		r = -1;
	json_decref(o);
	if (r < 0)
		fprintf(stderr, "kvpool-bench: cannot write %s\n", file ? file : "the results");
	return r;
}
