/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes in a region: the checker and the readers end, and touch nothing outside of it. Built
 * with the address and undefined-behaviour sanitizers, over blocks of memory of the exact size.
 *
 * 	fuzz_checker [ROUNDS [SEED]]
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/checker.h"
#include "shm/lookup.h"
#include "tests/shm/random.h"
#include "tests/shm/region.h"

#define BLOCKS 64u
#define CHAIN  24u

struct copy {
	void *base, *session;
	struct session_map map;
	struct block_key keys[CHAIN];
};

static uint64_t findings;

static void found(void *ctx, const char *text)
{
	const char *is = strstr(text, " is ");

	assert(is && strstr(is, ", expected "));
	findings++;
}

static void *copy_of(const void *from, uint64_t bytes)
{
	void *p = aligned_alloc(64, bytes);

	assert(p);
	return memcpy(p, from, bytes);
}

/* Numbers that are off by little, out by much, or have one bit wrong. */
static uint64_t spoil(struct random *rnd, uint64_t v)
{
	switch (random_below(rnd, 6)) {
	case 0: return random_next(rnd);
	case 1: return v ^ UINT64_C(1) << random_below(rnd, 64);
	case 2: return v + random_below(rnd, 5) - 2;
	case 3: return 0;
	case 4: return UINT64_MAX;
	default: return random_next(rnd) >> random_below(rnd, 64);
	}
}

static void spoil_range(struct random *rnd, void *base, uint64_t bytes, uint32_t times)
{
	while (times--) {
		size_t width = 1u << random_below(rnd, 4);
		char *at = (char *)base + random_below(rnd, (uint32_t)(bytes / width)) * width;
		uint64_t v = 0;

		memcpy(&v, at, width);
		v = spoil(rnd, v);
		memcpy(at, &v, width);
	}
}

/*
 * Most rounds leave the fields that the geometry hangs on alone: a header that is refused ends the
 * check at once.
 */
static void spoil_copy(struct random *rnd, struct copy *c, uint64_t bytes, uint64_t session_bytes)
{
	uint64_t head = random_below(rnd, 8) ? LAYOUT_PAGE : 0;

	spoil_range(rnd, (char *)c->base + head, bytes - head, 1 + random_below(rnd, 40));
	if (!random_below(rnd, 4))
		for (uint64_t *w = (uint64_t *)((char *)c->base + LAYOUT_PAGE);
		     w < (uint64_t *)((char *)c->base + bytes); w++)
			*w = spoil(rnd, *w);
	spoil_range(rnd, c->session, session_bytes, 1 + random_below(rnd, 40));
}

static void run_checker(struct random *rnd, struct copy *c, uint64_t bytes)
{
	size_t n = checker_scratch(c->base, bytes);
	struct checker k = {
		.mode = random_below(rnd, 2) ? CHECKER_QUIET : CHECKER_AFTER_KILL,
		.sessions = &c->map, .n_sessions = 1,
		.scratch = malloc(n + !n), .scratch_bytes = n,
		.max_findings = 1 + random_below(rnd, 2000),
		.found = found,
	};

	findings = 0;
	assert(k.scratch);
	assert(checker_run(&k, c->base, bytes) == (int64_t)findings);
	assert(findings <= k.max_findings);
	free(k.scratch);
}

/* The hit path over the same bytes; what it finds is of no interest. */
static void run_readers(struct copy *c, uint64_t bytes)
{
	struct lookup_note notes[CHAIN] = { { .word = 0 } };
	struct control control;
	uint64_t hazard = 0, place = 0, lost = 0;
	uint64_t bits[(BLOCKS + 63) / 64] = { 0 };
	struct pinset pins = { .bits = bits, .max_blocks = BLOCKS };
	struct touch t;
	uint32_t depth;

	pinset_scan(&pins, c->map.hazard, c->map.hazard_count);
	while (touch_pop(&c->map, &place, &lost, &t))
		;
	if (control_attach(c->base, bytes, &control))
		return;
	lookup_gallop(&control, c->keys, CHAIN, TIER_HOST, notes);
	depth = lookup_scan(&control, c->keys, CHAIN, TIER_HOST, notes);
	depth = lookup_pin(&control, &hazard, notes, depth, depth, TIER_HOST);
	(void)lookup_resolve(&control, notes, 0, depth, TIER_HOST);
	lookup_unpin(&hazard);
}

static void fuzz_round(const struct region *r, struct random *rnd)
{
	struct copy c = {
		.base = copy_of(r->base, r->bytes),
		.session = copy_of(r->session_base[0], r->session_bytes),
	};

	session_map_trusted(c.session, REGION_HAZARDS, REGION_TOUCHES, &c.map);
	region_keys(1, 7, CHAIN, c.keys);
	spoil_copy(rnd, &c, r->bytes, r->session_bytes);
	run_checker(rnd, &c, r->bytes);
	run_readers(&c, r->bytes);
	free(c.base);
	free(c.session);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
	struct random rnd = random_seed(argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
	struct region_config cfg = { .max_blocks = BLOCKS, .sessions = 1, .spare_granules = 2 };
	struct region r;
	struct block_key keys[CHAIN];
	uint32_t descs[CHAIN];

	region_init(&r, &cfg);
	region_keys(1, 7, CHAIN, keys);
	region_publish(&r, keys, CHAIN, descs);
	r.session[0].hazard[1] = hazard_make(descs[3], TIER_HOST, 0);
	for (uint64_t i = 0; i < rounds; i++)
		fuzz_round(&r, &rnd);
	region_fini(&r);
	printf("%llu rounds\n", (unsigned long long)rounds);
	return 0;
}
