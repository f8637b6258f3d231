/* SPDX-License-Identifier: Apache-2.0 */
/* The first exchange of a connection. */
#ifndef KVP_CLIENT_HELLO_H
#define KVP_CLIENT_HELLO_H

#include "client/handle.h"
#include "proto/kvpool.pb-c.h"

struct hello {
	struct attach_offer offer; /* with descriptors that belong to the caller: hello_close */
	uint64_t session;
	uint32_t max_keys;
	uint64_t features;               /* that the library knows too */
	char daemon[PROTO_TEXT_MAX + 1]; /* its version, for people */
};

/* Nothing is offered yet. */
void hello_init(struct hello *h);

/* The call and the message, of which the caller made the defaults. The reply goes to h. */
void hello_ask(struct kvpool *p, struct hello *h, struct rpc_call *call, Kvpool__Hello *m);

/* Why the call ended with err: returns what to fail with, and puts the reason into text. */
int hello_explain(struct rpc *r, struct rpc_call *call, int err, char text[RPC_TEXT_MAX]);

/* After it went well: the descriptors that came. */
void hello_take_fds(struct hello *h, struct rpc_call *call);

void hello_close(struct hello *h);

#endif
