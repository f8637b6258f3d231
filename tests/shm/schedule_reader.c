/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>

#include "shm/word.h"
#include "tests/shm/schedule_reader.h"

void reference_init(struct world *w)
{
	for (uint32_t i = 0; i < TREE_NODES; i++)
		w->presence[i] = ABSENT;
}

static void learn(struct world *w, uint32_t node, enum presence p)
{
	if (w->presence[node] == p)
		return;
	w->presence[node] = p;
	w->since[node] = sim_now();
}

void reference_unsure(struct world *w, const uint8_t in[TREE_NODES])
{
	for (uint32_t i = 0; i < TREE_NODES; i++)
		if (in[i])
			learn(w, i, UNSURE);
}

void reference_refresh(struct world *w)
{
	for (uint32_t i = 0; i < TREE_NODES; i++) {
		enum presence p = tree_present(&w->t, i) ? PRESENT : ABSENT;

		/* What was sure stays so without an operation, over the death of a daemon too. */
		assert(w->presence[i] == UNSURE || w->presence[i] == p);
		learn(w, i, p);
	}
}

/* One lookup, as the reference sees it. */
struct question {
	uint32_t path[TREE_DEPTH];
	uint32_t n, whole; /* what is asked for, and the chain that it begins */
	struct block_key keys[TREE_DEPTH];
	uint64_t start, moved;
	int informed; /* it has seen all that was there at the start: its answer must be right */
};

static void ask(struct world *w, struct question *q)
{
	uint32_t node = sim_random(TREE_NODES);

	q->whole = tree_chain(&w->t, node, q->keys);
	for (uint32_t i = q->whole; i-- > 0; node = w->t.node[node].parent)
		q->path[i] = node;
	q->n = 1 + sim_random(q->whole);
	q->informed = (int)sim_random(2);
	if (q->informed)
		sim_message();
	q->start = sim_now();
	q->moved = w->r.c.head->moved;
}

/* Node i of the path was in this state all the time since the start. */
static int was(const struct world *w, const struct question *q, uint32_t i, enum presence p)
{
	return w->presence[q->path[i]] == p && w->since[q->path[i]] < q->start;
}

/* The first depth blocks were found, and the one behind them was not. */
static void check_answer(const struct world *w, const struct question *q, uint32_t depth, int scan)
{
	if (!q->informed)
		return;
	for (uint32_t i = scan || !depth ? 0 : depth - 1; i < depth; i++)
		assert(!was(w, q, i, ABSENT));
	/* Three moves are as many as a look copes with. */
	if (depth < q->n && w->r.c.head->moved - q->moved < 3)
		assert(!was(w, q, depth, PRESENT));
}

static void hold(struct reader *me, const struct lookup_note *notes, uint32_t depth)
{
	for (uint32_t i = me->held; i < depth; i++) {
		me->desc[i] = notes[i].desc;
		me->slot[i] = notes[i].slot;
		me->gen[i] = word_gen(me->w->r.c.desc[notes[i].desc].word);
	}
	me->held = depth;
}

void leases_check(const struct world *w, unsigned int readers)
{
	for (unsigned int a = 0; a < readers; a++)
		for (uint32_t i = 0; i < w->reader[a].held; i++) {
			const struct reader *x = &w->reader[a];
			const struct desc *d = &w->r.c.desc[x->desc[i]];
			enum desc_state state = word_state(d->word);

			assert(word_gen(d->word) == x->gen[i]);
			assert(state == DESC_COMMITTED || state == DESC_EVICTING ||
			       state == DESC_DOOMED);
			assert(d->slot[TIER_HOST] == x->slot[i]);
		}
}

static void read_blocks(struct reader *me, const struct question *q, uint32_t times)
{
	while (times--) {
		uint32_t i = sim_random(me->held);

		assert(region_bytes_are(&me->w->r, me->slot[i], &q->keys[i]));
	}
}

/* Returns how deep it is pinned by word 0. */
static uint32_t acquire(struct reader *me, struct question *q, struct lookup_note *notes)
{
	const struct control *c = &me->w->r.c;
	uint64_t *hazard = &me->w->r.session[me->number].hazard[0];
	int scan = (int)sim_random(2);
	uint32_t found = (scan ? lookup_scan : lookup_gallop)(c, q->keys, q->n, TIER_HOST, notes);
	uint32_t depth;

	check_answer(me->w, q, found, scan);
	depth = lookup_pin(c, hazard, notes, found, scan ? found : 1, TIER_HOST);
	assert(depth <= found);
	me->raced += depth < found;
	/* What was there all the time can be pinned. */
	if (depth < found)
		assert(!q->informed || !was(me->w, q, found - 1, PRESENT));
	return depth;
}

/* The lease, held by word 0, grows as far as the chain is there; returns the word that holds it. */
static unsigned int extend(struct reader *me, const struct question *q, struct lookup_note *notes)
{
	const struct control *c = &me->w->r.c;
	uint64_t *hazard = me->w->r.session[me->number].hazard;
	uint32_t depth = me->held, more;
	int r;

	more = lookup_scan(c, q->keys + depth, q->whole - depth, TIER_HOST, notes + depth);
	more = lookup_pin(c, &hazard[1], notes + depth, more, more, TIER_HOST);
	if (!more)
		return 0;
	r = lookup_resolve(c, notes, depth, depth + more, TIER_HOST);
	if (r) {
		assert(r == LOOKUP_OTHER_PREFIX);
		lookup_unpin(&hazard[1]);
		me->other_prefix++;
		return 0;
	}
	hold(me, notes, depth + more);
	lookup_unpin(&hazard[0]);
	me->extended++;
	return 1;
}

static void look_up(struct reader *me)
{
	struct lookup_note notes[TREE_DEPTH] = { { .word = 0 } };
	uint64_t *hazard = me->w->r.session[me->number].hazard;
	struct touch touch = { .desc = DESC_NONE };
	struct question q;
	unsigned int word = 0;
	uint32_t depth;

	ask(me->w, &q);
	depth = acquire(me, &q, notes);
	if (depth) {
		assert(!lookup_resolve(&me->w->r.c, notes, 0, depth, TIER_HOST));
		hold(me, notes, depth);
		/* Some leases live long. */
		read_blocks(me, &q, 1 + sim_random(sim_random(3) ? 3 : 60));
		if (depth < q.whole && sim_random(2))
			word = extend(me, &q, notes);
		read_blocks(me, &q, sim_random(6));
		touch.desc = me->desc[me->held - 1];
		me->held = 0;
		lookup_unpin(&hazard[word]);
		me->hits++;
	}
	touch.from_token = touch.asked_tokens = touch.ns = touch.desc;
	touch.miss_key[1] = touch.desc;
	touch_push(&me->w->r.session[me->number], &touch);
	me->lookups++;
}

void reader_main(void *arg)
{
	for (;;)
		look_up(arg);
}

void take_touches(struct world *w, unsigned int reader)
{
	struct touch t;

	while (touch_pop(&w->r.session[reader], &w->touch_place[reader], &w->touch_lost[reader],
			 &t)) {
		assert(t.from_token == t.desc && t.asked_tokens == t.desc && t.ns == t.desc);
		assert(t.miss_key[1] == t.desc && !t.miss_key[0] && !t.hit_tokens);
	}
}
