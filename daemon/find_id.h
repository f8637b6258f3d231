/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cached block whose key begins with some hex digits: its id, as operators see it. Keys are
 * only found whole, so this is a pass over all descriptors, in steps. daemon/finder.h runs them for
 * a request.
 */
#ifndef KVP_DAEMON_FIND_ID_H
#define KVP_DAEMON_FIND_ID_H

#include "daemon/pool.h"

/* Digits of an id as it is shown; any shorter beginning may be given, or up to all of the key. */
#define FIND_ID_DIGITS 16u

/* Descriptors that one step looks at: some 0.3 ms. */
#define FIND_ID_STEP 16384u

struct find_id {
	uint32_t ns; /* only of this one; NS_NONE: of all */
	uint64_t bits[KEY_WORDS], mask[KEY_WORDS];
	uint32_t at;
	uint32_t found; /* how many; the pass ends with the second one */
	uint32_t desc;  /* the first one */
	uint64_t gen;
};

/* Returns 0, or -EINVAL when id is not 1 to 64 hex digits. */
int find_id_init(struct find_id *f, uint32_t ns, const char *id);

/* One step. Returns 1 when there is more to look at, 0 when f->found counts. */
int find_id_step(struct find_id *f, const struct pool *p);

/* Whether what was found is still there. */
int find_id_is_there(const struct find_id *f, const struct pool *p);

/* The id of a descriptor that is not FREE, and a NUL. */
void find_id_of(const struct pool *p, uint32_t desc, char ret[FIND_ID_DIGITS + 1]);

#endif
