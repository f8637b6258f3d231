/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "daemon/model.h"
#include "daemon/stats.h"

/* A stale hazard word can name a block that is nobody's child any more. */
static int has_parent(const struct pool *p, uint32_t d)
{
	enum desc_state s = block_state(p, d);

	return s == DESC_COMMITTED || s == DESC_DOOMED || s == DESC_RESERVED;
}

/* Adds what is above d to the pins, up to what was added before. */
static void spread(struct pool *p, uint32_t d)
{
	while (has_parent(p, d)) {
		d = block_parent(p, d);
		if (d == DESC_NONE || pinset_has(&p->pins, d))
			return;
		pinset_add(&p->pins, d);
	}
}

/* Calls fn with each member: a pass over the bits, since its list holds only the first ones. */
static void each_pin(struct pool *p, void (*fn)(struct pool *p, uint32_t d, void *arg), void *arg)
{
	for (uint32_t i = 0; i < (p->fresh_block + 63) / 64; i++) {
		uint64_t bits = p->pins.bits[i];

		for (; bits; bits &= bits - 1)
			fn(p, i * 64 + (uint32_t)__builtin_ctzll(bits), arg);
	}
}

static void spread_one(struct pool *p, uint32_t d, void *arg)
{
	spread(p, d);
}

void stats_spread_pins(struct pool *p)
{
	each_pin(p, spread_one, NULL);
}

static void count_one(struct pool *p, uint32_t d, void *arg)
{
	if (block_state(p, d) == DESC_COMMITTED)
		block_namespace(p, d)->leased++;
}

void pool_count_leased(struct pool *p)
{
	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		ns->leased = 0;
	pool_scan_readers(p);
	stats_spread_pins(p);
	each_pin(p, count_one, NULL);
}

static uint32_t count_namespaces(const struct pool *p)
{
	uint32_t n = 0;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		n++;
	return n;
}

/* Blocks, and those of them that are leased. */
static void count_blocks(struct pool *p, struct pool_stats *s)
{
	pool_count_leased(p);
	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		s->blocks += ns->n[DESC_COMMITTED];
		s->leased_blocks += ns->leased;
		s->leased_bytes += ns->leased * ns->stride;
	}
}

void pool_get_stats(struct pool *p, struct pool_stats *ret)
{
	const uint64_t *b = p->bytes;

	*ret = p->count;
	count_blocks(p, ret);
	ret->pool_bytes = pool_limit_bytes(p);
	ret->excess_bytes = (uint64_t)extent_excess(&p->extents) << p->extents.shift;
	ret->handed_bytes = (uint64_t)p->extents.n_handed << p->extents.shift;
	ret->cached_bytes = b[DESC_COMMITTED];
	ret->writing_bytes = b[DESC_RESERVED];
	ret->unnamed_bytes = p->unnamed_bytes;
	ret->quarantined_bytes = b[DESC_QUARANTINE];
	ret->doomed_bytes = b[DESC_DOOMED];
	ret->free_bytes = ret->handed_bytes - b[DESC_COMMITTED] - b[DESC_RESERVED] -
			  b[DESC_QUARANTINE] - b[DESC_DOOMED];
	ret->max_blocks = p->cfg.max_blocks;
	ret->namespaces = count_namespaces(p);
	ret->pins = p->pin.count;
	ret->pinned_bytes = p->pin.bytes;
	ret->pin_budget = p->pin.budget;
}

int pool_ns_get_stats(const struct pool *p, uint32_t ns, struct pool_ns_stats *ret)
{
	const struct namespace *x = namespace_get(p, ns);

	if (!x)
		return -ENOENT;
	*ret = (struct pool_ns_stats){
		.model = x->model,
		.block_tokens = x->block_tokens,
		.block_bytes = x->block_bytes,
		.blocks = x->n[DESC_COMMITTED],
		.leased_blocks = x->leased,
		.writing_blocks = x->n[DESC_RESERVED],
		.unnamed_blocks = x->n_unnamed,
		.extents = x->extents.n_extents,
		.extent_bytes = ((uint64_t)x->extents.n_extents * x->extents.granules)
				<< p->extents.shift,
		.lookups = x->lookups,
		.asked_tokens = x->asked_tokens,
		.hit_tokens = x->hit_tokens,
		.missed = x->missed,
		.used = x->used,
		.ttl_ns = x->ttl_ns,
		.priority = x->priority,
		.expired = x->expired,
		.pinned_blocks = x->pinned,
		.free_blocks = MIN(x->extents.n_free + extent_slots_more(&p->extents, &x->extents),
				   (uint64_t)pool_free_blocks(p)),
		.empty_blocks = MIN(extent_slots_most(&p->extents, &x->extents),
				    (uint64_t)p->cfg.max_blocks),
		.desc = x->desc,
		.n_desc = x->n_desc,
	};
	memcpy(ret->seed, x->seed, sizeof(ret->seed));
	return 0;
}
