/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options, one row each: parsing, checks, help, man page and completions come from the table.
 */
#ifndef KVP_TOOLS_KVPOOLCTL_FLAG_H
#define KVP_TOOLS_KVPOOLCTL_FLAG_H

#include <stddef.h>
#include <stdint.h>

/* How a value is read, and what of struct options it fills. */
enum flag_kind {
	FLAG_SET,   /* an int, with flag.max; takes no value */
	FLAG_TEXT,  /* a const char *, never empty */
	FLAG_COUNT, /* a uint64_t from min to max */
	FLAG_TIME,  /* the same, in nanoseconds; seconds when there is no unit */
	FLAG_SPAN,  /* the same, and 0 or "forever" is OPTIONS_FOREVER */
	FLAG_JSON,
};

/* What completion offers for a value. */
enum flag_value {
	VALUE_ANY, /* nothing is known of it */
	VALUE_CHOICE,
	VALUE_FILE,
	VALUE_CLIENT,
	VALUE_NAMESPACE,
	VALUE_PIN,
	VALUE_LABEL,
	VALUE_PREFIX,
	VALUE_KEY,
	VALUE_OBJECT, /* a client, namespace, pin or prefix */
	VALUE_SECTION,
	VALUE_COLUMNS,
};

struct flag {
	const char *name; /* "" : it has only a letter */
	int letter;       /* 0: it has none */
	const char *arg;  /* NULL: takes none; "[...": may be left out */
	enum flag_kind kind;
	size_t at; /* of its member in struct options */
	uint64_t min, max;
	enum flag_value value;
	const char *choices; /* of VALUE_CHOICE, blanks between */
	const char *verbs;   /* the only ones that it means something to; NULL: all */
	const char *help;
};

/*
 * The row i, NULL behind the last one. Two rows may have one name: they fill the same member and
 * mean different things to different verbs.
 */
const struct flag *flag_row(unsigned int i);

#define FLAG_ROWS_MAX 64u /* a bit each in options.given */

int flag_applies(const struct flag *f, const char *verb);

/* "--tokens N", "--json[=short|pretty|off]", "-j". */
struct flag_form {
	char text[64];
};
struct flag_form flag_form(const struct flag *f);

/* The first row of the same option. */
unsigned int flag_first(const struct flag *f);

#endif
