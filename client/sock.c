/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "client/sock.h"

/* How long an answer is looked for before the thread sleeps. */
#define SOCK_LOOK_NS (60 * NSEC_PER_USEC)

/* Milliseconds until the deadline, rounded up, so that waiting for it does not spin at its end. */
static int ms_until(uint64_t deadline)
{
	uint64_t now = clock_ns();
	uint64_t ms = now < deadline ? (deadline - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 0;

	return (int)MIN(ms, (uint64_t)INT_MAX);
}

/*
 * Most answers take some twenty to fifty microseconds, and a processor that goes to sleep meanwhile
 * takes as long to wake up: so the first moments are spent looking. True when there is something.
 */
static int look_for_a_while(struct pollfd *p, uint64_t deadline)
{
	uint64_t end = MIN(clock_ns() + SOCK_LOOK_NS, deadline);

	do {
		if (poll(p, 1, 0) > 0)
			return 1;
	} while (clock_ns() < end);
	return 0;
}

int sock_wait(int sock, short events, uint64_t deadline)
{
	struct pollfd p = { .fd = sock, .events = events };

	/* Room to send, or a time that is only to pass, is nothing that comes soon. */
	if (events == POLLIN && look_for_a_while(&p, deadline))
		return 0;
	for (;;) {
		int ms = ms_until(deadline);
		int n = poll(&p, 1, ms);

		/* What poll itself fails with (no memory) shows again where the socket is used. */
		if (n > 0 || (n < 0 && errno != EINTR))
			return 0;
		if (!ms)
			return -ETIMEDOUT;
	}
}

int sock_connect(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_cleanup_fd_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (sock < 0)
		return -errno;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	do
		r = connect(sock, (const struct sockaddr *)&to, sizeof(to));
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : TAKE_FD(sock);
}
