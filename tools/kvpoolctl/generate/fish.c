/* SPDX-License-Identifier: Apache-2.0 */

#include "base/compiler.h"
#include "tools/kvpoolctl/candidates.h"
#include "tools/kvpoolctl/generate/generate.h"
#include "tools/kvpoolctl/info.h"
#include "tools/kvpoolctl/verb.h"

/* Text between single quotes. */
static void print_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

/* " -a ..." with what may stand for a value. */
static void print_offer(FILE *out, enum flag_value value, const char *choices)
{
	const char *kind = candidates_kind(value), *section;

	if (kind)
		fprintf(out, " -a '(kvpoolctl (__kvpoolctl_instance) " CANDIDATES_VERB " %s)'",
			kind);
	else if (value == VALUE_FILE)
		fputs(" -F", out);
	else if (value == VALUE_CHOICE)
		fprintf(out, " -a '%s'", choices);
	else if (value == VALUE_SECTION) {
		fputs(" -a '", out);
		for (unsigned int i = 0; (section = info_section(i)); i++)
			fprintf(out, "%s%s", i ? " " : "", section);
		fputc('\'', out);
	}
}

static void print_flag(FILE *out, const struct flag *f)
{
	fputs("complete -c kvpoolctl", out);
	if (f->verbs)
		fprintf(out, " -n '__fish_seen_subcommand_from %s'", f->verbs);
	if (f->letter)
		fprintf(out, " -s %c", f->letter);
	if (*f->name)
		fprintf(out, " -l %s", f->name);
	if (f->arg && *f->arg != '[')
		fputs(f->value == VALUE_FILE ? " -r" : " -x", out);
	if (f->arg)
		print_offer(out, f->value, f->choices);
	fputs(" -d ", out);
	print_quoted(out, f->help);
	fputc('\n', out);
}

static void print_verb(FILE *out, const struct verb *v)
{
	fprintf(out, "complete -c kvpoolctl -n __fish_use_subcommand -a %s -d ", v->name);
	print_quoted(out, v->help);
	fputc('\n', out);
	for (unsigned int i = 0; i < ARRAY_SIZE(v->values) && (int)i < v->max_args; i++) {
		if (v->values[i] == VALUE_ANY)
			continue;
		fprintf(out, "complete -c kvpoolctl -n '__fish_seen_subcommand_from %s'", v->name);
		print_offer(out, v->values[i], v->words);
		fputc('\n', out);
	}
}

static const char head[] = "# SPDX-License-Identifier: Apache-2.0\n"
			   "# Completion of kvpoolctl for fish, made from its tables.\n"
			   "function __kvpoolctl_instance\n"
			   "\tset -l words (commandline -opc)\n"
			   "\tfor i in (seq (count $words))\n"
			   "\t\tswitch $words[$i]\n"
			   "\t\t\tcase --system --user\n"
			   "\t\t\t\techo $words[$i]\n"
			   "\t\t\tcase --socket\n"
			   "\t\t\t\techo --socket=$words[(math $i + 1)]\n"
			   "\t\tend\n"
			   "\tend\n"
			   "end\n"
			   "complete -c kvpoolctl -f\n";

void fish_print(FILE *out)
{
	const struct verb *v;
	const struct flag *f;

	fputs(head, out);
	for (unsigned int i = 0; (v = verb_row(i)); i++)
		print_verb(out, v);
	for (unsigned int i = 0; (f = flag_row(i)); i++)
		print_flag(out, f);
}
