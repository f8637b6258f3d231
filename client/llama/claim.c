/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/llama/claim.h"

int claim_set(struct claim *c, struct kvpool_write *write, const struct kvpool_key *keys,
	      size_t first)
{
	size_t n = kvpool_write_blocks(write);
	struct kvpool_key *copy = malloc(n * sizeof(*copy));

	claim_drop(c);
	if (!copy) {
		kvpool_write_free(write);
		return -ENOMEM;
	}
	memcpy(copy, keys + first, n * sizeof(*copy));
	*c = (struct claim){.write = write, .first = first, .n = n, .keys = copy};
	return 0;
}

void claim_drop(struct claim *c)
{
	kvpool_write_free(c->write);
	free(c->keys);
	*c = (struct claim){0};
}

/* Keys are a chain: equal here means equal before. */
bool claim_fits(const struct claim *c, const struct kvpool_key *keys, size_t n)
{
	return c->write && c->first + c->n <= n &&
	       !memcmp(&keys[c->first + c->n - 1], &c->keys[c->n - 1], sizeof(*keys));
}

bool claim_holds(const struct claim *c, const struct kvpool_key *keys, size_t i)
{
	return c->write && i >= c->first && i < c->first + c->n &&
	       !memcmp(&keys[i], &c->keys[i - c->first], sizeof(*keys));
}
