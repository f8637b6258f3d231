/* SPDX-License-Identifier: Apache-2.0 */
/* What clients say that they used, from the rings in their regions to the pool. */
#ifndef KVP_DAEMON_TOUCHES_H
#define KVP_DAEMON_TOUCHES_H

#include "daemon/session.h"

/*
 * Takes what is in the ring of a session that has a region: at most one ring full, whatever its
 * client does meanwhile. A record counts only for namespaces that the session has open. Returns how
 * many there were.
 */
uint32_t touches_drain(struct session *s, uint64_t now);

#endif
