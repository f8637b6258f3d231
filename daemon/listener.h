/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening socket: made here, under a lock that only one daemon can have, or passed by the
 * service manager.
 *
 * The lock is a file beside the socket, "PATH.lock", held by flock while the daemon lives, so a
 * socket that its daemon left behind is known to be stale by whoever has the lock. A path at which
 * something else listens, or which is no socket, is never touched.
 */
#ifndef KVP_DAEMON_LISTENER_H
#define KVP_DAEMON_LISTENER_H

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/peer.h"

struct listener;

#define LISTENER_WHY_BYTES 256u

struct listener_config {
	const char *path;
	mode_t mode;
	gid_t group; /* (gid_t)-1: as it comes */
	/* Of its folder, made when there is none; 0: it must be there. */
	mode_t folder_mode;
};

/* Returns 0, or -errno and what is wrong in words. */
int listener_open(const struct listener_config *cfg, struct listener **ret,
		  char why[LISTENER_WHY_BYTES]);

/* Takes over a socket that listens already. The same. */
int listener_adopt(int fd, struct listener **ret, char why[LISTENER_WHY_BYTES]);

/*
 * Calls accepted() for each connection, with the peer as the kernel knows it; both are its own
 * then. Returns 0 or -errno.
 */
int listener_watch(struct listener *l, sd_event *event,
		   void (*accepted)(void *ctx, int sock, struct peer *peer), void *ctx);

/* Closes it, and removes what listener_open made. Accepts NULL, returns NULL. */
struct listener *listener_free(struct listener *l);

#endif
