/* SPDX-License-Identifier: Apache-2.0 */
/* What operators are told about a block: the pool's part, and who reads and wrote it. */
#ifndef KVP_DAEMON_INSIGHT_H
#define KVP_DAEMON_INSIGHT_H

#include "daemon/domain.h"
#include "daemon/explain.h"

/* How chains go on behind a cached block, or (DESC_NONE) from the start of a namespace. */
void insight_fanout(const struct domain *d, uint32_t ns, uint32_t desc, struct explain_fanout *ret);

/* What is tracked of a cached block; NULL: nothing. */
const struct prefix *insight_prefix(const struct domain *d, uint32_t desc);

/* What the client of a session calls itself; "" when it is gone, or has no name. */
const char *insight_client(struct domain *d, uint64_t session);

/* Tells a namespace from others that had its number before. 0: there is none of that number. */
uint32_t insight_ns_mark(const struct domain *d, uint32_t ns);

/* The model of a namespace; "" when there is none of that number. */
const char *insight_model(const struct domain *d, uint32_t ns);

#endif
