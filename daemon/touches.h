/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients say that they looked up, from the rings in their regions to whoever keeps it: the
 * pool (what was used), the session's account (what was missed, and why), the past requests and the
 * table of prefixes.
 */
#ifndef KVP_DAEMON_TOUCHES_H
#define KVP_DAEMON_TOUCHES_H

#include "daemon/session.h"

/*
 * Takes what is in the ring of a session that has a region: at most one ring full, whatever its
 * client does meanwhile. Records for namespaces that it has not open count as missed, and for
 * nothing else.
 */
void touches_drain(struct session *s, uint64_t now);

/* A lookup that came as a message: n keys, of which the first ones are present, up to desc. */
void touches_tell(struct session *s, uint32_t ns, const struct block_key *keys, uint32_t n,
		  uint32_t present, uint32_t desc, uint64_t now);

/* Takes blocks that are gone out of the table of prefixes. */
void touches_sweep(struct domain *d);

/* No record is to come any more of what the client counted until now. */
void touches_settle(struct session *s);

#endif
