/* SPDX-License-Identifier: Apache-2.0 */
/* Which namespace an operator means: its number, its model, or the start of its fingerprint. */
#ifndef KVP_DAEMON_FIND_NS_H
#define KVP_DAEMON_FIND_NS_H

#include "daemon/request.h"

#define FIND_NS_NONE                                                                               \
	"no namespace has this number, model or beginning of a fingerprint (6 digits at least): "  \
	"see kvpoolctl namespaces"

/* Whether ns is there and goes by that name. All that are there go by the empty one. */
int find_ns_matches(const struct pool *p, uint32_t ns, const char *name);

/*
 * The only one of that name. Returns 1; otherwise answers with an error, whose field is
 * "namespace", and returns 0.
 */
int find_ns(struct request *rq, const char *name, uint32_t *ret);

/* As find_ns, for an operation that means all of that name; the empty one is always fine. */
int find_ns_any(struct request *rq, const char *name);

#endif
