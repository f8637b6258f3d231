/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/compiler.h"
#include "tools/kvpoolctl/candidates.h"
#include "tools/kvpoolctl/generate/generate.h"
#include "tools/kvpoolctl/info.h"
#include "tools/kvpoolctl/verb.h"

/* Text between single quotes, in a specification of _arguments or _describe. */
static void print_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr(":[]\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
}

/* The action of _arguments for a value. */
static void print_action(FILE *out, enum flag_value value, const char *choices)
{
	const char *kind = candidates_kind(value), *section;

	if (kind)
		fprintf(out, "{_kvpoolctl_names %s}", kind);
	else if (value == VALUE_FILE)
		fputs("_files", out);
	else if (value == VALUE_CHOICE)
		fprintf(out, "(%s)", choices);
	else if (value == VALUE_SECTION) {
		for (unsigned int i = 0; (section = info_section(i)); i++)
			fprintf(out, "%c%s", i ? ' ' : '(', section);
		fputc(')', out);
	} else
		fputc(' ', out);
}

static void print_spec(FILE *out, const struct flag *f, const char *form, const char *end)
{
	fprintf(out, "\t\t'%s%s[", form,
		!f->arg                   ? ""
		: *f->arg == '['          ? "=-"
		: *form && form[1] == '-' ? "="
					  : "+");
	print_text(out, f->help);
	fputc(']', out);
	if (f->arg) {
		fputs(*f->arg == '[' ? "::" : ":", out);
		fprintf(out, "%s:", *f->arg == '[' ? "form" : f->name);
		print_action(out, f->value, f->choices);
	}
	fprintf(out, "'%s\n", end);
}

static void print_flag(FILE *out, const struct flag *f, const char *end)
{
	char form[64];

	if (f->letter) {
		snprintf(form, sizeof(form), "-%c", f->letter);
		print_spec(out, f, form, end);
	}
	if (*f->name) {
		snprintf(form, sizeof(form), "--%s", f->name);
		print_spec(out, f, form, end);
	}
}

static void print_flags(FILE *out, const char *verb)
{
	const struct flag *f;

	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (f->verbs && flag_applies(f, verb))
			print_flag(out, f, " \\");
}

static void print_verb(FILE *out, const struct verb *v)
{
	fprintf(out, "\t%s) _arguments -s : $common \\\n", v->name);
	print_flags(out, v->name);
	for (unsigned int i = 0; i < ARRAY_SIZE(v->values) && (int)i < v->max_args; i++) {
		if (v->values[i] == VALUE_ANY)
			continue;
		fprintf(out, "\t\t'%u::argument:", i + 1);
		print_action(out, v->values[i], v->words);
		fputs("' \\\n", out);
	}
	fputs("\t\t&& return ;;\n", out);
}

static const char head[] =
	"#compdef kvpoolctl\n"
	"# SPDX-License-Identifier: Apache-2.0\n"
	"# Completion of kvpoolctl for zsh, made from its tables.\n"
	"_kvpoolctl_names() {\n"
	"\tlocal -a names\n"
	"\tnames=(${(f)\"$(_call_program names kvpoolctl $instance " CANDIDATES_VERB
	" $1 2>/dev/null)\"})\n"
	"\tcompadd -a names\n"
	"}\n"
	"_kvpoolctl() {\n"
	"\tlocal -a common verbs instance\n"
	"\tlocal curcontext=$curcontext state line\n"
	"\tlocal -i i\n"
	"\tfor ((i = 2; i < CURRENT; i++)); do\n"
	"\t\tcase $words[i] in\n"
	"\t\t--system|--user) instance=($words[i]) ;;\n"
	"\t\t--socket) instance=(--socket $words[i+1]) ;;\n"
	"\t\tesac\n"
	"\tdone\n";

void zsh_print(FILE *out)
{
	const struct verb *v;
	const struct flag *f;

	fputs(head, out);
	fputs("\tverbs=(\n", out);
	for (unsigned int i = 0; (v = verb_row(i)); i++) {
		fprintf(out, "\t\t'%s:", v->name);
		print_text(out, v->help);
		fputs("'\n", out);
	}
	fputs("\t)\n\tcommon=(\n", out);
	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (!f->verbs)
			print_flag(out, f, "");
	fputs("\t)\n"
	      "\t_arguments -s -C : $common '1: :->verb' '*:: :->arguments' && return\n"
	      "\t[[ $state == verb ]] && { _describe command verbs; return }\n"
	      "\tcase $words[1] in\n",
	      out);
	for (unsigned int i = 0; (v = verb_row(i)); i++)
		print_verb(out, v);
	fputs("\tesac\n}\n_kvpoolctl \"$@\"\n", out);
}
