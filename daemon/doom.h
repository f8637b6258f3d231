/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that must go, pinned or not: unlisted at once, freed when nobody reads them. */
#ifndef KVP_DAEMON_DOOM_H
#define KVP_DAEMON_DOOM_H

#include "daemon/pool.h"

/* Goes on with the flushes that pool_flush began. Returns when it wants to be called again. */
uint64_t doom_flushes(struct pool *p, uint64_t now);

/* Looks after doomed blocks that were pinned. Returns as above. */
uint64_t doom_again(struct pool *p, uint64_t now);

#endif
