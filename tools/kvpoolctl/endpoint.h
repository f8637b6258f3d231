/* SPDX-License-Identifier: Apache-2.0 */
/* Which daemon: the path of its admin socket. */
#ifndef KVP_TOOLS_KVPOOLCTL_ENDPOINT_H
#define KVP_TOOLS_KVPOOLCTL_ENDPOINT_H

#include <sys/un.h>

#include "tools/kvpoolctl/options.h"

struct endpoint {
	struct sockaddr_un addr;
	const char *hint;   /* what to look at when nobody answers there */
	const char *rights; /* who may connect */
};

/*
 * The first of: --socket PATH, --system or --user, $KVPOOL_ADMIN_SOCKET, $KVPOOL_SOCKET with
 * ".admin" behind it, the user instance if its folder is there, the system instance. A PATH that
 * has a PATH.admin beside it means that one: `kvpoold --socket PATH` and `kvpoolctl --socket PATH`
 * meet. Returns EXIT_OK, EXIT_USAGE or EXIT_BAD_CONFIG.
 */
enum ctl_exit endpoint_find(const struct options *o, struct endpoint *ret);

#endif
