/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from the other side. It ends up in log lines and on terminals, so it must be what it looks
 * like.
 */
#ifndef KVP_PROTO_TEXT_H
#define KVP_PROTO_TEXT_H

#include <stddef.h>

/*
 * Checks that n bytes are well-formed UTF-8 (shortest form, no surrogates) without control
 * characters (U+0000 to U+001F, U+007F to U+009F). Returns 0 or -EINVAL.
 */
int text_check(const char *text, size_t n);

/* The largest length <= n at which text can be cut without splitting a character. */
size_t text_cut(const char *text, size_t n);

/*
 * Makes text well-formed, in place: of what text_check() refuses, each byte becomes '?'. For what
 * is put together of parts that nobody has checked, or cut at the end of a buffer.
 */
void text_clean(char *text);

#endif
