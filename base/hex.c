/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/hex.h"

void hex_encode(const void *data, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *b = data;

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[b[i] >> 4];
		*out++ = digits[b[i] & 15];
	}
	*out = '\0';
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int hex_decode(const char *text, void *data, size_t n)
{
	uint8_t *b = data;

	for (size_t i = 0; i < n; i++) {
		int hi = hex_value(text[2 * i]);
		int lo = hi < 0 ? -1 : hex_value(text[2 * i + 1]);

		if (lo < 0)
			return -EINVAL;
		b[i] = (uint8_t)(hi << 4 | lo);
	}
	return text[2 * n] ? -EINVAL : 0;
}
