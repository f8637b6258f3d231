/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet to its handler: the operation table. */
#ifndef KVP_DAEMON_DISPATCH_H
#define KVP_DAEMON_DISPATCH_H

#include <stddef.h>

struct session;

/*
 * Checks and runs one request. It may doom the session, and answers in all other cases, at once or
 * later.
 */
void dispatch_packet(struct session *s, const void *packet, size_t n);

#endif
