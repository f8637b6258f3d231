/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inih takes lines apart: comments, "=", blanks around both sides. This reader hands them to it one
 * by one, since its handler is told no line numbers in every build of it, and an error of it is
 * only the number of the first one. Headers of sections never get there: it keeps 49 bytes of one,
 * and models have longer names.
 */
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config_file.h"

enum section_kind {
	SECTION_NONE,    /* before the first header */
	SECTION_UNKNOWN, /* it was complained about: its keys are not */
	SECTION_TABLE,
	SECTION_RULES,
};

struct file_run {
	const char *at, *end;
	const char *name;
	uint64_t memory;
	struct settings *settings;
	size_t first; /* setting of this file */
	struct complaints *wrong;
	unsigned int line;
	int pending; /* this line has a key, and inih has not found it yet */
	enum section_kind kind;
	char section[64], glob[SETTING_GLOB_BYTES];
	int failed; /* -ENOMEM */
};

#define RUN_WRONG(r, format, ...)                                                                  \
	complaint_add((r)->wrong, "%s:%u: " format, (r)->name, (r)->line, ##__VA_ARGS__)

static int is_blank(char c)
{
	return c && strchr(" \t\r\v\f", c);
}

static size_t trimmed(const char *text, size_t n)
{
	while (n && is_blank(text[n - 1]))
		n--;
	return n;
}

/* Behind the byte before text, with which *n bytes were left. */
static const char *skip_blanks(const char *text, size_t *n)
{
	size_t left = *n ? *n - 1 : 0;

	while (left && is_blank(*text)) {
		text++;
		left--;
	}
	*n = left;
	return text;
}

static void section_set(struct file_run *r, const char *name, size_t n)
{
	char why[CONFIG_WHY_BYTES];
	const struct config_key *k;

	r->kind = SECTION_UNKNOWN;
	snprintf(r->section, sizeof(r->section), "%.*s", (int)n, name);
	if (n < sizeof(r->section) && config_section_exists(r->section)) {
		r->kind = SECTION_TABLE;
		return;
	}
	(void)setting_find_key(r->section, "", &k, why);
	RUN_WRONG(r, "[%s]: %s", r->section, why);
}

/* What follows "namespace" in its header. */
static void section_set_glob(struct file_run *r, const char *glob, size_t n)
{
	const char *wrong = setting_glob_wrong(glob, n);

	r->kind = wrong ? SECTION_UNKNOWN : SECTION_RULES;
	snprintf(r->section, sizeof(r->section), CONFIG_RULES);
	if (wrong) {
		RUN_WRONG(r, "[namespace]: %s", wrong);
		return;
	}
	memcpy(r->glob, glob, n);
	r->glob[n] = '\0';
}

/* Where a comment begins behind something, or the end. */
static size_t comment_start(const char *text, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if ((text[i] == '#' || text[i] == ';') && is_blank(text[i - 1]))
			return i;
	return n;
}

/* The header of a section: n bytes from "[" on. */
static void run_header(struct file_run *r, const char *text, size_t n)
{
	static const size_t rules = sizeof(CONFIG_RULES) - 1;

	n = trimmed(text, comment_start(text, n));
	if (text[n - 1] != ']') {
		r->kind = SECTION_UNKNOWN;
		RUN_WRONG(r, "%s",
			  memchr(text, ']', n)
				  ? "there is more behind the name of the section"
				  : "the name of the section does not end: write [NAME]");
		return;
	}
	n = trimmed(text, n - 1);
	text = skip_blanks(text + 1, &n);
	if (n < rules || memcmp(text, CONFIG_RULES, rules) ||
	    (n > rules && !is_blank(text[rules]))) {
		section_set(r, text, n);
		return;
	}
	n -= rules - 1;
	text = skip_blanks(text + rules, &n);
	section_set_glob(r, text, n);
}

/* Whether the line before this one had something in it that is no key. */
static void run_finish_line(struct file_run *r)
{
	if (r->pending)
		RUN_WRONG(r, "is neither KEY = VALUE nor [SECTION] nor a comment with # or ;");
	r->pending = 0;
}

/* A line of n bytes, of which inih gets to see what is not to be done here. */
static size_t run_line(struct file_run *r, const char *text, size_t n, size_t room)
{
	if (!n || *text == '#' || *text == ';')
		return 0;
	if (memchr(text, '\0', n)) {
		RUN_WRONG(r, "has a byte that is 0: this is no text");
		return 0;
	}
	if (*text == '[') {
		run_header(r, text, n);
		return 0;
	}
	if (n >= room) {
		RUN_WRONG(r, "is longer than %zu bytes", room - 1);
		return 0;
	}
	r->pending = 1;
	return n;
}

/* As fgets() of the file would, for inih. */
static char *run_read(char *to, int size, void *stream)
{
	struct file_run *r = stream;
	const char *text = r->at, *end;
	size_t n;

	run_finish_line(r);
	if (r->at == r->end || r->failed)
		return NULL;
	r->line++;
	end = memchr(text, '\n', (size_t)(r->end - text)) ?: r->end;
	r->at = end < r->end ? end + 1 : end;
	/* To inih a line that begins with blanks goes on with the value before it. */
	while (text < end && is_blank(*text))
		text++;
	n = run_line(r, text, trimmed(text, (size_t)(end - text)), (size_t)size - 1);
	memcpy(to, text, n);
	memcpy(to + n, "\n", 2);
	return to;
}

/* inih knows comments behind a value with ";" only. */
static void cut_comment(char *value)
{
	for (char *c = value; *c; c++)
		if (*c == '#' && (c == value || is_blank(c[-1]))) {
			*c = '\0';
			break;
		}
	value[trimmed(value, strlen(value))] = '\0';
}

static void run_set(struct file_run *r, const struct config_key *k, const char *value)
{
	const char *glob = r->kind == SECTION_RULES ? r->glob : NULL;
	const struct setting *before = settings_find(r->settings, r->first, k, glob);
	char why[CONFIG_WHY_BYTES], name[SETTING_NAME_BYTES], origin[PATH_MAX + 16];

	setting_name(k, glob, name);
	if (before) {
		RUN_WRONG(r, "%s: is set before, at %s: leave one of them out", name,
			  before->origin);
		return;
	}
	if (setting_check(k, value, r->memory, why) < 0) {
		RUN_WRONG(r, "%s = %s: %s", name, value, why);
		return;
	}
	if (glob && settings_rules(r->settings) == SETTINGS_RULES_MAX) {
		RUN_WRONG(r, "%s: is one key too many of [namespace] sections: there may be %u",
			  name, SETTINGS_RULES_MAX);
		return;
	}
	snprintf(origin, sizeof(origin), "%s:%u", r->name, r->line);
	r->failed = settings_add(r->settings, k, glob, value, origin);
}

/* From inih. What is returned would only make it note the number of the line. */
static int run_key(void *ctx, const char *section, const char *name, const char *text)
{
	struct file_run *r = ctx;
	const struct config_key *k;
	char why[CONFIG_WHY_BYTES], value[256];

	r->pending = 0;
	if (r->kind == SECTION_UNKNOWN)
		return 1;
	if (r->kind == SECTION_NONE) {
		RUN_WRONG(r, "%s: stands before the first [SECTION]", name);
		return 1;
	}
	snprintf(value, sizeof(value), "%s", text);
	cut_comment(value);
	if (setting_find_key(r->section, name, &k, why) < 0)
		RUN_WRONG(r, "%s.%s: %s", r->section, name, why);
	else
		run_set(r, k, value);
	return 1;
}

int config_file_parse(const char *text, size_t n, const char *name, uint64_t memory,
		      struct settings *settings, struct complaints *wrong)
{
	static const char mark[] = "\xef\xbb\xbf"; /* that a text is UTF-8 */
	struct file_run r = {
		.at = text,
		.end = text + n,
		.name = name,
		.memory = memory,
		.settings = settings,
		.first = settings->n,
		.wrong = wrong,
	};

	if (n >= 3 && !memcmp(text, mark, 3))
		r.at += 3;
	if (ini_parse_stream(run_read, &r, run_key, &r) == -2)
		r.failed = -ENOMEM;
	return r.failed;
}
