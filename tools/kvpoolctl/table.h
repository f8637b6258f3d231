/* SPDX-License-Identifier: Apache-2.0 */
/* A table of text: a header, rows, the columns that were asked for, as narrow as they can be. */
#ifndef KVP_TOOLS_KVPOOLCTL_TABLE_H
#define KVP_TOOLS_KVPOOLCTL_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 24u

enum table_flag {
	TABLE_RIGHT = 1,   /* numbers */
	TABLE_EXTRA = 2,   /* shown only when asked for by name */
	TABLE_ELASTIC = 4, /* may be cut when the table is wider than its room */
};

struct table_column {
	const char *title;
	unsigned int flags;
	const char *help; /* what it shows, for help and man page */
};

struct table {
	const struct table_column *columns;
	unsigned int n_columns;
	unsigned int show[TABLE_COLUMNS_MAX]; /* numbers of the columns to print, in this order */
	unsigned int n_show;
	char **cells; /* n_columns for each row; NULL prints as "-" */
	size_t n_rows;
};

/* An empty table that shows all columns but the extra ones. n <= TABLE_COLUMNS_MAX. */
void table_init(struct table *t, const struct table_column *columns, unsigned int n);
void table_free(struct table *t);

/*
 * Shows the columns of a list "name,pid,hit%" instead, in its order; letter case does not matter,
 * "all" is all of them. Returns 0, -EINVAL with *ret_bad at the name that is none, or -E2BIG.
 */
int table_select(struct table *t, const char *list, const char **ret_bad);

/* Starts a row, and fills one cell of the last one. Return 0 or -ENOMEM. */
int table_row(struct table *t);
int table_cell(struct table *t, unsigned int column, const char *text);

/*
 * width: columns that the lines should fit, 0 when it does not matter. ellipsis ends a cell that
 * was cut.
 */
void table_print(const struct table *t, FILE *out, int header, size_t width, const char *ellipsis);

#endif
