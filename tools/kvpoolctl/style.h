/* SPDX-License-Identifier: Apache-2.0 */
/* How output looks, by what it goes to: colours, characters, width. */
#ifndef KVP_TOOLS_KVPOOLCTL_STYLE_H
#define KVP_TOOLS_KVPOOLCTL_STYLE_H

#include <stddef.h>

#define STYLE_COLUMNS 80u /* what screens of words are written for */

enum style_mark {
	STYLE_GOOD,
	STYLE_NOTE,
	STYLE_BAD,
};

struct style {
	int colour; /* escapes are wanted: a terminal, and NO_COLOR is not set */
	int utf8;   /* the locale can show more than ASCII */
	int terminal;
	size_t width; /* of the terminal; 0: no limit */
};

/* Looks at descriptor fd, the locale (setlocale was called) and the environment. */
void style_init(struct style *s, int fd);

/* Escapes that begin and end a mark; "" without colour. */
const char *style_on(const struct style *s, enum style_mark mark);
const char *style_off(const struct style *s);

const char *style_dot(const struct style *s);
const char *style_ellipsis(const struct style *s);

#define STYLE_BAR_CELLS 20u
/* Bytes that a bar takes at most, with its NUL. */
#define STYLE_BAR_BYTES (STYLE_BAR_CELLS * 3 + 1)

/*
 * A bar, part of whole filled: at least one cell when part is not 0, all only when part is whole.
 */
void style_bar(const struct style *s, unsigned long long part, unsigned long long whole, char *buf);

#endif
