/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/options.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/word.h"

#define TIMEOUT_NS	    (5 * NSEC_PER_SEC)
#define TIMEOUT_SECONDS_MAX 86400

/* Options without a letter of their own. */
enum {
	OPT_SYSTEM = 256,
	OPT_USER,
	OPT_SOCKET,
	OPT_JSON,
	OPT_BYTES,
	OPT_NO_LEGEND,
	OPT_TIMEOUT,
	OPT_NAMESPACE,
	OPT_DRY_RUN,
	OPT_YES,
	OPT_VERSION,
};

struct row {
	int letter; /* of the short form when below 256 */
	const char *name;
	const char *arg;   /* NULL: takes none; "[...": may be left out */
	const char *verbs; /* the only ones that it means something to; NULL: all */
	const char *help;
};

static const struct row rows[] = {
	{ OPT_SYSTEM, "system", NULL, NULL, "The instance of the system" },
	{ OPT_USER, "user", NULL, NULL, "The instance of this user" },
	{ OPT_SOCKET, "socket", "PATH", NULL, "The instance with this socket" },
	{ OPT_JSON, "json", "[short|pretty|off]", NULL, "Print JSON: raw numbers, bytes, seconds" },
	{ 'j', "", NULL, NULL, "Print JSON: pretty on a terminal, short elsewhere" },
	{ 'o', "output", "NAMES", "namespaces clients", "Columns to print, or \"all\"" },
	{ OPT_BYTES, "bytes", NULL, "status namespaces clients flush", "Sizes in exact bytes" },
	{ OPT_NO_LEGEND, "no-legend", NULL, "namespaces clients", "No header, no count of lines" },
	{ 'q', "quiet", NULL, NULL, "Print nothing but errors" },
	{ OPT_TIMEOUT, "timeout", "TIME", NULL, "Wait this long for an answer (default 5s)" },
	{ OPT_NAMESPACE, "namespace", "NS", "flush",
	  "Only this one: its number, model or fingerprint" },
	{ OPT_DRY_RUN, "dry-run", NULL, "flush", "Change nothing, say what would be" },
	{ OPT_YES, "yes", NULL, "flush", "Do not ask" },
	{ 'h', "help", NULL, NULL, "Print this text" },
	{ OPT_VERSION, "version", NULL, NULL, "Print the version of this program" },
};

static_assert(ARRAY_SIZE(rows) <= 32, "a bit each in options.given");

/* The forms of the table that getopt wants. */
struct getopt_tables {
	struct option longs[ARRAY_SIZE(rows) + 1];
	char shorts[2 * ARRAY_SIZE(rows) + 2];
};

static int argument_kind(const struct row *r)
{
	return !r->arg ? no_argument : *r->arg == '[' ? optional_argument : required_argument;
}

static void make_tables(struct getopt_tables *t)
{
	char *s = t->shorts;
	unsigned int n = 0;

	memset(t, 0, sizeof(*t));
	*s++ = ':'; /* tell a missing argument from an unknown option, and print neither */
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (*rows[i].name)
			t->longs[n++] = (struct option){ rows[i].name, argument_kind(&rows[i]),
							 NULL, rows[i].letter };
		if (rows[i].letter < 256) {
			*s++ = (char)rows[i].letter;
			if (rows[i].arg)
				*s++ = ':';
		}
	}
}

static size_t find_row(int letter)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(rows) && rows[i].letter != letter)
		i++;
	return i;
}

/* optopt is 0 for a long option that there is none of. */
static enum ctl_exit unknown_option(const char *given)
{
	struct suggest s = SUGGEST_INIT(given + 2);

	if (optopt >= OPT_SYSTEM)
		return say_error(EXIT_USAGE, "\"%s\" gives a value to an option that takes none",
				 given);
	if (optopt)
		return say_error(EXIT_USAGE, "unknown option \"-%c\" (see kvpoolctl --help)",
				 optopt);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (*rows[i].name)
			suggest_offer(&s, rows[i].name);
	if (s.best)
		return say_error(EXIT_USAGE, "unknown option \"%s\": did you mean \"--%s\"?", given,
				 s.best);
	return say_error(EXIT_USAGE, "unknown option \"%s\" (see kvpoolctl --help)", given);
}

static enum ctl_exit set_json(struct options *o, const char *mode)
{
	static const char *const names[] = {
		[OPTIONS_JSON_OFF] = "off",
		[OPTIONS_JSON_SHORT] = "short",
		[OPTIONS_JSON_PRETTY] = "pretty",
	};

	o->json = OPTIONS_JSON_AUTO;
	if (!mode)
		return EXIT_OK;
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(mode, names[i])) {
			o->json = i;
			return EXIT_OK;
		}
	return say_error(EXIT_USAGE,
			 "--json=%s is no form of JSON output: use short, pretty or off", mode);
}

/* Seconds when there is no unit. */
static enum ctl_exit set_timeout(struct options *o, const char *text)
{
	const char *why;
	uint64_t n;

	if (!parse_count(text, 1, TIMEOUT_SECONDS_MAX, &n, &why)) {
		o->timeout_ns = n * NSEC_PER_SEC;
		return EXIT_OK;
	}
	if (parse_duration(text, &n, &why) || n < NSEC_PER_MSEC ||
	    n > TIMEOUT_SECONDS_MAX * NSEC_PER_SEC)
		return say_error(
			EXIT_USAGE,
			"--timeout %s is no time from 1ms to a day: write it as 5, 200ms or 1m30s",
			text);
	o->timeout_ns = n;
	return EXIT_OK;
}

static enum ctl_exit set_option(struct options *o, int letter)
{
	switch (letter) {
	case OPT_SYSTEM:
		o->instance = INSTANCE_SYSTEM;
		break;
	case OPT_USER:
		o->instance = INSTANCE_USER;
		break;
	case OPT_SOCKET:
		o->socket = optarg;
		break;
	case OPT_JSON:
		return set_json(o, optarg);
	case 'j':
		o->json = OPTIONS_JSON_AUTO;
		break;
	case 'o':
		o->columns = optarg;
		break;
	case OPT_BYTES:
		o->bytes = 1;
		break;
	case OPT_NO_LEGEND:
		o->no_legend = 1;
		break;
	case 'q':
		o->quiet = 1;
		break;
	case OPT_TIMEOUT:
		return set_timeout(o, optarg);
	case OPT_NAMESPACE:
		/* To the daemon no name means all: a variable that is not set must not. */
		if (!*optarg)
			return say_error(EXIT_USAGE,
					 "--namespace: empty name: give a number, model or "
					 "fingerprint, or leave the option out to mean all");
		o->namespace = optarg;
		break;
	case OPT_DRY_RUN:
		o->dry_run = 1;
		break;
	case OPT_YES:
		o->yes = 1;
		break;
	case 'h':
		o->help = 1;
		break;
	case OPT_VERSION:
		o->version = 1;
		break;
	}
	return EXIT_OK;
}

enum ctl_exit options_parse(int argc, char **argv, struct options *ret)
{
	struct options o = { .timeout_ns = TIMEOUT_NS };
	struct getopt_tables t;
	int letter;

	make_tables(&t);
	optind = 0; /* glibc: start over, whatever was parsed before */
	while ((letter = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
		if (letter == '?')
			return unknown_option(argv[optind - 1]);
		if (letter == ':')
			return say_error(EXIT_USAGE, "\"%s\" needs a value (see kvpoolctl --help)",
					 argv[optind - 1]);
		if (set_option(&o, letter))
			return EXIT_USAGE;
		o.given |= 1u << find_row(letter);
	}
	o.args = argv + optind;
	o.n_args = argc - optind;
	*ret = o;
	return EXIT_OK;
}

enum ctl_exit options_check(const struct options *o, const char *verb)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (o->given & 1u << i && rows[i].verbs && !word_listed(rows[i].verbs, verb))
			return say_error(EXIT_USAGE,
					 "--%s means nothing to \"%s\": it goes with %s",
					 rows[i].name, verb, rows[i].verbs);
	return EXIT_OK;
}

void options_help(FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		int optional = r->arg && *r->arg == '[';
		char form[64];

		snprintf(form, sizeof(form), "%s%s%s%s%s", *r->name ? "--" : "", r->name,
			 optional ? "[=" : "", r->arg && !optional ? " " : "",
			 r->arg ? r->arg + optional : "");
		fprintf(out, "  %c%c %-26s %s\n", r->letter < 256 ? '-' : ' ',
			r->letter < 256 ? r->letter : ' ', form, r->help);
	}
}
