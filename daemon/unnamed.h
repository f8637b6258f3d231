/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unnamed slots: room for blocks whose tokens do not exist yet, for an engine that decodes straight
 * into the pool. Made and named through pool.h; voided from within.
 *
 * An unnamed block is RESERVED, has no key, is in no map and promised no place of the index, and
 * hangs nowhere: what is flushed or doomed does not concern it. It does not time out, since an
 * engine keeps its working K/V for hours; it ends with its session, as every reservation does.
 */
#ifndef KVP_DAEMON_UNNAMED_H
#define KVP_DAEMON_UNNAMED_H

#include "daemon/block.h"

/* Whether d, which is RESERVED, has no name. */
static inline int unnamed_is(const struct block *b)
{
	return block_loose(b);
}

/* Free at once: its owner no longer writes there. */
void unnamed_free(struct pool *p, struct pool_owner *o, uint32_t d);

/* RESERVED -> QUARANTINE. */
void unnamed_void(struct pool *p, struct pool_owner *o, uint32_t d);

#endif
