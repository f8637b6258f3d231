/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/model.h"
#include "daemon/reserve.h"
#include "daemon/room.h"
#include "daemon/unnamed.h"
#include "shm/desc.h"

/* Keys whose places are loaded together. */
#define WINDOW 32u

/* Room is made for so many keys at a time, all that come in one request. */
#define PART 1024u

/* A run on its way through pool_reserve. */
struct run {
	struct pool_owner *owner;
	struct namespace *ns;
	const struct block_key *keys;
	uint32_t n;
	uint64_t now;
	uint32_t tip;            /* the block that the next key goes below, or DESC_NONE */
	enum proto_verdict rest; /* what every deeper key gets, VERDICT_NONE for no such thing */
	enum proto_full full;
	uint8_t *verdicts;
	struct pool_grant *grants;
	uint32_t granted;
	uint32_t roomy; /* room was made for the keys before this one */
};

static void say(struct pool *p, struct run *r, uint32_t i, enum proto_verdict v)
{
	r->verdicts[i] = (uint8_t)v;
	p->count.duplicates += v == VERDICT_PRESENT;
	p->count.busy += v == VERDICT_BUSY;
	p->count.full += v == VERDICT_FULL;
	p->count.quota += v == VERDICT_FULL && r->full == FULL_QUOTA;
}

/* The first key of the run that finds no place; a reader breaks off at this one. */
static void note_refused(struct pool *p, const struct run *r, uint32_t i)
{
	ghost_renew(&p->ghost, &r->keys[i], r->ns->number,
		    r->full == FULL_QUOTA ? MISS_QUOTA : MISS_FULL, r->now);
}

static enum proto_verdict full(struct run *r, enum proto_full why)
{
	r->full = why;
	return r->rest = VERDICT_FULL;
}

/* What can be said of a key without granting it; VERDICT_NONE: it is not there. */
static enum proto_verdict look(struct pool *p, struct run *r, uint32_t i)
{
	uint32_t d = block_find(p, &r->keys[i]);

	if (d == DESC_NONE)
		return r->rest;
	if (block_namespace(p, d) != r->ns)
		return r->rest ? r->rest : full(r, FULL_INDEX);
	if (block_state(p, d) == DESC_COMMITTED) {
		r->tip = d;
		return VERDICT_PRESENT;
	}
	if (!r->rest)
		r->rest = VERDICT_BUSY;
	return r->rest;
}

/* A descriptor and a slot are free. */
static void grant(struct pool *p, struct run *r, uint32_t d, uint64_t bucket, uint32_t i)
{
	struct desc_identity id = {
		.key = r->keys[i],
		.parent = r->tip,
		.ns = r->ns->number,
		.depth = r->tip == DESC_NONE ? 0 : load_relaxed(&p->control.desc[r->tip].depth) + 1,
		.writer = r->owner->session,
	};
	uint32_t slot = extent_take(&p->extents, &r->ns->extents, d);
	uint64_t gen = desc_reserve(&p->control, d, &id, TIER_HOST, slot);

	extent_of(&p->extents, slot)->busy++;
	block_set_time(p, d, r->now);
	keymap_add(&p->keymap, &id.key, d, bucket == index_place(&p->control, &id.key).bucket[1]);
	block_hang(p, d);
	block_count(p, d, DESC_FREE, DESC_RESERVED);
	owner_charge(p, r->owner, d);
	r->grants[r->granted++] = (struct pool_grant){ .desc = d, .slot = slot, .gen = gen };
	r->tip = d;
}

/* The index place goes with slot and descriptor: all three or none. */
static enum proto_verdict try_grant(struct pool *p, struct run *r, uint32_t i)
{
	uint64_t bucket;
	uint32_t d;

	if (!owner_allowance(p, r->owner, r->ns))
		return full(r, FULL_QUOTA);
	if (!r->ns->extents.n_free || keymap_reserve(&p->keymap))
		return full(r, FULL_POOL);
	d = block_new(p);
	if (d == DESC_NONE)
		return full(r, FULL_DESCRIPTORS);
	if (!index_claim(&p->index, &r->keys[i], &bucket)) {
		block_delete(p, d);
		return full(r, FULL_INDEX);
	}
	grant(p, r, d, bucket, i);
	return VERDICT_GRANTED;
}

/* Keys of a run that were met, by their hashes; half full at most. */
struct keyset {
	uint16_t at[2 * PART]; /* place in the run + 1, 0: none */
};

/* Returns 0 when an equal key is in it. */
static int keyset_add(struct keyset *s, const struct pool *p, const struct block_key *keys,
		      uint32_t i)
{
	uint32_t at = keymap_hash(&p->keymap, &keys[i]) % ARRAY_SIZE(s->at);

	for (; s->at[at]; at = (at + 1) % ARRAY_SIZE(s->at))
		if (!memcmp(&keys[s->at[at] - 1], &keys[i], sizeof(*keys)))
			return 0;
	s->at[at] = (uint16_t)(i + 1);
	return 1;
}

static void near_window(const struct pool *p, const struct block_key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < MIN(n, WINDOW); i++)
		pool_near_key(p, &keys[i]);
}

/* How many of n keys can be granted: those that are absent, up to one that is not to be had. */
static uint32_t count_absent(const struct pool *p, const struct run *r,
			     const struct block_key *keys, uint32_t n)
{
	struct keyset met = { { 0 } };
	uint32_t absent = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t d;

		if (i % WINDOW == 0)
			near_window(p, &keys[i], n - i);
		d = block_find(p, &keys[i]);
		if (d == DESC_NONE) {
			if (!keyset_add(&met, p, keys, i))
				break;
			absent++;
		} else if (block_namespace(p, d) != r->ns || block_state(p, d) != DESC_COMMITTED) {
			break;
		}
	}
	return absent;
}

/*
 * Room for the keys from i on, the first of which is not there; for no more than can be granted,
 * since a run of one key over and over must not cost others their blocks. What the run hangs below
 * must not go to make it: the tip is held, and what is above it is no leaf then.
 */
static void make_room(struct pool *p, struct run *r, uint32_t i)
{
	uint32_t part = MIN(r->n - i, PART), want = MIN(part, owner_allowance(p, r->owner, r->ns));

	r->roomy = i + part;
	if (want <= r->ns->extents.n_free && want <= pool_free_blocks(p))
		return;
	want = MIN(want, count_absent(p, r, &r->keys[i], part));
	p->held = r->tip;
	if (r->tip != DESC_NONE)
		lru_remove(&r->ns->lru, r->tip);
	room_make(p, r->ns, want, r->now);
	p->held = DESC_NONE;
	block_leaf(p, r->tip);
}

static void run_keys(struct pool *p, struct run *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		enum proto_verdict v;

		if (i % WINDOW == 0)
			near_window(p, &r->keys[i], r->n - i);
		v = look(p, r, i);
		if (v == VERDICT_NONE) {
			if (i >= r->roomy)
				make_room(p, r, i);
			v = try_grant(p, r, i);
			if (v == VERDICT_FULL)
				note_refused(p, r, i);
		}
		say(p, r, i, v);
	}
}

/* Finds the block that the run goes below. 0 when no run may go there. */
static int run_parent(struct pool *p, struct run *r, const struct block_key *parent)
{
	uint32_t d;

	r->tip = DESC_NONE;
	if (!parent)
		return 1;
	d = block_find(p, parent);
	if (d == DESC_NONE || block_namespace(p, d) != r->ns)
		return 0;
	if (block_state(p, d) != DESC_COMMITTED && !owner_has(p, r->owner, d))
		return 0;
	r->tip = d;
	return 1;
}

int pool_reserve(struct pool *p, struct pool_owner *o, uint32_t ns, const struct block_key *parent,
		 const struct block_key *keys, uint32_t n, uint64_t now, uint8_t *verdicts,
		 struct pool_grant *grants, uint32_t *ret_full)
{
	struct run r = {
		.owner = o,
		.ns = namespace_get(p, ns),
		.keys = keys,
		.n = n,
		.now = now,
		.verdicts = verdicts,
		.grants = grants,
	};

	if (!r.ns)
		return -ENOENT;
	r.ns->used = MAX(r.ns->used, now);
	owner_enter(p, o);
	if (run_parent(p, &r, parent))
		run_keys(p, &r);
	else
		for (uint32_t i = 0; i < n; i++)
			say(p, &r, i, VERDICT_NO_PARENT);
	/* The deepest block that was there was used; the whole prefix with it. */
	if (r.tip != DESC_NONE && block_state(p, r.tip) == DESC_COMMITTED)
		block_touch(p, r.tip, now);
	*ret_full = r.full;
	return (int)r.granted;
}

enum proto_verdict reserve_check(const struct pool *p, const struct pool_owner *o, uint32_t d,
				 uint64_t gen)
{
	enum desc_state s;

	if (d >= p->cfg.max_blocks)
		return VERDICT_NOT_OWNER;
	s = block_state(p, d);
	if (block_gen(p, d) != gen || s == DESC_FREE)
		return VERDICT_STALE;
	if (!owner_has(p, o, d))
		return VERDICT_NOT_OWNER;
	return s == DESC_RESERVED || s == DESC_QUARANTINE ? VERDICT_NONE : VERDICT_STALE;
}

/* The reservation is over: its key is in the map no more. Returns the bucket of its promise. */
static uint64_t unmap(struct pool *p, uint32_t d, const struct block_key *key)
{
	return index_place(&p->control, key).bucket[keymap_remove(&p->keymap, key, d)];
}

void reserve_publish(struct pool *p, struct pool_owner *o, uint32_t d,
		     const struct block_key *key, uint64_t bucket, uint32_t crc, uint64_t now)
{
	desc_commit(&p->control, d, TIER_HOST, crc);
	index_publish(&p->index, bucket, key, d, block_gen(p, d));
	block_extent(p, d)->busy--;
	block_count(p, d, DESC_RESERVED, DESC_COMMITTED);
	owner_cached(p, o, d);
	block_touch(p, d, now);
	block_leaf(p, d);
	p->count.published++;
	p->woken = 1;
}

enum proto_verdict pool_commit(struct pool *p, struct pool_owner *o, uint32_t desc, uint64_t gen,
			       uint32_t crc, uint64_t now)
{
	enum proto_verdict v = reserve_check(p, o, desc, gen);
	struct block_key key;
	uint32_t parent;

	if (v)
		return v;
	if (block_state(p, desc) == DESC_QUARANTINE)
		return VERDICT_STALE;
	if (unnamed_is(&p->block[desc]))
		return VERDICT_NO_PARENT;
	parent = block_parent(p, desc);
	if (parent != DESC_NONE && block_state(p, parent) != DESC_COMMITTED)
		return VERDICT_NO_PARENT;
	key = desc_key(&p->control, desc);
	owner_discharge(p, o, desc);
	reserve_publish(p, o, desc, &key, unmap(p, desc, &key), crc, now);
	return VERDICT_COMMITTED;
}

/* The reservation came to nothing; d is loose. */
static void unreserve(struct pool *p, uint32_t d)
{
	struct block_key key = desc_key(&p->control, d);

	index_unclaim(&p->index, unmap(p, d, &key));
	p->woken = 1;
}

static int abort_one(struct pool *p, uint32_t d, void *owner)
{
	unreserve(p, d);
	owner_discharge(p, owner, d);
	desc_free(&p->control, d);
	block_release(p, d, DESC_RESERVED, 0);
	return 0;
}

enum proto_verdict pool_abort(struct pool *p, struct pool_owner *o, uint32_t desc, uint64_t gen)
{
	enum proto_verdict v = reserve_check(p, o, desc, gen);
	uint32_t parent;

	if (v)
		return v;
	if (block_state(p, desc) == DESC_QUARANTINE) {
		reserve_unquarantine(p, desc, 0);
		return VERDICT_FREED;
	}
	if (unnamed_is(&p->block[desc])) {
		unnamed_free(p, o, desc);
		return VERDICT_FREED;
	}
	parent = block_parent(p, desc);
	block_prune(p, desc, abort_one, o);
	block_leaf(p, parent);
	return VERDICT_FREED;
}

void reserve_void(struct pool *p, uint32_t d, enum miss_reason why, uint64_t now)
{
	block_note_gone(p, d, why, now);
	unreserve(p, d);
	desc_set_state(&p->control, d, DESC_QUARANTINE);
	block_count(p, d, DESC_RESERVED, DESC_QUARANTINE);
	owner_quarantine(p, d);
	p->count.quarantined++;
}

struct voided {
	uint32_t n;
	uint64_t now;
};

static int void_one(struct pool *p, uint32_t d, void *arg)
{
	struct voided *v = arg;

	reserve_void(p, d, MISS_WRITER_DIED, v->now);
	v->n++;
	return 0;
}

uint32_t reserve_void_tree(struct pool *p, uint32_t top, uint64_t now)
{
	uint32_t parent = block_parent(p, top);
	struct voided v = { .now = now };

	block_prune(p, top, void_one, &v);
	block_leaf(p, parent);
	return v.n;
}

void reserve_unquarantine(struct pool *p, uint32_t d, int late)
{
	owner_unquarantine(p, d);
	desc_free(&p->control, d);
	block_release(p, d, DESC_QUARANTINE, late);
}
