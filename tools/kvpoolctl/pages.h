/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of the admin socket, which come in pages. */
#ifndef KVP_TOOLS_KVPOOLCTL_PAGES_H
#define KVP_TOOLS_KVPOOLCTL_PAGES_H

#include "tools/kvpoolctl/admin.h"

/*
 * Calls each with every item of a list, page by page. request: what to ask beside where to go on;
 * NULL: nothing. An item lives until each returns.
 */
enum ctl_exit pages_each(struct admin *a, enum proto_op op, ProtobufCMessage *request,
			 void (*each)(void *data, const void *item), void *data);

#endif
