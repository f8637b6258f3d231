/* SPDX-License-Identifier: Apache-2.0 */
/* The first exchange of a connection. */
#ifndef KVP_CLIENT_HELLO_H
#define KVP_CLIENT_HELLO_H

#include "client/handle.h"

struct hello {
	struct attach_offer offer; /* with descriptors that belong to the caller: hello_close */
	uint64_t session;
	uint32_t max_keys;
	uint64_t features; /* that the library knows too */
	char daemon[PROTO_TEXT_MAX + 1]; /* its version, for people */
};

/* Returns 0 and what the daemon offers, or -errno with the reason in text. */
int hello_exchange(struct kvpool *p, struct rpc *r, uint64_t deadline, struct hello *ret,
		   char text[RPC_TEXT_MAX]);

void hello_close(struct hello *h);

#endif
