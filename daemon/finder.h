/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that names a block by its id. The search takes several rounds of the loop; its handler
 * is called once to start it and, when it is over, once more with the same message and the result:
 *
 * 	if (!finder_find(rq, ns, m->id, &desc))
 * 		return;
 *
 * Before that line it must change nothing.
 */
#ifndef KVP_DAEMON_FINDER_H
#define KVP_DAEMON_FINDER_H

#include "daemon/request.h"

struct finder;

/*
 * The cached block of that id, in a namespace or (NS_NONE) in any. Returns 1 and its descriptor
 * when it was found, and is there now. Otherwise 0: the search began, and the handler is called
 * again; or the request is answered with an error.
 */
int finder_find(struct request *rq, uint32_t ns, const char *id, uint32_t *ret_desc);

/* Ends a search whose session ends. Accepts NULL, returns NULL. */
struct finder *finder_free(struct finder *f);

#endif
