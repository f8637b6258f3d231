/* SPDX-License-Identifier: Apache-2.0 */
/* What a kvpool_llama handle consists of, for the files that implement kvpool-llama.h. */
#ifndef KVP_CLIENT_LLAMA_ADAPTER_H
#define KVP_CLIENT_LLAMA_ADAPTER_H

#define KVPOOL_LLAMA_BUILD
#include "client/llama/claim.h"
#include "client/llama/kvpool-llama.h"
#include "client/llama/sequence.h"
#include "client/llama/shape.h"

#define ADAPTER_WHY 256

struct kvpool_llama {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct llama_context *ctx;
	struct kvpool_lease *lease; /* held only inside a call */
	struct shape shape;
	uint32_t block_tokens;
	uint32_t wait_ms;
	uint32_t flags;

	/* Room for one prompt that fills the context. */
	size_t max_blocks;
	struct kvpool_key *keys;
	void **images;

	struct claim *claims; /* one per sequence */
	uint32_t n_claims;

	struct kvpool_llama_stats stats;
	char why[ADAPTER_WHY];
};

/* Notes why a call has no more to give. */
__attribute__((format(printf, 2, 3))) void adapter_why(struct kvpool_llama *k, const char *format,
						       ...);

#endif
