/* SPDX-License-Identifier: Apache-2.0 */
/* A client that waits for another one's commit instead of computing the same prefix itself. */
#ifndef KVP_DAEMON_WAIT_H
#define KVP_DAEMON_WAIT_H

#include "daemon/domain.h"

/* The pool ends a wait: answers it. For struct pool_ops. */
void wait_wake(struct pool_waiter *waiter, uint32_t present);

/* Ends all waits of a session, unanswered. */
void wait_end_all(struct session *s);

#endif
