/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks whose bytes a client doubts: their checksum is computed once more, in the worker. */
#ifndef KVP_DAEMON_VERIFY_H
#define KVP_DAEMON_VERIFY_H

#include "daemon/domain.h"

/* Forgets what is under way: the worker is gone, and the pool goes. */
void verify_free_all(struct domain *d);

#endif
