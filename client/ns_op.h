/* SPDX-License-Identifier: Apache-2.0 */
/* Registering namespaces in kvpool_dispatch, for handles that never wait. */
#ifndef KVP_CLIENT_NS_OP_H
#define KVP_CLIENT_NS_OP_H

#include "client/handle.h"

/*
 * Asks about a namespace that the daemon has not answered about on this connection, if there is
 * one. With its end the loop is rung to look for the next. Under the lock of the operations.
 */
void ns_op_register(struct kvpool *p);

#endif
