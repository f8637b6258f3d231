/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "base/sha256.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/say.h"

#define WORD_BYTES 24u /* more than any id has digits */

struct reader {
	FILE *in;
	const char *name;
	size_t line;
	struct tokens t;
	size_t room;
};

static int is_separator(int c)
{
	return c == ',' || isspace(c);
}

/* The next word, cut to what fits. Returns its length, 0 at the end. */
static size_t next_word(struct reader *r, char word[WORD_BYTES])
{
	size_t n = 0;
	int c;

	while ((c = getc(r->in)) != EOF && is_separator(c))
		r->line += c == '\n';
	for (; c != EOF && !is_separator(c); c = getc(r->in))
		if (n < WORD_BYTES - 1)
			word[n++] = (char)c;
	word[n] = '\0';
	if (c != EOF)
		ungetc(c, r->in);
	return n;
}

static enum ctl_exit bad_word(const struct reader *r, const char *word)
{
	_cleanup_free_ char *clean = cell_clean(word);

	return say_error(EXIT_FAILED,
			 "%s, line %zu: \"%s\" is no token id: write decimal numbers below 2^32 "
			 "with blanks, commas or new lines between them",
			 r->name, r->line, clean ? clean : "?");
}

static enum ctl_exit add_word(struct reader *r, const char *word)
{
	uint64_t id;
	const char *why;

	if (parse_count(word, 0, UINT32_MAX, &id, &why))
		return bad_word(r, word);
	if (r->t.n == TOKENS_MAX)
		return say_error(EXIT_FAILED, "%s, line %zu: there are more than %u tokens",
				 r->name, r->line, TOKENS_MAX);
	if (r->t.n == r->room) {
		size_t room = MAX(2 * r->room, 4096u);
		uint32_t *ids = reallocarray(r->t.ids, room, sizeof(*ids));

		if (!ids)
			return say_error(EXIT_FAILED, "out of memory");
		r->t.ids = ids;
		r->room = room;
	}
	r->t.ids[r->t.n++] = (uint32_t)id;
	return EXIT_OK;
}

enum ctl_exit tokens_read(FILE *in, const char *name, struct tokens *ret)
{
	struct reader r = { .in = in, .name = name, .line = 1 };
	enum ctl_exit rc = EXIT_OK;
	char word[WORD_BYTES];

	while (!rc && next_word(&r, word))
		rc = add_word(&r, word);
	if (!rc && ferror(in))
		rc = say_error(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
	if (!rc && !r.t.n)
		rc = say_error(EXIT_FAILED, "%s has no token ids", name);
	if (rc)
		tokens_free(&r.t);
	else
		*ret = r.t;
	return rc;
}

enum ctl_exit tokens_open(const char *name, struct tokens *ret)
{
	enum ctl_exit rc;
	FILE *f;

	if (!strcmp(name, "-"))
		return tokens_read(stdin, "standard input", ret);
	f = fopen(name, "re");
	if (!f)
		return say_error(EXIT_FAILED, "cannot open the token file %s: %s", name,
				 strerror(errno));
	rc = tokens_read(f, name, ret);
	fclose(f);
	return rc;
}

void tokens_free(struct tokens *t)
{
	free(t->ids);
	t->ids = NULL;
	t->n = 0;
}

size_t tokens_blocks(const struct tokens *t, uint32_t block_tokens)
{
	return t->n && block_tokens ? (t->n - 1) / block_tokens : 0;
}

void tokens_keys(const struct tokens *t, uint32_t block_tokens,
		 const uint8_t seed[TOKENS_KEY_BYTES], size_t n, uint8_t *out)
{
	/* The machines that this runs on are little endian, as the tokens of a key are. */
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "");
	_Static_assert(TOKENS_KEY_BYTES == SHA256_BYTES, "");
	const uint8_t *parent = seed;

	for (size_t i = 0; i < n; i++) {
		sha256_pair(parent, TOKENS_KEY_BYTES, t->ids + i * block_tokens,
			    (size_t)block_tokens * sizeof(*t->ids), out);
		parent = out;
		out += TOKENS_KEY_BYTES;
	}
}
