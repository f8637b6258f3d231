/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: a sentence and fields.
 *
 * Where stderr is the journal ($JOURNAL_STREAM), a line is sent as a journal entry with a field
 * KVPOOL_KEY for each; elsewhere it is one line of text on stderr, "<6>client connected pid=42",
 * the level in front.
 *
 * Never a token, a text or a whole key: log_hex shortens.
 */
#ifndef KVP_DAEMON_LOG_H
#define KVP_DAEMON_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

#include "base/compiler.h"

struct log_field {
	const char *key; /* lower case and underscores */
	enum { LOG_IS_TEXT, LOG_IS_NUMBER, LOG_IS_ERROR } kind;
	const char *text;
	uint64_t number;
};

/* NULL as text leaves the field out. An error is a negative errno and is shown in words. */
#define LOG_TEXT(key, text)     { (key), LOG_IS_TEXT, (text), 0 }
#define LOG_NUMBER(key, number) { (key), LOG_IS_NUMBER, NULL, (uint64_t)(number) }
#define LOG_ERRNO(r)            { "error", LOG_IS_ERROR, NULL, (uint64_t)-(int64_t)(r) }

#define LOG_FIELDS_MAX 16u

/* "debug", "info", ... to the numbers of syslog. Returns -1 for no level. */
int log_level_parse(const char *name);

/* Levels are 0 to LOG_LEVELS - 1. */
#define LOG_LEVELS 8
const char *log_level_name(int level);

/*
 * Where lines go: to the journal if stderr is the journal, else to stderr; or to one of them in any
 * case. Without a journal, to stderr.
 */
enum log_target {
	LOG_TO_AUTO,
	LOG_TO_JOURNAL,
	LOG_TO_STDERR,
};

/* What is less urgent than level is left out. To be called once, before the first line. */
void log_open(int level, enum log_target target);

void log_set_level(int level);
int log_level(void);

/* Lines of the same kind beyond a rate are counted, and the count is told with the next line. */
void log_write(int level, const char *sentence, const struct log_field *fields, size_t n);

#define log_line(level, sentence, ...)                                     \
	do {                                                               \
		const struct log_field fields_[] = { __VA_ARGS__ };        \
		log_write((level), (sentence), fields_, ARRAY_SIZE(fields_)); \
	} while (0)

/*
 * The line as text: "sentence key=value key="two words"". Values are quoted and escaped where they
 * need to be, so that one event is one line whatever a client calls itself. Cut to n bytes.
 */
void log_format(char *out, size_t n, const char *sentence, const struct log_field *fields,
		size_t n_fields);

/*
 * At most 12 digits of a key or fingerprint, into a buffer of LOG_HEX_BYTES, which is returned.
 */
#define LOG_HEX_BYTES 13u
const char *log_hex(const void *data, size_t n, char out[LOG_HEX_BYTES]);

#endif
