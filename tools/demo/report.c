/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "tools/demo/demo.h"

/* The first words of an answer, on one line. */
static void print_answer(const char *text)
{
	int n = 0;

	putchar('"');
	for (; *text && n < 56; text++, n++)
		putchar(*text == '\n' ? ' ' : *text);
	printf("%s\"", *text ? "..." : "");
}

void demo_print(const struct demo_run *runs, size_t n, int bit_equal, double speedup)
{
	const struct demo_result *cold = &runs[2].result;

	printf("\nModel: %s\n\n", runs[0].result.model);
	printf("%-17s %6s %6s %8s %12s %9s\n", "RUN", "PROMPT", "REUSED", "COMPUTED", "FIRST TOKEN",
	       "SPEED-UP");
	for (size_t i = 0; i < n; i++) {
		const struct demo_result *r = &runs[i].result;

		printf("%-17s %6u %6u %8u %10.3f s ", runs[i].text, r->prompt_tokens,
		       r->reused_tokens, r->prompt_tokens - r->reused_tokens, r->ttft);
		if (r->reused_tokens && !r->waited)
			printf("%7.1f x", cold->ttft / r->ttft);
		else
			printf("%9s", r->waited ? "waited" : "-");
		printf("\n    ");
		print_answer(r->answer);
		putchar('\n');
	}
	printf("\nLogits of the second process and of the run without the pool, split at token %u: "
	       "%s\n",
	       runs[1].result.reused_tokens, bit_equal ? "equal, bit for bit" : "DIFFERENT");
	printf("First token %.1f times sooner with the cached prefix.\n", speedup);
	fflush(stdout);
}

static json_t *run_json(const struct demo_run *run)
{
	const struct demo_result *r = &run->result;

	return json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:I, s:b, s:s%}", "name", run->name,
			 "prompt_tokens", (int)r->prompt_tokens, "reused_tokens",
			 (int)r->reused_tokens, "ttft_seconds", r->ttft, "restore_seconds",
			 r->restore, "publish_seconds", r->publish, "published_blocks",
			 (json_int_t)r->published, "waited", (int)r->waited, "answer", r->answer,
			 strlen(r->answer));
}

int demo_write_json(const char *file, const struct demo_run *runs, size_t n, int bit_equal,
		    double speedup)
{
	json_t *list = json_array(), *o;
	int r;

	for (size_t i = 0; i < n; i++) {
		json_t *run = run_json(&runs[i]);

		/* An answer that was cut inside a character is not UTF-8. */
		json_array_append_new(list, run ? run : json_pack("{s:s}", "name", runs[i].name));
	}
	o = json_pack("{s:s, s:s, s:b, s:f, s:o}", "schema", "kvpool.demo/1", "model",
		      runs[0].result.model, "bit_equal", bit_equal, "speedup", speedup, "runs",
		      list);
	r = json_dump_file(o, file, JSON_INDENT(1));
	json_decref(o);
	if (r < 0)
		fprintf(stderr, "kvpool-demo: cannot write %s\n", file);
	return r < 0 ? -EIO : 0;
}
