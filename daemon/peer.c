/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "daemon/peer.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* What a process can have is 65536; with more than these it is not our business. */
#define PEER_GROUPS_MAX 1024u

static int peer_read_pidfd(int sock, pid_t pid)
{
	socklen_t n = sizeof(int);
	int fd;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &n) == 0)
		return fd;
	if (errno != ENOPROTOOPT)
		return errno == EINVAL ? -ESRCH : -errno;
	/*
	 * An older kernel. If the peer died and its pid went to another process since, this one is
	 * watched instead, and the session ends late, when its socket hangs up.
	 */
	fd = pidfd_open(pid, 0);
	return fd < 0 ? -errno : fd;
}

static int peer_read_groups(int sock, struct peer *p)
{
	socklen_t n = PEER_GROUPS_MAX * sizeof(gid_t);
	gid_t *groups = malloc(n);

	if (!groups)
		return -ENOMEM;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0 || n == 0) {
		/*
		 * None, or too many, or a kernel that does not tell: membership then is not proven.
		 */
		free(groups);
		return 0;
	}
	p->groups = realloc(groups, n) ?: groups;
	p->n_groups = (uint32_t)(n / sizeof(gid_t));
	return 0;
}

int peer_read(int sock, struct peer *ret)
{
	struct peer p = { .pidfd = -1 };
	struct ucred cred;
	socklen_t n = sizeof(cred);
	int r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return -errno;
	p.pid = cred.pid;
	p.uid = cred.uid;
	p.gid = cred.gid;
	r = peer_read_groups(sock, &p);
	if (r < 0)
		return r;
	p.pidfd = peer_read_pidfd(sock, p.pid);
	if (p.pidfd < 0) {
		r = p.pidfd;
		peer_clear(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void peer_clear(struct peer *p)
{
	free(p->groups);
	p->groups = NULL;
	p->n_groups = 0;
	p->pidfd = close_fd(p->pidfd);
}

int peer_in_group(const struct peer *p, gid_t gid)
{
	if (p->gid == gid)
		return 1;
	for (uint32_t i = 0; i < p->n_groups; i++)
		if (p->groups[i] == gid)
			return 1;
	return 0;
}
