/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_WORD_H
#define KVP_TOOLS_KVPOOLCTL_WORD_H

/* Edits (insert, remove, replace, swap neighbours) that make one word of the other. */
unsigned int word_distance(const char *a, const char *b);

/* As many edits as a mistyped word may be away from the one that was meant, plus one. */
#define WORD_FAR 3u

/* True when word is one of a list with blanks between them. */
int word_listed(const char *list, const char *word);

#endif
