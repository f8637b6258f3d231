/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one piece of state that belongs to the process and not to an object: where its log goes.
 * Written from the event loop's thread only.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION /* it would always be this file */
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "daemon/log.h"

#define LOG_LINE_BYTES 1024u

/* A client must not be able to fill a disk by connecting in a loop. */
#define LOG_BURST     500u
#define LOG_WINDOW_NS (10 * NSEC_PER_SEC)

static struct {
	int level;
	int journal;
	uint64_t window; /* when it began */
	unsigned int lines, left_out;
} log_state = { .level = LOG_INFO };

static const char *const level_names[LOG_LEVELS] = {
	"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug",
};

int log_level_parse(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (!strcmp(name, level_names[i]))
			return (int)i;
	if (!strcmp(name, "err"))
		return LOG_ERR;
	return strcmp(name, "warn") ? -1 : LOG_WARNING;
}

const char *log_level_name(int level)
{
	return level_names[level];
}

/* Whether stderr is the stream that the service manager connected to the journal. */
static int log_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2 ||
	    fstat(STDERR_FILENO, &st) < 0)
		return 0;
	return st.st_dev == dev && st.st_ino == ino;
}

/* sd_journal_sendv() says nothing when there is nobody to take a line. */
static int log_has_journal(void)
{
	return access("/run/systemd/journal/socket", W_OK) == 0;
}

void log_open(int level, enum log_target target)
{
	log_state.level = level;
	log_state.journal = target == LOG_TO_AUTO      ? log_is_journal()
			    : target == LOG_TO_JOURNAL ? log_has_journal()
						       : 0;
}

void log_set_level(int level)
{
	log_state.level = level;
}

int log_level(void)
{
	return log_state.level;
}

const char *log_hex(const void *data, size_t n, char out[LOG_HEX_BYTES])
{
	hex_encode(data, MIN(n, (LOG_HEX_BYTES - 1) / 2), out);
	return out;
}

/* A text under construction; what does not fit is cut. */
struct log_text {
	char *at;
	size_t left; /* with the NUL */
};

static void text_put(struct log_text *t, const char *s)
{
	size_t n = strlen(s);

	if (n >= t->left)
		n = t->left - 1;
	memcpy(t->at, s, n);
	t->at += n;
	t->left -= n;
	*t->at = '\0';
}

static int text_is_plain(const char *s)
{
	if (!*s)
		return 0;
	for (; *s; s++)
		if (!isgraph((unsigned char)*s) || *s == '"' || *s == '\\' || *s == '=')
			return 0;
	return 1;
}

static void text_put_quoted(struct log_text *t, const char *s)
{
	char piece[8];

	text_put(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			snprintf(piece, sizeof(piece), "\\%c", *s);
		else if (iscntrl((unsigned char)*s))
			snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)*s);
		else
			snprintf(piece, sizeof(piece), "%c", *s);
		text_put(t, piece);
	}
	text_put(t, "\"");
}

/* The value in words, in buf when it has to be made. NULL: there is none. */
static const char *field_value(const struct log_field *f, char *buf, size_t n)
{
	if (f->kind == LOG_IS_TEXT)
		return f->text;
	if (f->kind == LOG_IS_ERROR)
		return strerrordesc_np((int)f->number) ?: "unknown error";
	snprintf(buf, n, "%llu", (unsigned long long)f->number);
	return buf;
}

void log_format(char *out, size_t n, const char *sentence, const struct log_field *fields,
		size_t n_fields)
{
	struct log_text t = { out, n };

	*out = '\0';
	text_put(&t, sentence);
	for (size_t i = 0; i < n_fields; i++) {
		char number[24];
		const char *value = field_value(&fields[i], number, sizeof(number));

		if (!value)
			continue;
		text_put(&t, " ");
		text_put(&t, fields[i].key);
		text_put(&t, "=");
		if (text_is_plain(value))
			text_put(&t, value);
		else
			text_put_quoted(&t, value);
	}
}

/* "KVPOOL_KEY=value" */
static void journal_field(char *out, size_t n, const struct log_field *f)
{
	char number[24];
	const char *value = field_value(f, number, sizeof(number));

	snprintf(out, n, "KVPOOL_%s=%s", f->key, value ? value : "");
	for (char *c = out; *c && *c != '='; c++)
		*c = (char)toupper((unsigned char)*c);
}

/* Returns 0, or -errno when it did not get there. */
static int log_to_journal(int level, const char *line, const struct log_field *fields, size_t n)
{
	char message[LOG_LINE_BYTES + 16], priority[16], text[LOG_FIELDS_MAX][256];
	struct iovec iov[LOG_FIELDS_MAX + 2];
	int count = 2;

	snprintf(message, sizeof(message), "MESSAGE=%s", line);
	snprintf(priority, sizeof(priority), "PRIORITY=%d", level);
	iov[0] = (struct iovec){ message, strlen(message) };
	iov[1] = (struct iovec){ priority, strlen(priority) };
	for (size_t i = 0; i < MIN(n, LOG_FIELDS_MAX); i++) {
		journal_field(text[i], sizeof(text[i]), &fields[i]);
		iov[count++] = (struct iovec){ text[i], strlen(text[i]) };
	}
	return sd_journal_sendv(iov, count);
}

static void log_out(int level, const char *sentence, const struct log_field *fields, size_t n)
{
	char line[LOG_LINE_BYTES];

	log_format(line, sizeof(line), sentence, fields, n);
	if (!log_state.journal || log_to_journal(level, line, fields, n) < 0)
		fprintf(stderr, "<%d>%s\n", level, line);
}

/* Whether this line is one too many. What is urgent is never left out. */
static int log_is_too_much(int level)
{
	uint64_t now = clock_ns();

	if (now - log_state.window >= LOG_WINDOW_NS) {
		struct log_field f = LOG_NUMBER("lines", log_state.left_out);

		if (log_state.left_out)
			log_out(LOG_NOTICE, "log lines were left out", &f, 1);
		log_state.window = now;
		log_state.lines = log_state.left_out = 0;
	}
	if (level <= LOG_ERR || ++log_state.lines <= LOG_BURST)
		return 0;
	log_state.left_out++;
	return 1;
}

void log_write(int level, const char *sentence, const struct log_field *fields, size_t n)
{
	if (level > log_state.level || log_is_too_much(level))
		return;
	log_out(level, sentence, fields, n);
}
