/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/model.h"
#include "daemon/reserve.h"
#include "daemon/room.h"
#include "daemon/unnamed.h"
#include "shm/desc.h"

/* A descriptor and a slot are free. */
static struct pool_grant grant(struct pool *p, struct pool_owner *o, struct namespace *ns,
			       uint32_t d, uint64_t now)
{
	struct desc_identity id = {
		.parent = DESC_NONE,
		.ns = ns->number,
		.writer = o->session,
	};
	uint32_t slot = extent_take_packed(&p->extents, &ns->extents, d);
	uint64_t gen = desc_reserve(&p->control, d, &id, TIER_HOST, slot);

	extent_of(&p->extents, slot)->busy++;
	block_set_time(p, d, now);
	block_count(p, d, DESC_FREE, DESC_RESERVED);
	owner_charge_unnamed(p, o, d);
	return (struct pool_grant){ .desc = d, .slot = slot, .gen = gen };
}

static enum proto_full try_grant(struct pool *p, struct pool_owner *o, struct namespace *ns,
				 uint64_t now, struct pool_grant *ret)
{
	uint32_t d;

	if (!owner_allowance_unnamed(p, o, ns))
		return FULL_QUOTA;
	if (!ns->extents.n_free)
		return FULL_POOL;
	if (extent_packs_full(&ns->extents))
		(void)room_grow(p, ns, now);
	d = block_new(p);
	if (d == DESC_NONE)
		return FULL_DESCRIPTORS;
	*ret = grant(p, o, ns, d, now);
	return FULL_NONE;
}

int pool_reserve_unnamed(struct pool *p, struct pool_owner *o, uint32_t ns, uint32_t n,
			 uint64_t now, uint8_t *verdicts, struct pool_grant *grants,
			 uint32_t *ret_full)
{
	struct namespace *x = namespace_get(p, ns);
	enum proto_full full = FULL_NONE;
	uint32_t want, granted = 0;

	if (!x)
		return -ENOENT;
	x->used = MAX(x->used, now);
	owner_enter(p, o);
	want = MIN(n, owner_allowance_unnamed(p, o, x));
	if (want > x->extents.n_free || want > pool_free_blocks(p))
		room_make(p, x, want, now);
	while (granted < n && !full) {
		full = try_grant(p, o, x, now, &grants[granted]);
		granted += !full;
	}
	memset(verdicts, VERDICT_GRANTED, granted);
	memset(verdicts + granted, VERDICT_FULL, n - granted);
	p->count.full += n - granted;
	if (full == FULL_QUOTA)
		p->count.quota += n - granted;
	*ret_full = full;
	return (int)granted;
}

/* The end of being unnamed; its owner is charged no more. */
static void leave(struct pool *p, struct pool_owner *o, uint32_t d)
{
	extent_unpack(block_extent(p, d));
	owner_discharge_unnamed(p, o, d);
}

void unnamed_free(struct pool *p, struct pool_owner *o, uint32_t d)
{
	leave(p, o, d);
	desc_free(&p->control, d);
	block_release(p, d, DESC_RESERVED, 0);
}

void unnamed_void(struct pool *p, struct pool_owner *o, uint32_t d)
{
	leave(p, o, d);
	desc_set_state(&p->control, d, DESC_QUARANTINE);
	block_count(p, d, DESC_RESERVED, DESC_QUARANTINE);
	owner_charge_quarantine(p, o, d);
	p->count.quarantined++;
}

/* A chain on its way through pool_commit_named. */
struct naming {
	struct pool_owner *o;
	uint64_t now;
	uint32_t tip;            /* the block that the next one goes below, or DESC_NONE */
	enum proto_verdict rest; /* what the next one gets, unless it is PRESENT */
};

/* The name of d is free, and its place in the index claimed. */
static void name(struct pool *p, const struct naming *n, uint32_t d, const struct block_key *key)
{
	struct desc_identity id = { .key = *key, .parent = n->tip };

	if (n->tip != DESC_NONE)
		id.depth = load_relaxed(&p->control.desc[n->tip].depth) + 1;
	leave(p, n->o, d);
	desc_name(&p->control, d, &id);
	block_hang(p, d);
}

/* Whether the chain may go on below its tip with a block of that namespace. */
static int fits_below(const struct pool *p, uint32_t tip, const struct namespace *ns)
{
	if (tip == DESC_NONE)
		return 1;
	return block_state(p, tip) == DESC_COMMITTED && block_namespace(p, tip) == ns;
}

static enum proto_verdict commit_unnamed(struct pool *p, struct naming *n, uint32_t d,
					 const struct block_key *key, uint32_t crc)
{
	uint64_t bucket;

	if (!fits_below(p, n->tip, block_namespace(p, d)))
		return VERDICT_NO_PARENT;
	if (!index_claim(&p->index, key, &bucket))
		return VERDICT_FULL;
	name(p, n, d, key);
	reserve_publish(p, n->o, d, key, bucket, crc, n->now);
	return VERDICT_COMMITTED;
}

/* A block that the writer reserved under its key already, among those that it did not. */
static enum proto_verdict commit_keyed(struct pool *p, struct naming *n, uint32_t d, uint64_t gen,
				       const struct block_key *key, uint32_t crc)
{
	struct block_key has = desc_key(&p->control, d);

	if (memcmp(&has, key, sizeof(has)))
		return VERDICT_NOT_OWNER;
	return pool_commit(p, n->o, d, gen, crc, n->now);
}

/* What is under the key of d, which is unnamed: VERDICT_NONE for nothing. */
static enum proto_verdict look(const struct pool *p, uint32_t d, uint32_t under)
{
	if (under == DESC_NONE)
		return VERDICT_NONE;
	if (block_namespace(p, under) != block_namespace(p, d))
		return VERDICT_FULL;
	return block_state(p, under) == DESC_COMMITTED ? VERDICT_PRESENT : VERDICT_BUSY;
}

static enum proto_verdict commit_one(struct pool *p, struct naming *n, uint32_t d, uint64_t gen,
				     const struct block_key *key, uint32_t crc)
{
	enum proto_verdict v = reserve_check(p, n->o, d, gen);

	if (v)
		return v;
	if (block_state(p, d) == DESC_QUARANTINE)
		return VERDICT_STALE;
	if (!unnamed_is(&p->block[d]))
		return commit_keyed(p, n, d, gen, key, crc);
	v = look(p, d, block_find(p, key));
	if (v == VERDICT_PRESENT)
		return v;
	if (n->rest)
		return n->rest;
	return v ? v : commit_unnamed(p, n, d, key, crc);
}

/*
 * What v of the block under key means for the next one. Also where this one is lost (STALE), the
 * chain goes on if it is there.
 */
static void go_on(struct pool *p, struct naming *n, const struct block_key *key,
		  enum proto_verdict v)
{
	uint32_t d = block_find(p, key);

	p->count.duplicates += v == VERDICT_PRESENT;
	p->count.busy += v == VERDICT_BUSY;
	p->count.full += v == VERDICT_FULL;
	/* FULL: what is under that key is another namespace's. */
	if (v != VERDICT_FULL && d != DESC_NONE && block_state(p, d) == DESC_COMMITTED) {
		n->tip = d;
		n->rest = VERDICT_NONE;
		return;
	}
	n->rest = v == VERDICT_FULL || v == VERDICT_BUSY ? v : VERDICT_NO_PARENT;
}

void pool_commit_named(struct pool *p, struct pool_owner *o, const struct pool_names *names,
		       uint64_t now, uint8_t *verdicts)
{
	struct naming x = { .o = o, .now = now, .tip = DESC_NONE };

	if (names->parent) {
		x.tip = block_find(p, names->parent);
		if (x.tip == DESC_NONE)
			x.rest = VERDICT_NO_PARENT;
	}
	for (uint32_t i = 0; i < names->n; i++) {
		const struct block_key *key = &names->keys[i];
		enum proto_verdict v =
			commit_one(p, &x, names->desc[i], names->gen[i], key, names->crc[i]);

		verdicts[i] = (uint8_t)v;
		go_on(p, &x, key, v);
	}
}
