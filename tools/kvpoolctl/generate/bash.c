/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "tools/kvpoolctl/candidates.h"
#include "tools/kvpoolctl/generate/generate.h"
#include "tools/kvpoolctl/info.h"
#include "tools/kvpoolctl/verb.h"

static void print_sections(FILE *out)
{
	const char *section;

	for (unsigned int i = 0; (section = info_section(i)); i++)
		fprintf(out, "%s%s", i ? " " : "", section);
}

/* What fills COMPREPLY for a value, a command without an end. */
static void print_offer(FILE *out, enum flag_value value, const char *choices)
{
	const char *kind = candidates_kind(value);

	if (kind)
		fprintf(out, "__kvpoolctl_names %s", kind);
	else if (value == VALUE_FILE)
		fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", out);
	else if (value == VALUE_SECTION) {
		fputs("__kvpoolctl_words \"", out);
		print_sections(out);
		fputc('"', out);
	} else if (value == VALUE_CHOICE)
		fprintf(out, "__kvpoolctl_words \"%s\"", choices);
	else
		fputs("COMPREPLY=()", out);
}

static void print_columns(FILE *out, const struct listing_kind *l)
{
	fputs("__kvpoolctl_words \"all", out);
	for (unsigned int i = 0; i < l->n_columns; i++)
		fprintf(out, " %s", l->columns[i].title);
	fputc('"', out);
}

/* A case for each option of the verb that takes a value; NULL: those of all verbs. */
static void print_values(FILE *out, const struct verb *v)
{
	const struct flag *f;

	for (unsigned int i = 0; (f = flag_row(i)); i++) {
		if (!f->arg || *f->arg == '[' || !f->verbs != !v ||
		    (v && !flag_applies(f, v->name)))
			continue;
		fprintf(out, "\t%s--%s", v ? "\t" : "", f->name);
		if (f->letter)
			fprintf(out, "|-%c", f->letter);
		fputs(") ", out);
		if (f->value == VALUE_COLUMNS && v && v->listing)
			print_columns(out, v->listing);
		else
			print_offer(out, f->value, f->choices);
		fputs("; return ;;\n", out);
	}
}

static void print_flag_names(FILE *out, const char *verb)
{
	const struct flag *f;

	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (*f->name && (verb ? f->verbs && flag_applies(f, verb) : !f->verbs))
			fprintf(out, " --%s", f->name);
}

static void print_verb(FILE *out, const struct verb *v)
{
	fprintf(out, "\t%s)\n\t\tflags=\"", v->name);
	print_flag_names(out, v->name);
	fputs("\"\n\t\tcase $prev in\n", out);
	print_values(out, v);
	fputs("\t\tesac\n\t\tcase $nth in\n", out);
	for (unsigned int i = 0; i < ARRAY_SIZE(v->values) && (int)i < v->max_args; i++) {
		if (v->values[i] == VALUE_ANY)
			continue;
		fprintf(out, "\t\t%u) ", i);
		print_offer(out, v->values[i], v->words);
		fputs(" ;;\n", out);
	}
	fputs("\t\tesac ;;\n", out);
}

/*
 * The command is the first word that is no option and no value of one; nth counts the words behind
 * it. A socket that was named is the one that is asked for names.
 */
static const char head[] =
	"# SPDX-License-Identifier: Apache-2.0\n"
	"# Completion of kvpoolctl for bash, made from its tables.\n"
	"__kvpoolctl_names() {\n"
	"\tlocal IFS=$'\\n'\n"
	"\tCOMPREPLY=($(compgen -W \"$(kvpoolctl \"${instance[@]}\" " CANDIDATES_VERB
	" \"$1\" 2>/dev/null)\" -- \"$cur\"))\n"
	"}\n"
	"__kvpoolctl_words() {\n"
	"\tCOMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
	"}\n"
	"_kvpoolctl() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal verb= nth=-1 flags= i instance=()\n"
	"\tCOMPREPLY=()\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--system|--user) instance=(\"${COMP_WORDS[i]}\") ;;\n"
	"\t\t--socket) instance=(--socket \"${COMP_WORDS[i+1]}\"); ((i++)) ;;\n";

static void print_skipped(FILE *out)
{
	const struct flag *f;
	const char *between = "";

	fputs("\t\t", out);
	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (f->arg && *f->arg != '[' && flag_first(f) == i && i > 2) {
			fprintf(out, "%s--%s", between, f->name);
			if (f->letter)
				fprintf(out, "|-%c", f->letter);
			between = "|";
		}
	fputs(") ((i++)) ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) if [ -z \"$verb\" ]; then verb=${COMP_WORDS[i]}; nth=0; else ((nth++)); fi "
	      ";;\n"
	      "\t\tesac\n"
	      "\tdone\n",
	      out);
}

void bash_print(FILE *out)
{
	const struct verb *v;

	fputs(head, out);
	print_skipped(out);
	fputs("\tcase $prev in\n", out);
	print_values(out, NULL);
	fputs("\tesac\n\tcase $verb in\n\t'') __kvpoolctl_words \"", out);
	for (unsigned int i = 0; (v = verb_row(i)); i++)
		fprintf(out, "%s%s", i ? " " : "", v->name);
	fputs("\" ;;\n", out);
	for (unsigned int i = 0; (v = verb_row(i)); i++)
		print_verb(out, v);
	fputs("\tesac\n\tcase $cur in\n\t-*) __kvpoolctl_words \"$flags", out);
	print_flag_names(out, NULL);
	fputs("\" ;;\n\tesac\n}\ncomplete -o filenames -F _kvpoolctl kvpoolctl\n", out);
}
