/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "proto/text.h"

/* Length of the sequence that a byte starts, 0 when it starts none. */
static size_t text_sequence(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc0) /* a continuation byte */
		return 0;
	if (first < 0xe0)
		return 2;
	if (first < 0xf0)
		return 3;
	return first < 0xf5 ? 4 : 0;
}

static int text_continues(uint8_t b)
{
	return (b & 0xc0) == 0x80;
}

/* Reads one character of at most n bytes. Returns its length, 0 when it is malformed. */
static size_t text_decode(const uint8_t *p, size_t n, uint32_t *ret_code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = text_sequence(p[0]);
	uint32_t code;

	if (!len || len > n)
		return 0;
	code = len == 1 ? p[0] : p[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (!text_continues(p[i]))
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return len;
}

static int text_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

int text_check(const char *text, size_t n)
{
	const uint8_t *p = (const uint8_t *)text;
	uint32_t code = 0;

	while (n) {
		size_t len = text_decode(p, n, &code);

		if (!len || text_is_control(code))
			return -EINVAL;
		p += len;
		n -= len;
	}
	return 0;
}

size_t text_cut(const char *text, size_t n)
{
	while (n && text_continues((uint8_t)text[n]))
		n--;
	return n;
}

void text_clean(char *text)
{
	size_t n = strlen(text);
	uint32_t code = 0;

	while (n) {
		size_t len = text_decode((const uint8_t *)text, n, &code);

		if (!len || text_is_control(code)) {
			len = len ?: 1;
			memset(text, '?', len);
		}
		text += len;
		n -= len;
	}
}
