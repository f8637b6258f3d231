/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "daemon/explain.h"
#include "daemon/model.h"

void explain_missing(const struct pool *p, const struct block_key *key, struct explain_missing *ret)
{
	uint32_t d = block_find(p, key);
	struct ghost_found found;

	*ret = (struct explain_missing){ .why = MISS_COLD };
	if (d != DESC_NONE) {
		ret->why = MISS_IN_FLIGHT;
		ret->writer = load_relaxed(&p->control.aux[d].writer);
	} else if (ghost_find(&p->ghost, key, &found)) {
		ret->why = found.why;
		ret->when = found.when;
	}
}

int explain_block(const struct pool *p, uint32_t desc, struct explain_block *ret)
{
	const struct namespace *ns;
	uint64_t blocks;

	if (desc >= p->cfg.max_blocks || block_state(p, desc) != DESC_COMMITTED)
		return -ENOENT;
	ns = block_namespace(p, desc);
	blocks = (uint64_t)load_relaxed(&p->control.desc[desc].depth) + 1;
	*ret = (struct explain_block){
		.desc = desc,
		.ns = ns->number,
		.gen = block_gen(p, desc),
		.writer = load_relaxed(&p->control.aux[desc].writer),
		.tokens = blocks * ns->block_tokens,
		.bytes = blocks * ns->stride,
	};
	return 0;
}

void explain_fanout(const struct pool *p, uint32_t ns, uint32_t desc,
		    int (*shared)(void *ctx, uint32_t desc), void *ctx, struct explain_fanout *ret)
{
	const struct namespace *x = namespace_get(p, ns);
	struct explain_fanout f = { .children = 0 };
	uint32_t d = DESC_NONE;

	if (x)
		d = desc == DESC_NONE ? x->roots : block_child(&p->block[desc]);
	for (uint32_t n = 0; d != DESC_NONE && n < EXPLAIN_CHILDREN_MAX; n++) {
		if (block_state(p, d) == DESC_COMMITTED) {
			f.children++;
			f.once += block_child(&p->block[d]) == DESC_NONE && !shared(ctx, d);
		}
		d = p->block[d].next;
	}
	*ret = f;
}
