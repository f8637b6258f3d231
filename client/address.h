/* SPDX-License-Identifier: Apache-2.0 */
/* Which sockets to try, in which order. */
#ifndef KVP_CLIENT_ADDRESS_H
#define KVP_CLIENT_ADDRESS_H

#include <sys/un.h>

#define ADDRESS_SYSTEM "/run/kvpool/kvpool.sock"
#define ADDRESS_MAX    2u

struct address {
	char path[ADDRESS_MAX][sizeof(((struct sockaddr_un *)0)->sun_path)];
	unsigned int count;
};

/*
 * option is what the program asked for, socket and runtime_dir are $KVPOOL_SOCKET and
 * $XDG_RUNTIME_DIR; each may be NULL, and an empty one counts as NULL. Returns 0, or -ENAMETOOLONG
 * when the path of option or socket does not fit a socket address. A runtime_dir that is too long
 * has no user's instance.
 */
int address_choose(const char *option, const char *socket, const char *runtime_dir,
		   struct address *ret);

#endif
