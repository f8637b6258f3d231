/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct kvpool_chain: the tokens of a growing prompt and the keys of its full blocks.
 *
 * Tokens and keys lie in a buffer that forks share. Each of them has a length of its own and reads
 * nothing beyond it. What comes behind is claimed by whoever appends first, by a compare-and-swap
 * on the end of the buffer; the others copy what is theirs when they append. So a fork costs
 * nothing, and no lock is needed though each fork may be in another thread.
 */
#ifndef KVP_CLIENT_PROMPT_H
#define KVP_CLIENT_PROMPT_H

#include "client/chain.h"
#include "client/kvpool.h"
#include "shm/layout.h"

struct prompt_buffer {
	uint64_t refs; /* atomic */
	uint64_t end;  /* atomic: tokens that some chain has claimed */
	size_t room;   /* tokens */
	int32_t *tokens;
	struct block_key *keys; /* room / block_tokens */
};

struct kvpool_chain {
	struct kvpool_ns *ns;         /* with a reference */
	struct prompt_buffer *buffer; /* NULL: empty since it was made */
	size_t n_tokens;
};

/*
 * Its full blocks from first on, for a request: valid while the chain is not changed, never closed.
 * -EINVAL with the text of kvpool_error made: it has not as many. -ESTALE: this is a child.
 */
int prompt_run(const struct kvpool_chain *c, size_t first, struct chain *ret);

/* The same with keys of the caller's own, to be closed: the chain may change. Or -ENOMEM. */
int prompt_copy(const struct kvpool_chain *c, size_t first, struct chain *ret);

#endif
