/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_BASE_HEX_H
#define KVP_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Writes 2 * n lower-case digits and a NUL to out. */
void hex_encode(const void *data, size_t n, char *out);

/* Reads exactly 2 * n digits. Returns 0 or -EINVAL. */
int hex_decode(const char *text, void *data, size_t n);

#endif
