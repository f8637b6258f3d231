/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the daemon by the names that people give them. */
#ifndef KVP_TOOLS_KVPOOLCTL_OBJECTS_H
#define KVP_TOOLS_KVPOOLCTL_OBJECTS_H

#include "tools/kvpoolctl/listing.h"

extern const struct listing_kind capacity_listing, clients_listing, config_listing,
	namespaces_listing, pins_listing, prefixes_listing, requests_listing;

enum objects_kind {
	OBJECTS_CLIENT = 1,
	OBJECTS_NAMESPACE = 2,
	OBJECTS_PIN = 4,
	OBJECTS_PREFIX = 8,
	OBJECTS_ALL = 15,
};

/* The one object that a name means. */
struct object {
	const struct listing_kind *kind;
	json_t *json; /* as its listing has it */
};

/*
 * Finds the one object of these kinds (bits) that name means: a client by name, session or process;
 * a namespace by model, number or the start of its fingerprint; a pin by number, label or the start
 * of its id; a prefix by the start of its id. "client:NAME" and so on mean one kind. None, or
 * several: EXIT_NO_OBJECT, and the candidates are said. The caller frees *ret, which may be zeroed.
 */
enum ctl_exit objects_find(struct admin *a, unsigned int kinds, const char *name,
			   struct object *ret);
void object_free(struct object *o);

/* Members of the object; 0 and "" for one that is not there, or null. */
uint64_t object_number(const struct object *o, const char *member);
const char *object_text(const struct object *o, const char *member);

#endif
