/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/style.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/compiler.h"

static int is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

/* $COLUMNS, else what the terminal says, else no limit. */
static size_t find_width(int fd, int terminal)
{
	const char *columns = getenv("COLUMNS");
	long n = columns ? strtol(columns, NULL, 10) : 0;
	struct winsize w;

	if (n > 0 && n < 10000)
		return (size_t)n;
	if (!terminal)
		return 0;
	return !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : STYLE_COLUMNS;
}

void style_init(struct style *s, int fd)
{
	const char *term = getenv("TERM");

	s->terminal = isatty(fd);
	s->colour = s->terminal && !is_set("NO_COLOR") && term && strcmp(term, "dumb");
	s->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	s->width = find_width(fd, s->terminal);
}

const char *style_on(const struct style *s, enum style_mark mark)
{
	static const char *const escape[] = {
		[STYLE_GOOD] = "\033[32m",
		[STYLE_NOTE] = "\033[33m",
		[STYLE_BAD] = "\033[1;31m",
	};

	return s->colour ? escape[mark] : "";
}

const char *style_off(const struct style *s)
{
	return s->colour ? "\033[0m" : "";
}

const char *style_dot(const struct style *s)
{
	return s->utf8 ? "●" : "*";
}

const char *style_ellipsis(const struct style *s)
{
	return s->utf8 ? "…" : "...";
}

void style_bar(const struct style *s, unsigned long long part, unsigned long long whole, char *buf)
{
	const char *full = s->utf8 ? "█" : "#", *empty = s->utf8 ? "░" : ".";
	double share = whole ? (double)part / (double)whole : 0;
	unsigned int n = (unsigned int)(share * STYLE_BAR_CELLS);

	if (part && !n)
		n = 1;
	n = MIN(n, STYLE_BAR_CELLS);
	*buf = '\0';
	for (unsigned int i = 0; i < STYLE_BAR_CELLS; i++)
		buf = stpcpy(buf, i < n ? full : empty);
}
