/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a server of a socket can be: what the daemon is measured against. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "tools/bench/wire.h"

#define IN_FLIGHT 16u /* probes */

struct echo_head {
	uint32_t reply, n_keys;
	struct kvpool_key keys[];
};

static uint64_t probe(const struct echo *e, const struct kvpool_key *keys, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t b = 0; b < n; b += IN_FLIGHT) {
		uint32_t end = MIN(n, b + IN_FLIGHT);

		for (uint32_t j = b; j < end; j++)
			__builtin_prefetch(&e->table[(keys[j].w[0] & e->mask) * 8]);
		for (uint32_t j = b; j < end; j++)
			sum += e->table[(keys[j].w[0] & e->mask) * 8] == keys[j].w[1];
	}
	return sum;
}

static void serve(const struct echo *e)
{
	static _Alignas(64) unsigned char in[FRAME_MAX], out[FRAME_MAX];
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	const struct echo_head *h = (const void *)in;

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, e->server_sock, &ev) < 0)
		_exit(1);
	while (epoll_wait(ep, &ev, 1, -1) == 1) {
		ssize_t n = recv(e->server_sock, in, sizeof(in), MSG_DONTWAIT);

		if (n < (ssize_t)sizeof(*h))
			break;
		*(volatile uint64_t *)out = probe(e, h->keys, h->n_keys);
		if (send(e->server_sock, out, h->reply, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	_exit(0);
}

int echo_start(struct echo *e, const uint64_t *table, uint64_t mask)
{
	int pair[2];

	*e = (struct echo){ .table = table, .mask = mask, .sock = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	e->server_sock = pair[1];
	e->pid = fork();
	if (e->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		serve(e);
	}
	close(pair[1]);
	e->sock = pair[0];
	if (e->pid < 0)
		return -EAGAIN;
	wire_pin(e->pid, WIRE_SERVER_CPU);
	return 0;
}

void echo_stop(struct echo *e)
{
	if (e->pid <= 0)
		return;
	e->sock = close_fd(e->sock); /* it ends with that */
	waitpid(e->pid, NULL, 0);
	e->pid = 0;
}

double echo_trip(struct echo *e, size_t n, size_t reply, const struct kvpool_key *keys,
		 uint32_t n_keys)
{
	static _Alignas(64) unsigned char out[FRAME_MAX], in[FRAME_MAX];
	struct echo_head *h = (void *)out;
	size_t got;
	double t;

	*h = (struct echo_head){ .reply = (uint32_t)reply, .n_keys = n_keys };
	if (n_keys)
		memcpy(h->keys, keys, n_keys * sizeof(*keys));
	t = wire_round(e->sock, out, n, in, sizeof(in), &got);
	return t < 0 || got == reply ? t : -EIO;
}
