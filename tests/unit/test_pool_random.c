/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anything in any order, against a reference that knows no policy: it knows which keys are there
 * and whose, what is pinned, where somebody may still read or write, and which blocks the pool may
 * let go in which call. After every step the two are compared, and the model is audited every so
 * often.
 *
 * 	test_pool_random [SEED [STEPS]]
 *
 * prints the seed and step of a failure on stderr and aborts.
 */
#undef NDEBUG
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "shm/lookup.h"
#include "tests/pool/fixture.h"

#define GRANULE KIB(16)
#define SPACES 4u
#define NODES  400u /* keys of each namespace, as a tree */
#define OWNERS 5u
#define READERS (FIXTURE_SESSIONS * 8)
#define GHOSTS 4096u
#define DEPTH  64u
#define OWN    512u

enum node_state {
	ABSENT,
	WRITING,
	CACHED,
};

struct node {
	uint32_t parent; /* smaller number, or NODES for a root */
	struct block_key key;
	enum node_state state;
	uint32_t owner; /* WRITING */
	uint32_t desc, slot;
	uint64_t gen, since;
};

/* A block without a key: where a writer may still write. */
struct ghost {
	uint32_t ns, owner, desc, slot;
	uint64_t gen, until; /* UINT64_MAX: its owner lives */
};

/* An unnamed slot. */
struct own {
	uint32_t ns, owner;
	struct pool_grant grant;
};

struct reader {
	int pinned;
	uint32_t session, hazard;
	uint32_t ns, n;
	struct lookup_note chain[DEPTH];
};

static struct fixture f;
static uint64_t rng, seed, step;
static uint32_t ns_number[SPACES];
static const uint64_t block_bytes[SPACES] = { 4096, 8192, 12288, 4096 };
static struct node nodes[SPACES][NODES];
static struct pool_owner owners[OWNERS];
static uint64_t next_session = 1;
static struct ghost ghosts[GHOSTS];
static uint32_t n_ghosts;
static struct own own[OWN];
static uint32_t n_own, n_named;
static struct reader readers[READERS];
static uint8_t *reading, *writing; /* by unit of the pool */

static const struct pool_config config = {
	.pool_bytes = GRANULE * 48,
	.max_bytes = GRANULE * 64,
	.max_blocks = 256,
	.max_namespaces = SPACES,
	.granule_shift = 14,
	.reservation_ns = 5 * NSEC_PER_SEC,
	.quarantine_ns = NSEC_PER_SEC,
	.owner_reserved_bytes = KIB(300),
	.owner_unnamed_bytes = KIB(96),
};

#define check(cond)                                                                            \
	do {                                                                                   \
		if (!(cond)) {                                                                 \
			fprintf(stderr, "seed %llu step %llu: %s:%d: %s\n",                    \
				(unsigned long long)seed, (unsigned long long)step, __FILE__,  \
				__LINE__, #cond);                                              \
			abort();                                                               \
		}                                                                              \
	} while (0)

static uint32_t roll(uint32_t n)
{
	rng = mix64(rng + 0x9e3779b97f4a7c15ull);
	return (uint32_t)(rng >> 33) % n;
}

static uint32_t units(uint32_t s)
{
	return (uint32_t)(ALIGN_UP(block_bytes[s], SLOT_UNIT) >> SLOT_SHIFT);
}

static void mark(uint8_t *map, uint32_t s, uint32_t slot, int add)
{
	for (uint32_t u = slot; u < slot + units(s); u++)
		map[u] = (uint8_t)(map[u] + add);
}

/* Nobody reads or writes there. */
static void expect_unused(uint64_t from, uint64_t n)
{
	for (uint64_t u = from; u < from + n; u++)
		check(!reading[u] && !writing[u]);
}

/* ---- the reference's transitions ---- */

static void became_writing(uint32_t s, struct node *x, uint32_t owner, const struct pool_grant *g)
{
	expect_unused(g->slot, units(s));
	mark(writing, s, g->slot, 1);
	x->state = WRITING;
	x->owner = owner;
	x->desc = g->desc;
	x->slot = g->slot;
	x->gen = g->gen;
	x->since = f.now;
}

static void became_ghost(uint32_t s, struct node *x)
{
	check(n_ghosts < GHOSTS);
	ghosts[n_ghosts++] = (struct ghost){
		.ns = s, .owner = x->owner, .desc = x->desc, .slot = x->slot, .gen = x->gen,
		.until = UINT64_MAX,
	};
	x->state = ABSENT;
}

static void ghost_went(uint32_t i)
{
	mark(writing, ghosts[i].ns, ghosts[i].slot, -1);
	ghosts[i] = ghosts[--n_ghosts];
}

static uint32_t children(uint32_t s, uint32_t i, enum node_state state)
{
	uint32_t n = 0;

	for (uint32_t k = i + 1; k < NODES; k++)
		n += nodes[s][k].parent == i && nodes[s][k].state == state;
	return n;
}

/* WRITING nodes at i and below: void or freed. */
static void subtree_stops(uint32_t s, uint32_t i, int ghost)
{
	for (uint32_t k = i + 1; k < NODES; k++)
		if (nodes[s][k].parent == i && nodes[s][k].state == WRITING)
			subtree_stops(s, k, ghost);
	if (nodes[s][i].state != WRITING)
		return;
	if (ghost) {
		became_ghost(s, &nodes[s][i]);
		return;
	}
	mark(writing, s, nodes[s][i].slot, -1);
	nodes[s][i].state = ABSENT;
}

/* ---- comparing ---- */

static int is_read(uint32_t s, const struct node *x)
{
	for (uint32_t i = 0; i < READERS; i++) {
		const struct reader *r = &readers[i];

		for (uint32_t k = 0; r->pinned && r->ns == s && k < r->n; k++)
			if (r->chain[k].desc == x->desc && r->chain[k].slot == x->slot &&
			    word_gen(r->chain[k].word) == x->gen)
				return 1;
	}
	return 0;
}

/* What the pool may let go in a call. */
enum may {
	MAY_NOTHING = 0,
	MAY_DOOM = (1 << SPACES) - 1, /* by namespace: any of its blocks, with all below it */
	MAY_EVICT = 1 << SPACES,      /* cached blocks that nobody reads and nothing hangs below */
};

/* Namespaces of which a flush has not come to all blocks yet. */
static unsigned int flushing(void)
{
	unsigned int mask = 0;

	for (uint32_t s = 0; s < SPACES; s++)
		if (namespace_get(f.p, ns_number[s])->flushing)
			mask |= 1u << s;
	return mask;
}

static void compare_writing(uint32_t s, struct node *x, uint32_t d, unsigned int may)
{
	if (d == DESC_NONE && may >> s & 1 && block_state(f.p, x->desc) == DESC_QUARANTINE) {
		check(block_gen(f.p, x->desc) == x->gen);
		became_ghost(s, x);
		return;
	}
	check(d == x->desc && block_gen(f.p, d) == x->gen);
	check(block_state(f.p, d) == DESC_RESERVED);
}

static void compare_node(uint32_t s, uint32_t i, unsigned int may)
{
	struct node *x = &nodes[s][i];
	uint32_t d = fixture_find(&f, &x->key);

	if (x->state == ABSENT) {
		check(d == DESC_NONE);
	} else if (x->state == WRITING) {
		compare_writing(s, x, d, may);
	} else if (d != DESC_NONE) {
		check(d == x->desc && block_gen(f.p, d) == x->gen);
		check(block_state(f.p, d) == DESC_COMMITTED);
	} else {
		check(may & MAY_EVICT || may >> s & 1);
		check(!children(s, i, WRITING));
		if (!(may >> s & 1))
			check(!is_read(s, x));
		x->state = ABSENT;
	}
}

/* Children before their parents: what is below something that went must have gone. */
static void compare(unsigned int may)
{
	for (uint32_t s = 0; s < SPACES; s++)
		for (uint32_t i = NODES; i-- > 0;)
			compare_node(s, i, may);
	for (uint32_t s = 0; s < SPACES; s++)
		for (uint32_t i = 0; i < NODES; i++) {
			const struct node *x = &nodes[s][i];

			if (x->state == ABSENT || x->parent == NODES)
				continue;
			check(nodes[s][x->parent].state != ABSENT);
			check(x->state == WRITING || nodes[s][x->parent].state == CACHED);
		}
}

/* ---- steps ---- */

static uint32_t path_to(uint32_t s, uint32_t i, uint32_t *path)
{
	uint32_t rev[NODES], n = 0;

	for (; i != NODES; i = nodes[s][i].parent)
		rev[n++] = i;
	for (uint32_t k = 0; k < n; k++)
		path[k] = rev[n - 1 - k];
	return n;
}

static enum proto_verdict expected(uint32_t s, const struct node *x, enum proto_verdict *rest)
{
	if (x->state == CACHED)
		return VERDICT_PRESENT;
	if (*rest)
		return *rest;
	return x->state == WRITING ? (*rest = VERDICT_BUSY) : VERDICT_GRANTED;
}

static void expect_run(uint32_t s, uint32_t o, const uint32_t *path, uint32_t n)
{
	enum proto_verdict rest = VERDICT_NONE;
	uint32_t granted = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct node *x = &nodes[s][path[i]];
		enum proto_verdict v = expected(s, x, &rest);

		if (v == VERDICT_GRANTED && f.verdict[i] == VERDICT_FULL)
			v = rest = VERDICT_FULL;
		check(f.verdict[i] == v);
		if (v == VERDICT_GRANTED)
			became_writing(s, x, o, &f.grant[granted++]);
	}
	check((f.full != FULL_NONE) == (rest == VERDICT_FULL));
}

/* A run may start in the middle of a path. */
static void step_reserve(void)
{
	uint32_t s = roll(SPACES), o = roll(OWNERS), path[NODES], from, n, granted;
	struct block_key keys[NODES];
	const struct node *parent;

	n = path_to(s, roll(NODES), path);
	from = roll(3) ? 0 : roll(n);
	for (uint32_t i = 0; i < n; i++)
		keys[i] = nodes[s][path[i]].key;
	parent = from ? &nodes[s][path[from - 1]] : NULL;
	granted = fixture_reserve(&f, &owners[o], ns_number[s], parent ? &keys[from - 1] : NULL,
				  keys + from, n - from);
	if (parent && parent->state != CACHED && (parent->state != WRITING || parent->owner != o)) {
		for (uint32_t i = 0; i < n - from; i++)
			check(f.verdict[i] == VERDICT_NO_PARENT);
		check(!granted);
	} else {
		expect_run(s, o, path + from, n - from);
	}
	compare(MAY_EVICT);
}

static struct node *random_node(enum node_state state, uint32_t *ret_s, uint32_t *ret_i)
{
	uint32_t s = roll(SPACES), at = roll(NODES);

	for (uint32_t k = 0; k < NODES; k++) {
		uint32_t i = (at + k) % NODES;

		if (nodes[s][i].state == state) {
			*ret_s = s;
			*ret_i = i;
			return &nodes[s][i];
		}
	}
	return NULL;
}

static void commit_node(uint32_t s, struct node *x, uint32_t o)
{
	enum proto_verdict v = pool_commit(f.p, &owners[o], x->desc, x->gen, 1, f.now);

	if (x->owner != o) {
		check(v == VERDICT_NOT_OWNER);
	} else if (x->parent != NODES && nodes[s][x->parent].state != CACHED) {
		check(v == VERDICT_NO_PARENT);
	} else {
		check(v == VERDICT_COMMITTED);
		mark(writing, s, x->slot, -1);
		x->state = CACHED;
	}
}

static void step_commit(void)
{
	uint32_t s, i;
	struct node *x = random_node(WRITING, &s, &i);

	if (!x)
		return;
	if (!roll(4)) {
		commit_node(s, x, roll(OWNERS));
	} else { /* all that this owner writes there, parents first */
		for (uint32_t k = 0; k < NODES; k++)
			if (nodes[s][k].state == WRITING && nodes[s][k].owner == x->owner)
				commit_node(s, &nodes[s][k], x->owner);
	}
	compare(MAY_NOTHING);
}

static void step_abort(void)
{
	uint32_t s, i, o;
	struct node *x = random_node(WRITING, &s, &i);

	if (x) {
		o = roll(3) ? x->owner : roll(OWNERS);
		if (pool_abort(f.p, &owners[o], x->desc, x->gen) == VERDICT_FREED) {
			check(o == x->owner);
			subtree_stops(s, i, 0);
		} else {
			check(o != x->owner);
		}
	}
	if (n_ghosts) {
		i = roll(n_ghosts);
		if (ghosts[i].until == UINT64_MAX) {
			check(pool_commit(f.p, &owners[ghosts[i].owner], ghosts[i].desc,
					  ghosts[i].gen, 0, f.now) == VERDICT_STALE);
			check(pool_abort(f.p, &owners[ghosts[i].owner], ghosts[i].desc,
					 ghosts[i].gen) == VERDICT_FREED);
			ghost_went(i);
		}
	}
	compare(MAY_NOTHING);
}

/* ---- unnamed slots ---- */

static uint64_t own_bytes(uint32_t o)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_own; i++)
		n += own[i].owner == o ? block_bytes[own[i].ns] : 0;
	return n;
}

static void step_unnamed(void)
{
	uint32_t s = roll(SPACES), o = roll(OWNERS), n = 1 + roll(12), granted;
	uint64_t room = (config.owner_unnamed_bytes - own_bytes(o)) / block_bytes[s];

	granted = (uint32_t)pool_reserve_unnamed(f.p, &owners[o], ns_number[s], n, f.now, f.verdict,
						 f.grant, &f.full);
	check(granted <= MIN((uint64_t)n, room) && (granted == n) == (f.full == FULL_NONE));
	check((f.full == FULL_QUOTA) == (granted < n && granted == room));
	for (uint32_t i = 0; i < n; i++)
		check(f.verdict[i] == (i < granted ? VERDICT_GRANTED : VERDICT_FULL));
	for (uint32_t i = 0; i < granted; i++) {
		check(n_own < OWN);
		expect_unused(f.grant[i].slot, units(s));
		mark(writing, s, f.grant[i].slot, 1);
		own[n_own++] = (struct own){ .ns = s, .owner = o, .grant = f.grant[i] };
	}
	compare(MAY_EVICT);
}

static void own_went(uint32_t i)
{
	mark(writing, own[i].ns, own[i].grant.slot, -1);
	own[i] = own[--n_own];
}

static void step_give_back(void)
{
	uint32_t i;

	if (!n_own)
		return;
	i = roll(n_own);
	check(pool_abort(f.p, &owners[(own[i].owner + 1) % OWNERS], own[i].grant.desc,
			 own[i].grant.gen) == VERDICT_NOT_OWNER);
	check(pool_commit(f.p, &owners[own[i].owner], own[i].grant.desc, own[i].grant.gen, 1,
			  f.now) == VERDICT_NO_PARENT);
	check(pool_abort(f.p, &owners[own[i].owner], own[i].grant.desc, own[i].grant.gen) ==
	      VERDICT_FREED);
	own_went(i);
	compare(MAY_NOTHING);
}

/* Some slots of the owner of own[first] in its namespace; their places in own, from the last on. */
static uint32_t some_own(uint32_t first, uint32_t *at, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = n_own; i-- > 0 && n < max;)
		if (own[i].ns == own[first].ns && own[i].owner == own[first].owner)
			at[n++] = i;
	return n;
}

static enum proto_verdict expected_name(uint32_t s, const struct node *x, int below,
					enum proto_verdict *rest)
{
	if (x->state == CACHED) {
		*rest = VERDICT_NONE;
		return VERDICT_PRESENT;
	}
	if (*rest)
		return *rest;
	if (x->state == WRITING)
		return *rest = VERDICT_BUSY;
	return below ? VERDICT_COMMITTED : (*rest = VERDICT_NO_PARENT);
}

/* Of those that were named, places in own go from the last on: none is moved before it is due. */
static void expect_names(uint32_t s, const uint32_t *path, uint32_t from, const uint32_t *at,
			 uint32_t n)
{
	enum proto_verdict rest = VERDICT_NONE;

	for (uint32_t i = 0; i < n; i++) {
		struct node *x = &nodes[s][path[from + i]];
		int below = x->parent == NODES || nodes[s][x->parent].state == CACHED;
		enum proto_verdict v = expected_name(s, x, below, &rest);

		if (v == VERDICT_COMMITTED && f.verdict[i] == VERDICT_FULL)
			v = rest = VERDICT_FULL;
		check(f.verdict[i] == v);
		if (v != VERDICT_COMMITTED)
			continue;
		x->state = CACHED;
		x->desc = own[at[i]].grant.desc;
		x->slot = own[at[i]].grant.slot;
		x->gen = own[at[i]].grant.gen;
		x->owner = own[at[i]].owner;
		own_went(at[i]);
		n_named++;
	}
}

static void step_name(void)
{
	uint32_t s, path[NODES], from, n, at[DEPTH], desc[DEPTH], crc[DEPTH];
	struct block_key keys[DEPTH];
	uint64_t gen[DEPTH];
	struct pool_names names = { .keys = keys, .desc = desc, .gen = gen, .crc = crc };

	if (!n_own)
		return;
	at[0] = roll(n_own);
	s = own[at[0]].ns;
	n = path_to(s, roll(NODES), path);
	for (from = 0; from < n && roll(8) && nodes[s][path[from]].state == CACHED; from++)
		;
	if (!roll(8))
		from = roll(n);
	n = names.n = some_own(at[0], at, n - from);
	for (uint32_t i = 0; i < n; i++) {
		keys[i] = nodes[s][path[from + i]].key;
		desc[i] = own[at[i]].grant.desc;
		gen[i] = own[at[i]].grant.gen;
		crc[i] = 1;
	}
	if (!n)
		return;
	names.parent = from ? &nodes[s][path[from - 1]].key : NULL;
	pool_commit_named(f.p, &owners[own[at[0]].owner], &names, f.now, f.verdict);
	expect_names(s, path, from, at, n);
	compare(MAY_NOTHING);
}

static void own_dies(uint32_t o)
{
	for (uint32_t i = n_own; i-- > 0;) {
		if (own[i].owner != o)
			continue;
		check(n_ghosts < GHOSTS);
		ghosts[n_ghosts++] = (struct ghost){
			.ns = own[i].ns, .owner = o, .desc = own[i].grant.desc,
			.slot = own[i].grant.slot, .gen = own[i].grant.gen, .until = UINT64_MAX,
		};
		own[i] = own[--n_own];
	}
}

static void new_owner(uint32_t o)
{
	pool_owner_init(&owners[o], next_session++);
}

static void step_death(void)
{
	uint32_t o = roll(OWNERS);

	pool_owner_end(f.p, &owners[o], f.now);
	for (uint32_t s = 0; s < SPACES; s++)
		for (uint32_t i = 0; i < NODES; i++)
			if (nodes[s][i].state == WRITING && nodes[s][i].owner == o)
				became_ghost(s, &nodes[s][i]);
	own_dies(o);
	compare(MAY_NOTHING);
	pool_owner_gone(f.p, &owners[o], f.now);
	for (uint32_t i = 0; i < n_ghosts; i++)
		if (ghosts[i].owner == o && ghosts[i].until == UINT64_MAX)
			ghosts[i].until = f.now + config.quarantine_ns;
	memset(&owners[o], 0xee, sizeof(owners[o])); /* the pool has forgotten it */
	new_owner(o);
}

static void reader_lets_go(struct reader *r)
{
	for (uint32_t k = 0; k < r->n; k++)
		mark(reading, r->ns, r->chain[k].slot, -1);
	lookup_unpin(&f.session[r->session].hazard[r->hazard]);
	r->pinned = 0;
}

/* By the reader's own functions, over what clients see. Returns the depth, 0 for a miss. */
static uint32_t reader_pins(struct reader *r, uint32_t s, const uint32_t *path, uint32_t n)
{
	const struct control *c = pool_control(f.p);
	uint64_t *hazard = &f.session[r->session].hazard[r->hazard];
	struct block_key keys[DEPTH];
	uint32_t depth;

	check(n <= DEPTH);
	for (uint32_t i = 0; i < n; i++)
		keys[i] = nodes[s][path[i]].key;
	depth = lookup_scan(c, keys, n, TIER_HOST, r->chain);
	depth = lookup_pin(c, hazard, r->chain, depth, depth, TIER_HOST);
	if (!depth)
		return 0;
	check(lookup_resolve(c, r->chain, 0, depth, TIER_HOST) == 0);
	r->pinned = 1;
	r->ns = s;
	r->n = depth;
	for (uint32_t k = 0; k < depth; k++) {
		check(r->chain[k].slot == nodes[s][path[k]].slot);
		mark(reading, s, r->chain[k].slot, 1);
	}
	return depth;
}

/* In the midst of an eviction or a doom, between its mark and its snapshot. */
static void on_scan(struct fixture *x)
{
	uint32_t s = roll(SPACES), path[NODES], n;
	struct reader *r = &readers[roll(READERS)];

	if (roll(3))
		return;
	n = path_to(s, roll(NODES), path);
	if (r->pinned)
		reader_lets_go(r);
	else
		reader_pins(r, s, path, n);
}

static void step_pin(struct reader *r)
{
	uint32_t s = roll(SPACES), path[NODES], n = path_to(s, roll(NODES), path), want = 0, depth;

	while (want < n && nodes[s][path[want]].state == CACHED)
		want++;
	depth = reader_pins(r, s, path, n);
	check(depth == want);
	if (depth)
		pool_touch(f.p, ns_number[s], r->chain[depth - 1].desc, n * 16, depth * 16, f.now);
}

static void step_reader(void)
{
	struct reader *r = &readers[roll(READERS)];

	if (r->pinned)
		reader_lets_go(r);
	else
		step_pin(r);
	compare(MAY_NOTHING);
}

/* Hazard words that nobody validated; at most they keep something. */
static void step_nonsense(void)
{
	uint32_t hazard = 40 + roll(8);

	store_release(&f.session[roll(FIXTURE_SESSIONS)].hazard[hazard],
		      roll(3) ? 0 : hazard_make(roll(config.max_blocks + 20), roll(4), roll(9)));
	pool_touch(f.p, roll(SPACES + 2), roll(config.max_blocks + 20), roll(99), roll(99), f.now);
	compare(MAY_NOTHING);
}

static void time_out_nodes(void)
{
	for (uint32_t s = 0; s < SPACES; s++)
		for (uint32_t i = 0; i < NODES; i++)
			if (nodes[s][i].state == WRITING &&
			    nodes[s][i].since + config.reservation_ns <= f.now)
				subtree_stops(s, i, 1);
}

static void step_time(void)
{
	unsigned int doomed = flushing();

	fixture_pass(&f, roll(2) ? roll(1000) : roll(2 * (uint32_t)NSEC_PER_SEC));
	if (roll(3))
		pool_tick(f.p, f.now);
	else
		fixture_tick(&f);
	/* The first thing that a tick does; what is left of them a flush may void. */
	time_out_nodes();
	for (uint32_t i = n_ghosts; i-- > 0;)
		if (ghosts[i].until <= f.now)
			ghost_went(i);
	compare(MAY_EVICT | doomed);
}

/* All of it, or one step of it, to be gone on with by the tick. */
static void step_flush(void)
{
	struct pool_flushed dry = { .freed_blocks = 0 }, wet = dry;
	uint32_t s = roll(SPACES);
	int more, whole = roll(2), before = flushing() >> s & 1;

	f.on_scan = NULL;
	check(pool_flush(f.p, ns_number[s], 1, f.now, &dry) == 0);
	f.on_scan = on_scan;
	compare(MAY_NOTHING);
	do {
		more = pool_flush(f.p, ns_number[s], 0, f.now, &wet);
		compare(1u << s);
	} while (more && whole);
	for (uint32_t i = 0; !before && !more && i < NODES; i++)
		check(nodes[s][i].state == ABSENT);
	if (!before && !more)
		check(wet.voided_blocks == dry.voided_blocks);
}

static void step_verify(void)
{
	uint32_t s, i, crc, wrong = !roll(3);
	struct node *x = random_node(CACHED, &s, &i);
	uint64_t offset, bytes;

	if (!x)
		return;
	check(pool_pin_for_verify(f.p, x->desc, x->gen, &offset, &bytes, &crc) == 0);
	check(offset == slot_offset(x->slot) && bytes == block_bytes[s] && crc == 1);
	step_reserve();
	check(x->state == CACHED); /* pinned meanwhile */
	check(pool_verify_done(f.p, x->desc, x->gen, (int)wrong, f.now) == (int)wrong);
	compare(wrong ? 1u << s : MAY_NOTHING);
	check((x->state == ABSENT) == wrong);
}

/* Sizes near the first one, mostly; what goes goes in the ticks. */
static void step_resize(void)
{
	uint32_t least_ns;
	uint64_t bytes = GRANULE * (roll(3) ? 40 + roll(16) : 1 + roll(70));
	uint64_t was = pool_limit_bytes(f.p), least = pool_least_bytes(f.p, &least_ns);
	struct pool_resized told;
	int dry = !roll(4), r;

	f.on_scan = NULL;
	r = pool_resize(f.p, bytes, dry, f.now, &told);
	f.on_scan = on_scan;
	check(r == (bytes > config.max_bytes ? -EFBIG : bytes < least ? -ERANGE : 0));
	check(r || (told.was_bytes == was && told.now_bytes == bytes &&
		    told.stuck_bytes <= told.handed_bytes));
	check(pool_limit_bytes(f.p) == (dry || r ? was : bytes));
	compare(MAY_NOTHING);
}

static void step_punched(void)
{
	for (uint32_t i = 0; i < f.n_punch; i++)
		expect_unused(f.punch[i].offset >> SLOT_SHIFT, f.punch[i].bytes >> SLOT_SHIFT);
	fixture_punched(&f);
}

static const struct {
	void (*run)(void);
	uint32_t weight;
} steps[] = {
	{ step_reserve, 30 },
	{ step_commit, 30 },
	{ step_reader, 25 },
	{ step_abort, 5 },
	{ step_unnamed, 5 },
	{ step_name, 8 },
	{ step_give_back, 4 },
	{ step_time, 8 },
	{ step_punched, 4 },
	{ step_nonsense, 4 },
	{ step_verify, 3 },
	{ step_resize, 1 },
	{ step_death, 2 },
	{ step_flush, 1 },
};

static void any_step(void)
{
	uint32_t total = 0, at, handed = f.p->extents.n_handed;

	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++)
		total += steps[i].weight;
	at = roll(total);
	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++) {
		if (at < steps[i].weight) {
			steps[i].run();
			check(f.p->extents.n_handed <= MAX(handed, f.p->extents.limit));
			return;
		}
		at -= steps[i].weight;
	}
}

/* ---- the whole ---- */

/* Some roots; mostly long chains, and some branches anywhere. */
static uint32_t random_parent(uint32_t i)
{
	if (i < 6)
		return NODES;
	return roll(3) ? i - 1 - roll(MIN(i, 5u)) : roll(i);
}

static void make_nodes(void)
{
	struct block_key keys[SPACES * NODES];

	fixture_keys(seed, SPACES * NODES, keys);
	for (uint32_t s = 0; s < SPACES; s++)
		for (uint32_t i = 0; i < NODES; i++) {
			nodes[s][i] = (struct node){
				.parent = random_parent(i),
				.key = keys[s * NODES + i],
			};
			for (uint32_t k = i, depth = 1; k != NODES; k = nodes[s][k].parent, depth++)
				if (depth == DEPTH)
					nodes[s][i].parent = NODES;
		}
}

static void start(void)
{
	static const uint8_t salts[SPACES] = { 1, 2, 3, 4 };

	rng = seed;
	fixture_init(&f, &config);
	f.on_scan = on_scan;
	f.p->flush_step = seed % 3 ? 5 : POOL_FLUSH_STEP;
	f.p->reclaim_blocks = seed % 2 ? 9 : 4096;
	make_nodes();
	for (uint32_t s = 0; s < SPACES; s++)
		ns_number[s] = fixture_ns(&f, "m", salts[s], block_bytes[s]);
	for (uint32_t o = 0; o < OWNERS; o++)
		new_owner(o);
	for (uint32_t i = 0; i < READERS; i++)
		readers[i] = (struct reader){ .session = i % FIXTURE_SESSIONS,
					      .hazard = i / FIXTURE_SESSIONS };
	n_ghosts = n_own = n_named = 0;
	reading = calloc(config.max_bytes >> SLOT_SHIFT, 1);
	writing = calloc(config.max_bytes >> SLOT_SHIFT, 1);
	check(reading && writing);
}

/* Everybody goes: nothing may be left. */
static void finish(void)
{
	f.on_scan = NULL;
	for (uint32_t i = 0; i < READERS; i++)
		if (readers[i].pinned)
			reader_lets_go(&readers[i]);
	for (uint32_t i = 0; i < FIXTURE_SESSIONS; i++)
		memset(f.session[i].hazard, 0, FIXTURE_HAZARDS * sizeof(uint64_t));
	for (uint32_t o = 0; o < OWNERS; o++)
		pool_owner_gone(f.p, &owners[o], f.now);
	for (uint32_t s = 0; s < SPACES; s++) {
		for (int i = 0; i < 2; i++) /* what a flush was at, and what came since */
			while (pool_flush(f.p, ns_number[s], 0, f.now,
					  &(struct pool_flushed){ .kept_blocks = 0 }))
				;
		pool_ns_drop(f.p, ns_number[s]);
	}
	fixture_pass(&f, 10 * NSEC_PER_SEC);
	fixture_tick(&f);
	fixture_audit(&f);
	check(fixture_stats(&f).handed_bytes == 0);
	check(f.p->n_blocks == 0);
	fixture_fini(&f);
	free(reading);
	free(writing);
}

static int seen; /* bits: what happened */

static void one_seed(uint64_t s, uint64_t n_steps)
{
	struct pool_stats st;

	seed = s;
	start();
	for (step = 0; step < n_steps; step++) {
		any_step();
		pool_wake(f.p);
		if (step % 64 == 0)
			fixture_audit(&f);
	}
	st = fixture_stats(&f);
	printf("seed %lu: published %lu, evicted %lu, resized %lu, flushed %lu, extents taken %lu, "
	       "full %lu, quarantined %lu, timed out %lu, named %u\n", s, st.published, st.evicted,
	       st.resized, st.flushed, st.extents_taken, st.full, st.quarantined,
	       st.reservations_timed_out, n_named);
	seen |= (st.published > 0) << 0 | (st.evicted > 0) << 1 | (st.flushed > 0) << 2 |
		(st.full > 0) << 3 | (st.quarantined > 0) << 4 | (st.extents_taken > 0) << 5 |
		(st.resized > 0) << 6 | (st.dooms > 0) << 7 | (st.quota > 0) << 8 | (n_named > 0) << 9;
	finish();
}

int main(int argc, char **argv)
{
	uint64_t n_steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000;

	if (argc > 1) {
		one_seed(strtoull(argv[1], NULL, 10), n_steps);
		return 0;
	}
	for (uint64_t s = 1; s <= 12; s++)
		one_seed(s, n_steps);
	check(seen == (1 << 10) - 1); /* otherwise it tests less than it says */
	return 0;
}
