/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting a socket, and waiting for one until a deadline (base/clock.h). */
#ifndef KVP_CLIENT_SOCK_H
#define KVP_CLIENT_SOCK_H

#include <stdint.h>

/*
 * Connects a SOCK_SEQPACKET socket, and does not wait. Returns it, or -errno: -EAGAIN when as many
 * as may wait to be accepted do already.
 */
int sock_connect(const char *path);

/*
 * Waits until the socket is ready for events (POLLIN, POLLOUT) or broken, which the next call on
 * it tells. Returns 0 or -ETIMEDOUT.
 */
int sock_wait(int sock, short events, uint64_t deadline);

#endif
