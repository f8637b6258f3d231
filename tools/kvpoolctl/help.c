/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/help.h"

#include "tools/kvpoolctl/exit.h"
#include "tools/kvpoolctl/flow.h"
#include "tools/kvpoolctl/style.h"

#define CHOICES_INDENT 31u /* below what the option does */

static void print_flag(const struct flag *f, FILE *out)
{
	char letter[3] = { '-', (char)f->letter, '\0' };

	fprintf(out, "  %2s %-25s %s\n", f->letter ? letter : "", *f->name ? flag_form(f).text : "",
		f->help);
}

static void print_choices(const struct flag *f, FILE *out)
{
	char text[256];

	if (f->value != VALUE_CHOICE || *f->arg == '[')
		return;
	snprintf(text, sizeof(text), "One of: %s.", f->choices);
	flow_text(out, CHOICES_INDENT, STYLE_COLUMNS, text);
}

/* Those that mean something to every verb (NULL), or only to some and to this one. */
static unsigned int print_flags(const char *verb, FILE *out)
{
	const struct flag *f;
	unsigned int n = 0;

	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (verb ? f->verbs && flag_applies(f, verb) : !f->verbs) {
			if (!n++)
				fputs("\nOptions:\n", out);
			print_flag(f, out);
			print_choices(f, out);
		}
	return n;
}

static void print_verbs(enum verb_group g, FILE *out)
{
	const struct verb *v;

	fprintf(out, "\n%s:\n", verb_group_name(g));
	for (unsigned int i = 0; (v = verb_row(i)); i++)
		if (v->group == g)
			fprintf(out, "  %-11s %s\n", v->name, v->help);
}

static void print_statuses(FILE *out)
{
	const struct exit_meaning *m;

	fputs("\nExit status:\n", out);
	for (unsigned int i = 0; (m = exit_meaning(i)); i++)
		fprintf(out, "  %2d  %s\n", m->status, m->text);
}

void help_print(FILE *out)
{
	fputs("kvpoolctl [OPTIONS] [COMMAND [ARGUMENTS]]\n\n"
	      "Looks at a running kvpoold, and steers it. \"kvpoolctl COMMAND --help\" says all\n"
	      "about a command: its arguments, its own options, an example.\n",
	      out);
	for (enum verb_group g = 0; g < VERB_GROUPS; g++)
		print_verbs(g, out);
	print_flags(NULL, out);
	print_statuses(out);
	fputs("\nSizes are written 16G or 16GiB (powers of 1024), times 90s, 5m or 1h30m; a\n"
	      "TIME that is a number alone is in seconds. The instance is, without an option:\n"
	      "$KVPOOL_ADMIN_SOCKET, $KVPOOL_SOCKET.admin, that of this user when there is\n"
	      "one, else that of the system. Commands that destroy something ask first on a\n"
	      "terminal. See kvpoolctl(1).\n",
	      out);
}

static void print_columns(const struct listing_kind *l, FILE *out)
{
	fputs("\nColumns (* shown without --output):\n", out);
	for (unsigned int i = 0; i < l->n_columns; i++)
		fprintf(out, "  %c %-12s %s\n", l->columns[i].flags & TABLE_EXTRA ? ' ' : '*',
			l->columns[i].title, l->columns[i].help);
}

void help_verb(const struct verb *v, FILE *out)
{
	fprintf(out, "kvpoolctl [OPTIONS] %s%s%s\n\n%s.\n\n", v->name, *v->args ? " " : "", v->args,
		v->help);
	flow_text(out, 0, STYLE_COLUMNS, v->about);
	print_flags(v->name, out);
	if (v->listing)
		print_columns(v->listing, out);
	fprintf(out, "\nExample:\n  %s\n\nOptions of every command: kvpoolctl --help\n",
		v->example);
}
