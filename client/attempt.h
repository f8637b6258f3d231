/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that is being made, in steps that never wait: a socket is reached, HELLO is answered
 * and the regions are mapped, each namespace of the handle is answered for; then it is the
 * connection of the handle.
 *
 * Whoever makes it decides how to wait between two steps: a call that may block sleeps
 * (attempt_sleep), kvpool_dispatch comes back when its loop says so.
 */
#ifndef KVP_CLIENT_ATTEMPT_H
#define KVP_CLIENT_ATTEMPT_H

#include "base/clock.h"
#include "client/hello.h"
#include "client/link.h"
#include "client/ns.h"

/* A full backlog is no event that can be waited for: look again after this long. */
#define ATTEMPT_RETRY_NS (2 * NSEC_PER_MSEC)

enum attempt_state {
	ATTEMPT_REACH,
	ATTEMPT_HELLO,
	ATTEMPT_NAMESPACES,
};

struct attempt {
	struct kvpool *pool;
	enum attempt_state state;
	const char *path; /* of the socket that was reached */
	struct link link; /* complete when it is published */
	struct rpc_port port;
	struct rpc_call call; /* HELLO */
	struct hello hello;
	struct ns_question question; /* ns NULL: none is under way */
};

void attempt_begin(struct attempt *a, struct kvpool *p);

/*
 * Returns 0: connected; -EINPROGRESS: another step is due when something arrives on attempt_rpc, or
 * without one after ATTEMPT_RETRY_NS; or -errno, with the text of kvpool_error made: it failed.
 */
int attempt_step(struct attempt *a);

/* It took too long. Makes the text, and returns -ETIMEDOUT. */
int attempt_time_out(struct attempt *a);

/* The connection it talks on; NULL: none yet. */
struct rpc *attempt_rpc(const struct attempt *a);

/* Sleeps until a step is due. Returns 0 or -ETIMEDOUT. */
int attempt_sleep(const struct attempt *a, uint64_t deadline);

/* Gives back what it still has, after success too. In a child as well. */
void attempt_end(struct attempt *a);

#endif
