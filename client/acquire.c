/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hit path: kvpool_acquire, kvpool_extend and what they are made of. Nothing here may lock,
 * allocate, make a system call or initialise anything on first use.
 *
 * An acquire is an extend of an empty lease, so there is one path:
 *
 * 	find	how deep the chain is cached beyond what the lease has (lookup_scan, _gallop)
 * 	pin	the deepest block, by the hazard word that the lease does not use now
 * 	resolve	the slots of the new blocks, by their parent links
 * 	take	the lease is longer: clear the other word
 * 	tell	one touch record and the counters
 */
#include <string.h>

#include "client/hash.h"
#include "client/lease.h"
#include "client/ns.h"
#include "client/prompt.h"

#define TIER TIER_HOST

/* After how many keys the index is asked first, and at most: what is not cached is not hashed. */
#define CHUNK_FIRST 8u
#define CHUNK_MAX   64u
#define GALLOPS_MAX 3u

/* What is asked for: the blocks of a prompt as tokens, or as keys. */
struct ask {
	const int32_t *tokens; /* NULL: keys are given */
	const struct block_key *keys;
	size_t n_blocks; /* that may be offered, from the start of the prompt */
	size_t n_tokens;
	uint32_t tail; /* tokens behind those blocks */
	enum kvpool_reason full; /* the reason when all n_blocks are there */
};

/* What came of it. */
struct answer {
	uint32_t depth;
	enum kvpool_reason reason;
	struct block_key missed; /* the first key that was not found */
	int shared;              /* the deepest block is another session's */
};

static struct ask ask_for_tokens(const struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens)
{
	size_t usable = kvpool_usable_tokens(n_tokens, ns->block_tokens);
	struct ask a = { .tokens = tokens, .n_tokens = n_tokens };

	a.n_blocks = usable / ns->block_tokens;
	a.tail = (uint32_t)(n_tokens - usable);
	if (!a.n_blocks)
		a.full = KVPOOL_BELOW_MIN;
	else
		a.full = usable + 1 == n_tokens ? KVPOOL_COMPLETE : KVPOOL_PARTIAL_BLOCK;
	return a;
}

static struct ask ask_for_keys(const struct kvpool_ns *ns, const struct kvpool_key *keys,
			       size_t n_keys)
{
	return (struct ask){
		.keys = (const struct block_key *)keys,
		.n_blocks = n_keys,
		.n_tokens = n_keys * ns->block_tokens,
		.full = n_keys ? KVPOOL_COMPLETE : KVPOOL_BELOW_MIN,
	};
}

static struct ask ask_for_chain(const struct kvpool_chain *c)
{
	struct ask a = ask_for_tokens(c->ns, NULL, c->n_tokens);

	a.keys = (const struct block_key *)kvpool_chain_keys(c);
	return a;
}

/* The last one is current until it is retired: then there is another one, or none. */
static struct attach *current_attach(struct kvpool *p)
{
	struct attach *a, *last = NULL;

	/* Acquire: pairs with the release in publish. */
	while ((a = load_acquire(&p->current)) && a != last) {
		if (attach_try_get(a)) {
			if (likely(!attach_is_given_up(a)))
				return a;
			attach_put(a);
		}
		last = a;
	}
	return NULL;
}

/* Only the depth is wanted, and there are keys to gallop over. */
static int is_gallop(const struct kvpool_lease *l, const struct ask *ask)
{
	return l->depth_only && !ask->tokens;
}

/* Hashes and probes in turns. Returns the depth; notes of [from, depth) are filled. */
static uint32_t find_tokens(struct kvpool_lease *l, const struct ask *ask, uint32_t from,
			    uint32_t limit, struct block_key *missed)
{
	struct block_key keys[CHUNK_MAX], after = from ? l->last : l->ns->seed;
	uint32_t block_tokens = l->ns->block_tokens, chunk = CHUNK_FIRST;

	while (from < limit) {
		uint32_t n = MIN(chunk, limit - from), found;

		hash_blocks(&after, ask->tokens + (size_t)from * block_tokens, block_tokens, n,
			    keys);
		found = lookup_scan(&l->attach->control, keys, n, TIER, l->notes + from);
		from += found;
		if (found < n) {
			*missed = keys[found];
			return from;
		}
		after = keys[n - 1];
		chunk = MIN(4 * chunk, CHUNK_MAX);
	}
	return from;
}

static uint32_t find_keys(struct kvpool_lease *l, const struct ask *ask, uint32_t from,
			  uint32_t limit, struct block_key *missed)
{
	const struct block_key *keys = ask->keys + from;
	struct lookup_note *notes = l->notes + from;
	uint32_t n = limit - from, found;

	if (is_gallop(l, ask))
		found = lookup_gallop(&l->attach->control, keys, n, TIER, notes);
	else
		found = lookup_scan(&l->attach->control, keys, n, TIER, notes);
	if (found < n)
		*missed = keys[found];
	return from + found;
}

/*
 * Keys of one namespace never equal those of another one, unless a caller mixes them up: then the
 * block that is found may be smaller than this namespace's.
 */
static int is_of_namespace(const struct kvpool_lease *l, uint32_t depth)
{
	uint32_t d = l->notes[depth - 1].desc;

	return load_relaxed(&l->attach->control.desc[d].ns) == l->ns_number;
}

/*
 * Finds and pins beyond from. Returns the depth, which is from when nothing was found or eviction
 * won each time, which *ret_raced tells.
 */
static uint32_t find_and_pin(struct kvpool_lease *l, const struct ask *ask, uint32_t from,
			     uint32_t limit, struct block_key *missed, int *ret_raced)
{
	const struct control *c = &l->attach->control;
	/* A gallop knows one block: when that one is lost, it searches again. */
	unsigned int tries = is_gallop(l, ask) ? GALLOPS_MAX : 1;

	*ret_raced = 0;
	while (tries--) {
		uint32_t depth = ask->tokens ? find_tokens(l, ask, from, limit, missed)
					     : find_keys(l, ask, from, limit, missed);
		uint32_t n = depth - from;

		*ret_raced = 0;
		if (!n)
			return from;
		__builtin_prefetch(&c->aux[l->notes[depth - 1].desc]);
		n = lookup_pin(c, lease_hazard(l, 1), l->notes + from, n, is_gallop(l, ask) ? 1 : n,
			       TIER);
		if (n && likely(is_of_namespace(l, from + n)))
			return from + n;
		if (n) {
			lookup_unpin(lease_hazard(l, 1));
			return from;
		}
		*ret_raced = 1;
	}
	return from;
}

/* True when every slot of the new blocks lies inside the pool, as it does in a sound region. */
static int slots_are_inside(const struct kvpool_lease *l, uint32_t from, uint32_t depth)
{
	uint32_t highest = 0;

	for (uint32_t i = from; i < depth; i++)
		highest = MAX(highest, l->notes[i].slot);
	return slot_offset(highest) + l->ns->block_bytes <= l->attach->pool_bytes;
}

/* Resolves what was pinned. Returns false when it is no continuation of what the lease has. */
static int resolve(struct kvpool_lease *l, uint32_t from, uint32_t depth)
{
	if (l->depth_only)
		return 1;
	return lookup_resolve(&l->attach->control, l->notes, from, depth, TIER) == 0 &&
	       slots_are_inside(l, from, depth);
}

/* The lease is longer now: the new pin holds all of it. */
static void take(struct kvpool_lease *l, uint32_t depth, struct answer *ret)
{
	const struct control *c = &l->attach->control;
	uint32_t d = l->notes[depth - 1].desc;

	if (l->depth)
		lookup_unpin(lease_hazard(l, 0));
	l->word ^= 1;
	l->depth = depth;
	for (unsigned int i = 0; i < KEY_WORDS; i++)
		l->last.w[i] = load_relaxed(&c->desc[d].key[i]);
	ret->depth = depth;
	ret->shared = load_relaxed(&c->aux[d].writer) != l->attach->session.head->session;
}

/* Makes the lease, which is attached, as long as it can be. */
static void grow(struct kvpool_lease *l, const struct ask *ask, struct answer *ret)
{
	uint32_t from = l->depth, depth;
	uint32_t limit = (uint32_t)MIN(ask->n_blocks, (size_t)l->max_blocks);
	int raced = 0;

	ret->depth = from;
	depth = limit > from ? find_and_pin(l, ask, from, limit, &ret->missed, &raced) : from;
	if (depth > from && !resolve(l, from, depth)) {
		lookup_unpin(lease_hazard(l, 1));
		raced = 1;
	} else if (depth > from) {
		take(l, depth, ret);
	}
	if (raced)
		ret->reason = KVPOOL_RACED;
	else if (ret->depth < limit)
		ret->reason = KVPOOL_NOT_CACHED;
	else
		ret->reason = limit < ask->n_blocks ? KVPOOL_PINS : ask->full;
}

static uint32_t clamp32(uint64_t n)
{
	return (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
}

static void push_touch(const struct kvpool_lease *l, const struct ask *ask, const struct answer *r,
		       uint64_t asked, uint64_t hit)
{
	struct touch t = {
		.desc = l->depth ? l->notes[l->depth - 1].desc : DESC_NONE,
		.ns = l->ns_number,
		.asked_tokens = clamp32(asked),
		.hit_tokens = clamp32(hit),
		.reason_tail = touch_reason_tail(r->reason, ask->tail),
		.from_token = clamp32(ask->n_tokens - asked),
		.miss_key = { r->missed.w[0], r->missed.w[1], r->missed.w[2], r->missed.w[3] },
	};

	touch_push(&l->attach->session, &t);
}

/* Where it was looked up, or in the handle when it could not be; asked is not 0. */
static void tell(struct kvpool_lease *l, const struct ask *ask, const struct answer *r,
		 uint64_t asked, uint64_t hit)
{
	struct kvpool *p = l->pool;
	struct attach *a = l->attach;

	handle_count(p, a, COUNTER_LOOKUPS, 1);
	handle_count(p, a, COUNTER_ASKED_TOKENS, asked);
	if (hit)
		handle_count(p, a, COUNTER_HIT_TOKENS, hit);
	if (asked - hit)
		handle_count(p, a, COUNTER_MISS_TOKENS, asked - hit);
	if (r->shared)
		handle_count(p, a, COUNTER_SHARED_TOKENS, hit);
	if (r->reason == KVPOOL_RACED)
		handle_count(p, a, COUNTER_RACED, 1);
	if (a)
		push_touch(l, ask, r, asked, hit);
}

/*
 * Attaches an empty lease. Returns 0, or the reason why it cannot be used: it may be attached all
 * the same then, to tell the daemon so.
 */
static enum kvpool_reason lease_attach(struct kvpool_lease *l)
{
	struct attach *a = current_attach(l->pool);

	if (!a)
		return KVPOOL_NO_DAEMON;
	l->attach = a;
	l->ns_number = ns_number(l->ns, a);
	if (l->ns_number == NS_NONE)
		return ns_reason(l->ns, a);
	if (2 * l->index + 1 >= a->session.hazard_count)
		return KVPOOL_PINS;
	return KVPOOL_COMPLETE;
}

/* Extends a lease, which may be empty. Returns its tokens. */
static size_t extend(struct kvpool_lease *l, const struct ask *ask)
{
	uint64_t had = (uint64_t)l->depth * l->ns->block_tokens;
	uint64_t asked = ask->n_tokens > had ? ask->n_tokens - had : 0;
	struct answer r = { .depth = l->depth };

	if (!l->attach)
		r.reason = lease_attach(l);
	else if (attach_is_given_up(l->attach))
		r.reason = KVPOOL_NO_DAEMON;
	if (r.reason == KVPOOL_COMPLETE)
		grow(l, ask, &r);
	if (asked)
		tell(l, ask, &r, asked, (uint64_t)r.depth * l->ns->block_tokens - had);
	if (!l->depth && l->attach) {
		attach_put(l->attach);
		l->attach = NULL;
	}
	l->reason = r.reason;
	return (size_t)l->depth * l->ns->block_tokens;
}

/* Empties the lease and makes it one of ns. False: it cannot be, and l->reason says why. */
static int rebind(struct kvpool_lease *l, struct kvpool_ns *ns, int depth_only)
{
	kvpool_release(l);
	if (handle_is_forked(l->pool))
		return 0;
	if (ns->pool != l->pool) {
		l->reason = KVPOOL_NAMESPACE;
		return 0;
	}
	if (ns != l->ns) {
		ns_ref(ns);
		ns_put(l->ns);
		l->ns = ns;
	}
	l->depth_only = depth_only;
	return 1;
}

size_t kvpool_acquire(struct kvpool_ns *ns, struct kvpool_lease *l, const int32_t *tokens,
		      size_t n_tokens, unsigned flags)
{
	struct ask ask = ask_for_tokens(ns, tokens, n_tokens);

	return rebind(l, ns, 0) ? extend(l, &ask) : 0;
}

size_t kvpool_acquire_keys(struct kvpool_ns *ns, struct kvpool_lease *l,
			   const struct kvpool_key *keys, size_t n_keys, unsigned flags)
{
	struct ask ask = ask_for_keys(ns, keys, n_keys);

	return rebind(l, ns, flags & KVPOOL_DEPTH_ONLY) ? extend(l, &ask) : 0;
}

/* A lease that was never acquired belongs to no namespace, and a child's to nobody. */
static int can_extend(const struct kvpool_lease *l)
{
	return l->ns && !handle_is_forked(l->pool);
}

size_t kvpool_extend(struct kvpool_lease *l, const int32_t *tokens, size_t n_tokens)
{
	struct ask ask;

	if (!can_extend(l))
		return 0;
	ask = ask_for_tokens(l->ns, tokens, n_tokens);
	return extend(l, &ask);
}

size_t kvpool_extend_keys(struct kvpool_lease *l, const struct kvpool_key *keys, size_t n_keys)
{
	struct ask ask;

	if (!can_extend(l))
		return 0;
	ask = ask_for_keys(l->ns, keys, n_keys);
	return extend(l, &ask);
}

size_t kvpool_acquire_chain(const struct kvpool_chain *c, struct kvpool_lease *l, unsigned flags)
{
	struct ask ask = ask_for_chain(c);

	return rebind(l, c->ns, flags & KVPOOL_DEPTH_ONLY) ? extend(l, &ask) : 0;
}

size_t kvpool_extend_chain(struct kvpool_lease *l, const struct kvpool_chain *c)
{
	struct ask ask;

	if (!can_extend(l))
		return 0;
	if (memcmp(&c->ns->seed, &l->ns->seed, sizeof(l->ns->seed))) {
		l->reason = KVPOOL_NAMESPACE;
		return kvpool_lease_tokens(l);
	}
	ask = ask_for_chain(c);
	return extend(l, &ask);
}
