/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made from the tables of kvpoolctl when it is built: the lists of its man page, and the
 * completions of shells.
 */
#ifndef KVP_TOOLS_KVPOOLCTL_GENERATE_GENERATE_H
#define KVP_TOOLS_KVPOOLCTL_GENERATE_GENERATE_H

#include <stdio.h>

/*
 * Copies a page in scdoc's format; a line "@commands@", "@options@", "@status@", "@columns@" or
 * "@reasons@" becomes that list. Returns 0, or -EINVAL for a line of that form that is none.
 */
int manpage_print(FILE *in, FILE *out);

void bash_print(FILE *out);
void zsh_print(FILE *out);
void fish_print(FILE *out);

#endif
