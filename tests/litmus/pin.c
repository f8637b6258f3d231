/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pin against evict, on two processors, by the functions that the library and the daemon run. In
 * each round one block is there and found; then a reader pins it (lookup_pin) while the daemon
 * evicts it (evict_mark, pinset_scan, evict_settle). A pin is lost when the reader holds it and the
 * daemon has freed the block.
 *
 * 	pin [ROUNDS]		no pin may be lost
 *
 * Built with LITMUS_MUST_LOSE and one of the two fences compiled away (no_reader_fence.c,
 * no_daemon_fence.c), it fails when it loses none: a machine that does not show the reordering
 * proves nothing by the other run. (tests/models/pin.pml)
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "shm/desc.h"
#include "tests/litmus/race.h"
#include "tests/shm/region.h"

#ifdef LITMUS_MUST_LOSE
#define MUST_LOSE 1
#else
#define MUST_LOSE 0
#endif

static struct block_key key;

/* The reader. Its result: pinned or not. */
static uint64_t reader_round(struct race *race, void *ctx)
{
	struct region *r = ctx;
	struct lookup_note note = { .word = 0 };
	uint64_t *hazard = &r->session[0].hazard[0];
	uint32_t pinned;

	assert(lookup_find(&r->c, &key, TIER_HOST, &note));
	race_wait(race);
	pinned = lookup_pin(&r->c, hazard, &note, 1, 1, TIER_HOST);
	return pinned;
}

/* One eviction; true when the block was freed. The reader still holds what it pinned. */
static int daemon_round(struct region *r, struct race_driver *d, uint32_t block)
{
	race_go(d);
	evict_mark(&r->c, &block, 1);
	pinset_clear(&r->pins);
	pinset_scan(&r->pins, r->session[0].hazard, 1);
	return evict_settle(&r->index, &block, 1, &r->pins) == 1;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
	uint64_t lost = 0, pinned = 0, evicted = 0;
	struct region r;
	struct race_driver d;
	uint32_t block, gone;
	int cpu[2];

	if (race_processors(cpu))
		return 77;
	region_init(&r, &(struct region_config){ .max_blocks = 1, .sessions = 1, .shared = 1 });
	region_keys(1, 1, 1, &key);
	region_publish(&r, &key, 1, &block);
	d = race_start(cpu, rounds, reader_round, &r);
	for (uint64_t i = 0; i < rounds; i++) {
		int freed = daemon_round(&r, &d, block), holds = (int)race_result(&d);

		pinned += (uint64_t)holds;
		evicted += (uint64_t)freed;
		lost += holds && freed;
		race_came_first(&d, holds);
		lookup_unpin(&r.session[0].hazard[0]);
		gone = block;
		region_forget(&r, &gone, 1);
		region_publish(&r, &key, 1, &block);
	}
	race_end(&d);
	region_fini(&r);
	/* In the other rounds both saw the other and gave way: a miss, and the block stays. */
	printf("%llu rounds: %llu pinned, %llu evicted, %llu pins lost\n",
	       (unsigned long long)rounds, (unsigned long long)pinned, (unsigned long long)evicted,
	       (unsigned long long)lost);
	return MUST_LOSE ? !lost : !!lost;
}
