/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a socket: as the kernel knows it, never as it says itself. */
#ifndef KVP_DAEMON_PEER_H
#define KVP_DAEMON_PEER_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Of the process that called connect(), whoever holds the socket later. pidfd becomes readable when
 * that process is gone; the pid is for people.
 */
struct peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary ones */
	uint32_t n_groups;
	int pidfd;
};

/* Returns 0 or -errno, -ESRCH when the peer is gone already. */
int peer_read(int sock, struct peer *ret);

/* Frees what peer_read made. Twice is harmless. */
void peer_clear(struct peer *p);

int peer_in_group(const struct peer *p, gid_t gid);

#endif
