/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/reason.h"
#include "tools/kvpoolctl/exit.h"
#include "tools/kvpoolctl/generate/generate.h"
#include "tools/kvpoolctl/verb.h"

#define LINE_BYTES 1024u

/* Text in which nothing is markup. */
static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void print_paragraph(FILE *out, const char *text, const char *end)
{
	fputc('\t', out);
	print_text(out, text);
	fprintf(out, "%s\n", end);
}

static void print_commands(FILE *out)
{
	const struct verb *v;

	for (unsigned int i = 0; (v = verb_row(i)); i++) {
		fprintf(out, "*%s* ", v->name);
		print_text(out, v->args);
		fputc('\n', out);
		print_paragraph(out, v->help, ".");
		fputc('\n', out);
		print_paragraph(out, v->about, "");
		fprintf(out, "\n\t");
		print_text(out, v->example);
		fputs("\n\n", out);
	}
}

static void print_option(FILE *out, const struct flag *f)
{
	int optional = f->arg && *f->arg == '[';

	if (f->letter)
		fprintf(out, "*-%c*%s", f->letter, *f->name ? ", " : "");
	if (*f->name)
		fprintf(out, "*--%s*", f->name);
	if (f->arg) {
		fputs(optional ? "[=" : " ", out);
		print_text(out, f->arg + optional);
	}
	fputc('\n', out);
	print_paragraph(out, f->help, ".");
	if (f->choices && f->verbs) {
		fputs("\tOne of: ", out);
		print_text(out, f->choices);
		fputs(".\n", out);
	}
	if (f->verbs) {
		fputs("\tFor: ", out);
		print_text(out, f->verbs);
		fputs(".\n", out);
	}
	fputc('\n', out);
}

static void print_options(FILE *out)
{
	const struct flag *f;

	for (unsigned int i = 0; (f = flag_row(i)); i++)
		print_option(out, f);
}

static void print_status(FILE *out)
{
	const struct exit_meaning *m;

	for (unsigned int i = 0; (m = exit_meaning(i)); i++)
		fprintf(out, "%s *%d*\n:%s %s.\n", i ? "| " : "|[", m->status, i ? " " : "<",
			m->text);
}

static void print_columns(FILE *out)
{
	const struct verb *v;

	for (unsigned int i = 0; (v = verb_row(i)); i++) {
		const struct listing_kind *l = v->listing;

		if (!l)
			continue;
		fprintf(out, "## %s\n\n", v->name);
		for (unsigned int c = 0; c < l->n_columns; c++) {
			fprintf(out, "%s *%s*\n:%s ", c ? "| " : "|[", l->columns[c].title,
				c ? " " : "<");
			print_text(out, l->columns[c].help);
			fprintf(out, "%s\n",
				l->columns[c].flags & TABLE_EXTRA ? "; when asked for" : "");
		}
		fputc('\n', out);
	}
}

static void print_reasons(FILE *out)
{
	int first = 1;

	for (unsigned int i = 1; i <= MISS_MAX; i++) {
		if (!*miss_reason_help(i))
			continue;
		fprintf(out, "%s *", first ? "|[" : "| ");
		print_text(out, miss_reason_name(i));
		fprintf(out, "*\n:%s ", first ? "<" : " ");
		print_text(out, miss_reason_help(i));
		fputc('\n', out);
		first = 0;
	}
}

static const struct {
	const char *line;
	void (*print)(FILE *out);
} lists[] = {
	{ "@commands@\n", print_commands }, { "@options@\n", print_options },
	{ "@status@\n", print_status },     { "@columns@\n", print_columns },
	{ "@reasons@\n", print_reasons },
};

static int print_list(const char *line, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (!strcmp(line, lists[i].line)) {
			lists[i].print(out);
			return 0;
		}
	fprintf(stderr, "there is no list %s", line);
	return -EINVAL;
}

int manpage_print(FILE *in, FILE *out)
{
	char line[LINE_BYTES];

	while (fgets(line, sizeof(line), in))
		if (*line != '@')
			fputs(line, out);
		else if (print_list(line, out))
			return -EINVAL;
	return 0;
}
