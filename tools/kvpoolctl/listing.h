/* SPDX-License-Identifier: Apache-2.0 */
/* A list of objects of the daemon, as a table or as JSON, while its pages come in. */
#ifndef KVP_TOOLS_KVPOOLCTL_LISTING_H
#define KVP_TOOLS_KVPOOLCTL_LISTING_H

#include <jansson.h>

#include "tools/kvpoolctl/admin.h"
#include "tools/kvpoolctl/ctl.h"
#include "tools/kvpoolctl/table.h"

struct listing;

/* One kind of objects: its items are messages of the protocol. */
struct listing_kind {
	const char *noun, *nouns; /* the second one also names the member in JSON */
	const char *schema;
	const struct table_column *columns;
	unsigned int n_columns;
	enum proto_op op; /* whose reply has the items */
	/* Fills the cells of the row that was started for the item. */
	void (*row)(struct listing *l, const void *item);
	json_t *(*json)(const void *item);
};

struct listing {
	const struct ctl *ctl;
	const struct listing_kind *kind;
	struct table table;
	json_t *items; /* NULL when no JSON is wanted */
	json_t *more;  /* members of the document beside the items */
	char note[96]; /* behind the count of lines */
	int no_memory;
};

/* EXIT_USAGE when --output names a column that there is none of. */
enum ctl_exit listing_begin(struct listing *l, const struct ctl *ctl,
			    const struct listing_kind *kind);
void listing_free(struct listing *l);

/* Adds an object; data is the listing. */
void listing_add(void *data, const void *item);

/* Fills a cell of the row at hand. Names from clients may be passed in. */
void listing_cell(struct listing *l, unsigned int column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints all of it: the table with its legend, or an object with the kind's schema. */
enum ctl_exit listing_print(struct listing *l);

/* Fetches and prints all objects of a kind. request: NULL when it needs no field. */
enum ctl_exit listing_run(const struct ctl *ctl, const struct listing_kind *kind,
			  ProtobufCMessage *request);

#endif
