/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One daemon and some readers as threads, built with ThreadSanitizer: the protocol orders every
 * access to the bytes of a block, which are plain memory. Each block carries its own key, so that a
 * wrong byte is seen too.
 *
 *	threads [LOOKUPS [READERS]]
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/shm/tree.h"

#define READERS_MAX 4

struct reader {
	struct tree *t; /* its keys only: what else is in it belongs to the daemon */
	struct session_map *session;
	uint32_t number;
	uint64_t lookups;
	uint64_t hits, extended, other_prefix;
};

static uint32_t running;

static void check_bytes(const struct region *r, const struct lookup_note *notes,
			const struct block_key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert(region_bytes_are(r, notes[i].slot, &keys[i]));
}

/* A lease of depth blocks, held by word 0, grows: returns its new depth, held by word *word. */
static uint32_t extend(struct reader *me, const struct block_key *keys, uint32_t depth, uint32_t n,
		       struct lookup_note *notes, unsigned int *word)
{
	const struct control *c = &me->t->r->c;
	uint64_t *second = &me->session->hazard[1];
	uint32_t more = lookup_scan(c, keys + depth, n - depth, TIER_HOST, notes + depth);
	int r;

	more = lookup_pin(c, second, notes + depth, more, more, TIER_HOST);
	if (!more)
		return depth;
	r = lookup_resolve(c, notes, depth, depth + more, TIER_HOST);
	if (r) {
		assert(r == LOOKUP_OTHER_PREFIX);
		lookup_unpin(second);
		me->other_prefix++;
		return depth;
	}
	lookup_unpin(&me->session->hazard[0]);
	*word = 1;
	me->extended++;
	return depth + more;
}

static uint32_t find(struct reader *me, struct random *rnd, const struct block_key *keys,
		     uint32_t n, struct lookup_note *notes)
{
	const struct control *c = &me->t->r->c;
	uint64_t *first = &me->session->hazard[0];
	uint32_t depth;

	if (random_below(rnd, 2)) {
		depth = lookup_scan(c, keys, n, TIER_HOST, notes);
		return lookup_pin(c, first, notes, depth, depth, TIER_HOST);
	}
	depth = lookup_gallop(c, keys, n, TIER_HOST, notes);
	return lookup_pin(c, first, notes, depth, 1, TIER_HOST);
}

static void look_up(struct reader *me, struct random *rnd)
{
	struct lookup_note notes[TREE_DEPTH] = { { .word = 0 } };
	struct block_key keys[TREE_DEPTH];
	uint32_t n = tree_chain(me->t, random_below(rnd, TREE_NODES), keys);
	uint32_t depth = find(me, rnd, keys, 1 + random_below(rnd, n), notes);
	struct touch touch = { .desc = DESC_NONE, .from_token = n };
	unsigned int word = 0;

	if (depth) {
		assert(!lookup_resolve(&me->t->r->c, notes, 0, depth, TIER_HOST));
		check_bytes(me->t->r, notes, keys, depth);
		if (random_below(rnd, 2))
			depth = extend(me, keys, depth, n, notes, &word);
		check_bytes(me->t->r, notes, keys, depth);
		touch.desc = notes[depth - 1].desc;
		touch.hit_tokens = depth;
		lookup_unpin(&me->session->hazard[word]);
		me->hits++;
	}
	/*
	 * Seldom: the stand-in for a fence in it synchronises more than a fence does, and would
	 * hide a release that is missing above.
	 */
	if (!random_below(rnd, 16)) {
		touch_push(me->session, &touch);
		session_count(me->session, COUNTER_LOOKUPS, 1);
	}
}

static void *reader_main(void *arg)
{
	struct reader *me = arg;
	struct random rnd = random_seed(1000 + me->number);

	for (uint64_t i = 0; i < me->lookups; i++)
		look_up(me, &rnd);
	add_acq_rel(&running, -1);
	return NULL;
}

/* What comes out of the ring was put in whole. */
static uint64_t take_touches(const struct session_map *m, uint64_t *place, uint64_t *lost)
{
	struct touch t;
	uint64_t n = 0;

	while (n < REGION_TOUCHES && touch_pop(m, place, lost, &t)) {
		assert(t.from_token && t.from_token <= TREE_DEPTH);
		assert(t.hit_tokens <= t.from_token && !t.hit_tokens == (t.desc == DESC_NONE));
		n++;
	}
	return n;
}

static void daemon_main(struct tree *t, uint32_t sessions)
{
	uint64_t place[READERS_MAX] = { 0 }, lost = 0, touches = 0, steps = 0, lookups = 0;

	while (load_acquire(&running)) {
		struct tree_op op = tree_pick(t);

		tree_do(t, &op);
		steps++;
		for (uint32_t i = 0; i < sessions; i++)
			touches += take_touches(&t->r->session[i], &place[i], &lost);
	}
	for (uint32_t i = 0; i < sessions; i++) {
		touches += take_touches(&t->r->session[i], &place[i], &lost);
		lookups += load_relaxed(&t->r->session[i].head->counter[COUNTER_LOOKUPS]);
	}
	assert(touches + lost == lookups);
	printf("daemon: %llu steps, %llu touches, %llu lost\n", (unsigned long long)steps,
	       (unsigned long long)touches, (unsigned long long)lost);
}

int main(int argc, char **argv)
{
	uint64_t lookups = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000;
	uint32_t readers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 3;
	struct reader reader[READERS_MAX];
	pthread_t thread[READERS_MAX];
	struct region r;
	struct tree t;

	assert(readers >= 1 && readers <= READERS_MAX);
	region_init(&r, &(struct region_config){ .max_blocks = 16, .sessions = readers });
	tree_init(&t, &r, 5);
	running = readers;
	for (uint32_t i = 0; i < readers; i++) {
		reader[i] = (struct reader){
			.t = &t, .session = &r.session[i], .number = i, .lookups = lookups,
		};
		assert(!pthread_create(&thread[i], NULL, reader_main, &reader[i]));
	}
	daemon_main(&t, readers);
	for (uint32_t i = 0; i < readers; i++) {
		assert(!pthread_join(thread[i], NULL));
		printf("reader %u: %llu lookups, %llu hits, %llu extended, %llu of other prefix\n",
		       i, (unsigned long long)lookups, (unsigned long long)reader[i].hits,
		       (unsigned long long)reader[i].extended,
		       (unsigned long long)reader[i].other_prefix);
	}
	region_fini(&r);
	return 0;
}
