/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "tools/kvpoolctl/flag.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/units.h"

#define TIMEOUT_NS   (5 * NSEC_PER_SEC)
#define BLOCK_TOKENS 16u
#define LONG_BASE    256 /* what getopt returns for row i without a letter is i more */

/* The forms of the table that getopt wants. */
struct getopt_tables {
	struct option longs[FLAG_ROWS_MAX + 1];
	char shorts[2 * FLAG_ROWS_MAX + 2];
};

static int argument_kind(const struct flag *f)
{
	return !f->arg ? no_argument : *f->arg == '[' ? optional_argument : required_argument;
}

static void make_tables(struct getopt_tables *t)
{
	const struct flag *f;
	char *s = t->shorts;
	unsigned int n = 0;

	memset(t, 0, sizeof(*t));
	*s++ = ':'; /* tell a missing argument from an unknown option, and print neither */
	for (unsigned int i = 0; (f = flag_row(i)); i++) {
		if (flag_first(f) != i)
			continue;
		if (*f->name)
			t->longs[n++] =
				(struct option){ f->name, argument_kind(f), NULL,
						 f->letter ? f->letter : LONG_BASE + (int)i };
		if (f->letter) {
			*s++ = (char)f->letter;
			if (f->arg)
				*s++ = ':';
		}
	}
}

/* The number of the row that getopt's answer stands for. */
static unsigned int find_row(int letter)
{
	unsigned int i = 0;

	if (letter >= LONG_BASE)
		return (unsigned int)letter - LONG_BASE;
	while (flag_row(i)->letter != letter)
		i++;
	return i;
}

/* optopt is 0 for a long option that there is none of. */
static enum ctl_exit unknown_option(const char *given)
{
	struct suggest s = SUGGEST_INIT(given + 2);
	const struct flag *f;

	if (optopt >= LONG_BASE || (optopt && !strncmp(given, "--", 2)))
		return say_error(EXIT_USAGE, "\"%s\" gives a value to an option that takes none",
				 given);
	if (optopt)
		return say_error(EXIT_USAGE, "unknown option \"-%c\" (see kvpoolctl --help)",
				 optopt);
	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (*f->name)
			suggest_offer(&s, f->name);
	if (s.best)
		return say_error(EXIT_USAGE, "unknown option \"%s\": did you mean \"--%s\"?", given,
				 s.best);
	return say_error(EXIT_USAGE, "unknown option \"%s\" (see kvpoolctl --help)", given);
}

static enum ctl_exit set_json(int *ret, const char *mode)
{
	static const char *const names[] = {
		[OPTIONS_JSON_OFF] = "off",
		[OPTIONS_JSON_SHORT] = "short",
		[OPTIONS_JSON_PRETTY] = "pretty",
	};

	*ret = OPTIONS_JSON_AUTO;
	if (!mode)
		return EXIT_OK;
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(mode, names[i])) {
			*ret = (int)i;
			return EXIT_OK;
		}
	return say_error(EXIT_USAGE,
			 "--json=%s is no form of JSON output: use short, pretty or off", mode);
}

static enum ctl_exit set_text(const char **ret, const struct flag *f, const char *text)
{
	/* To the daemon no name means all: a variable that is not set must not. */
	if (!*text)
		return say_error(EXIT_USAGE,
				 "--%s: empty value: give a %s, or leave the option out", f->name,
				 f->arg);
	*ret = text;
	return EXIT_OK;
}

static enum ctl_exit set_count(uint64_t *ret, const struct flag *f, const char *text)
{
	const char *why;

	if (parse_count(text, f->min, f->max, ret, &why))
		return say_error(EXIT_USAGE, "--%s %s is no number from %" PRIu64 " to %" PRIu64,
				 f->name, text, f->min, f->max);
	return EXIT_OK;
}

/* Seconds when there is no unit. */
static enum ctl_exit set_time(uint64_t *ret, const struct flag *f, const char *text)
{
	const char *why;
	uint64_t n;

	if (!parse_count(text, 0, f->max / NSEC_PER_SEC, &n, &why))
		n *= NSEC_PER_SEC;
	else if (parse_duration(text, &n, &why))
		n = 0;
	if (n < MAX(f->min, 1u) || n > f->max)
		return say_error(EXIT_USAGE,
				 "--%s %s is no time from %s to %s: write it as 5, 200ms or 1m30s",
				 f->name, text, f->min < NSEC_PER_SEC ? "1ms" : "1s",
				 units_duration(f->max).text);
	*ret = n;
	return EXIT_OK;
}

static enum ctl_exit set_option(struct options *o, const struct flag *f)
{
	void *at = (char *)o + f->at;

	switch (f->kind) {
	case FLAG_SET:
		*(int *)at = (int)f->max;
		return EXIT_OK;
	case FLAG_TEXT:
		return set_text(at, f, optarg);
	case FLAG_COUNT:
		return set_count(at, f, optarg);
	case FLAG_TIME:
		return set_time(at, f, optarg);
	case FLAG_SPAN:
		if (strcmp(optarg, "forever") && strcmp(optarg, "0"))
			return set_time(at, f, optarg);
		*(uint64_t *)at = OPTIONS_FOREVER;
		return EXIT_OK;
	case FLAG_JSON:
		break;
	}
	return set_json(at, optarg);
}

enum ctl_exit options_parse(int argc, char **argv, struct options *ret)
{
	struct options o = { .timeout_ns = TIMEOUT_NS, .block = BLOCK_TOKENS };
	struct getopt_tables t;
	unsigned int row;
	int letter;

	make_tables(&t);
	optind = 0; /* glibc: start over, whatever was parsed before */
	while ((letter = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
		if (letter == '?')
			return unknown_option(argv[optind - 1]);
		if (letter == ':')
			return say_error(EXIT_USAGE, "\"%s\" needs a value (see kvpoolctl --help)",
					 argv[optind - 1]);
		row = find_row(letter);
		if (set_option(&o, flag_row(row)))
			return EXIT_USAGE;
		o.given |= 1ull << row;
	}
	o.args = argv + optind;
	o.n_args = argc - optind;
	*ret = o;
	return EXIT_OK;
}

/* True when one of the rows of this option means something to the verb. */
static int means_something(unsigned int row, const char *verb)
{
	const struct flag *f;

	for (unsigned int i = row; (f = flag_row(i)); i++)
		if (flag_first(f) == row && flag_applies(f, verb))
			return 1;
	return 0;
}

enum ctl_exit options_check(const struct options *o, const char *verb)
{
	const struct flag *f;

	for (unsigned int i = 0; (f = flag_row(i)); i++)
		if (o->given & 1ull << i && !means_something(i, verb))
			return say_error(EXIT_USAGE,
					 "--%s means nothing to \"%s\": it goes with %s", f->name,
					 verb, f->verbs);
	return EXIT_OK;
}
