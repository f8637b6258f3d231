/* SPDX-License-Identifier: Apache-2.0 */
/* A token file in a namespace of the daemon: its keys, and how far they are cached. */
#ifndef KVP_TOOLS_KVPOOLCTL_CHAIN_H
#define KVP_TOOLS_KVPOOLCTL_CHAIN_H

#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/objects.h"
#include "tools/kvpoolctl/tokens.h"

struct chain {
	struct object ns; /* as "namespaces" lists it */
	uint32_t block_tokens;
	size_t tokens; /* of the file */
	size_t n;      /* blocks that a lookup asks for */
	uint8_t *keys;
};

/*
 * Reads --tokens for the namespace of --namespace. The caller frees *ret, which may be zeroed.
 */
enum ctl_exit chain_open(struct admin *a, const struct options *o, struct chain *ret);
void chain_free(struct chain *c);

/*
 * Asks how far the chain is cached, in as many requests as it takes. *ret_present: blocks from the
 * first on. *ret: the last answer, which tells why not further; NULL when there is no block to ask
 * for.
 */
enum ctl_exit chain_explain(struct admin *a, const struct chain *c, size_t *ret_present,
			    const Kvpool__ExplainReply **ret);

/* The number that names its namespace to the daemon. */
struct chain_ns {
	char text[24];
};
struct chain_ns chain_ns(const struct chain *c);

#endif
