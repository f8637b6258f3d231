/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/cell.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define CHAR_BYTES_MAX 4

static int is_tail(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes of the character that text starts with, 0 when it is none that may be shown. */
static size_t clean_bytes(const char *text)
{
	size_t have = strnlen(text, CHAR_BYTES_MAX);

	for (size_t n = 1; n <= have; n++)
		if (!text_check(text, n))
			return n;
	return 0;
}

char *cell_clean(const char *text)
{
	char *out = malloc(strlen(text) + 1);
	size_t at = 0;

	while (out && *text) {
		size_t n = clean_bytes(text);

		if (n) {
			memcpy(out + at, text, n);
			at += n;
			text += n;
		} else {
			out[at++] = '?';
			text++;
		}
	}
	if (out)
		out[at] = '\0';
	return out;
}

size_t cell_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += !is_tail(*text);
	return n;
}

size_t cell_prefix(const char *text, size_t n)
{
	size_t i = 0;

	while (text[i] && (n || is_tail(text[i])))
		n -= !is_tail(text[i++]);
	return i;
}
