/* SPDX-License-Identifier: Apache-2.0 */
/* A list of objects of the daemon, as a table or as JSON, while its pages come in. */
#ifndef KVP_TOOLS_KVPOOLCTL_LISTING_H
#define KVP_TOOLS_KVPOOLCTL_LISTING_H

#include <jansson.h>

#include "tools/kvpoolctl/ctl.h"
#include "tools/kvpoolctl/table.h"

struct listing {
	const struct ctl *ctl;
	const char *noun; /* of one object; an s makes several */
	struct table table;
	json_t *items; /* NULL when no JSON is wanted */
	int no_memory;
};

/* EXIT_USAGE when --output names a column that there is none of. */
enum ctl_exit listing_begin(struct listing *l, const struct ctl *ctl, const char *noun,
			    const struct table_column *columns, unsigned int n);
void listing_free(struct listing *l);

/* Starts the row of the next object, and fills a cell of it. Names from clients may be passed in.
 */
void listing_row(struct listing *l);
void listing_cell(struct listing *l, unsigned int column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The next object as JSON; takes item. */
void listing_item(struct listing *l, json_t *item);

/* Prints all of it: the table with its legend, or an object of that schema with member "noun"s. */
enum ctl_exit listing_print(struct listing *l, const char *schema);

#endif
