/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_WORD_H
#define KVP_TOOLS_KVPOOLCTL_WORD_H

/* True when word is one of a list with blanks between them. */
int word_listed(const char *list, const char *word);

#endif
