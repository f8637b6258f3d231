/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What restore reserved for a sequence: the blocks of its prompt that nobody has computed yet.
 * While it stands, others who come for them wait. Publish fills it; everything else gives it back.
 */
#ifndef KVP_CLIENT_LLAMA_CLAIM_H
#define KVP_CLIENT_LLAMA_CLAIM_H

#include <stdbool.h>

#include "client/kvpool.h"

struct claim {
	struct kvpool_write *write; /* NULL: there is no claim */
	size_t first; /* number of the first block in the prompt */
	size_t n; /* how many blocks */
	struct kvpool_key *keys; /* of these blocks */
};

/*
 * Takes over write, also when it fails (-ENOMEM: it is freed). keys are those of the whole prompt.
 */
int claim_set(struct claim *c, struct kvpool_write *write, const struct kvpool_key *keys,
	      size_t first);

/* Gives back what was reserved and not committed. Harmless when there is none. */
void claim_drop(struct claim *c);

/* True when the claim is for blocks of the prompt with these n keys, all of them. */
bool claim_fits(const struct claim *c, const struct kvpool_key *keys, size_t n);

/* True when block i of the prompt with these keys is in the claim. */
bool claim_holds(const struct claim *c, const struct kvpool_key *keys, size_t i);

#endif
