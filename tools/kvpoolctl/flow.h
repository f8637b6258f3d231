/* SPDX-License-Identifier: Apache-2.0 */
/* A labelled paragraph of short pieces, wrapped between them. */
#ifndef KVP_TOOLS_KVPOOLCTL_FLOW_H
#define KVP_TOOLS_KVPOOLCTL_FLOW_H

#include <stddef.h>
#include <stdio.h>

struct flow {
	FILE *out;
	size_t column, width;
	int pieces;
};

/* Starts a paragraph that fits width columns: the label stands right-aligned before its text. */
void flow_begin(struct flow *f, FILE *out, size_t width, const char *label);

/* Adds a piece, on the next line when this one has no room for it. */
void flow_add(struct flow *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a piece of foreign text behind a word of our own. */
void flow_clean(struct flow *f, const char *word, const char *text);

/* Goes on in a new line. */
void flow_break(struct flow *f);

void flow_end(struct flow *f);

/* A paragraph of words, wrapped to width columns, each line behind so many blanks. */
void flow_text(FILE *out, size_t indent, size_t width, const char *text);

#endif
