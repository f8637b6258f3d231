/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text in columns. Names of programs and models are what clients chose to send: they reach a
 * terminal and JSON only after cell_clean, whatever the daemon let pass.
 */
#ifndef KVP_TOOLS_KVPOOLCTL_CELL_H
#define KVP_TOOLS_KVPOOLCTL_CELL_H

#include <stddef.h>

/*
 * A copy of text in which every byte that is no part of well-formed UTF-8, and every control
 * character, is '?'. NULL when there is no memory.
 */
char *cell_clean(const char *text);

/* Columns that UTF-8 takes on a terminal, a character each. */
size_t cell_width(const char *text);

/* Bytes of the first n characters, or of all when there are fewer. */
size_t cell_prefix(const char *text, size_t n);

#endif
