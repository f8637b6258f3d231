/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listed key is never missed, by the functions that the library and the daemon run. In each round
 * a reader looks a key up (lookup_find) while the daemon makes room in the bucket that it stands in
 * (index_claim), which moves its entry to its other bucket.
 *
 * 	listed [ROUNDS]		no look may miss
 *
 * Built with LITMUS_MUST_LOSE and no_counter.c, it fails when no look misses.
 * (tests/models/index.pml)
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/litmus/race.h"
#include "tests/shm/region.h"

#ifdef LITMUS_MUST_LOSE
#define MUST_LOSE 1
#else
#define MUST_LOSE 0
#endif

/*
 * The key, and for each of its two buckets another key that may stand there or in a third bucket,
 * which is full of promises. A claim for that key moves the entry when its bucket is full too.
 */
struct stage {
	struct region r;
	struct block_key key, rival[2];
	uint64_t bucket[2], third;
};

/* Keys by number, until one has the two buckets. */
static void key_for(const struct region *r, uint64_t a, uint64_t b, struct block_key *key)
{
	struct index_place p;
	uint64_t seed = 100;

	do {
		region_keys(seed++, 0, 1, key);
		p = index_place(&r->c, key);
	} while ((p.bucket[0] != a || p.bucket[1] != b) && (p.bucket[0] != b || p.bucket[1] != a));
}

static void set_stage(struct stage *s)
{
	struct index_place p;
	uint32_t block;

	region_init(&s->r, &(struct region_config){ .max_blocks = 16, .sessions = 1, .shared = 1 });
	region_keys(1, 1, 1, &s->key);
	p = index_place(&s->r.c, &s->key);
	memcpy(s->bucket, p.bucket, sizeof(s->bucket));
	while (s->third == p.bucket[0] || s->third == p.bucket[1])
		s->third++;
	for (unsigned int b = 0; b < 2; b++)
		key_for(&s->r, s->bucket[b], s->third, &s->rival[b]);
	region_publish(&s->r, &s->key, 1, &block);
	s->r.index.claimed[s->third] = BUCKET_ENTRIES;
}

/* Which of its buckets the key stands in. */
static unsigned int side(const struct stage *s)
{
	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++)
		if (s->r.c.index[s->bucket[0]].entry[i])
			return 0;
	return 1;
}

static uint64_t reader_round(struct race *race, void *ctx)
{
	struct stage *s = ctx;
	struct lookup_note note;

	race_wait(race);
	return (uint64_t)lookup_find(&s->r.c, &s->key, TIER_HOST, &note);
}

/* Moves the entry from the side where it stands. */
static void daemon_round(struct stage *s, struct race_driver *d)
{
	unsigned int from = side(s);
	uint64_t promised = UINT64_MAX;

	s->r.index.claimed[s->bucket[from]] = BUCKET_ENTRIES - 1;
	s->r.index.claimed[s->bucket[!from]] = 0;
	race_go(d);
	assert(index_claim(&s->r.index, &s->rival[from], &promised));
	assert(promised == s->bucket[from]);
	assert(side(s) != from);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000, missed = 0;
	struct stage s = { .third = 0 };
	struct race_driver d;
	int cpu[2];

	if (race_processors(cpu))
		return 77;
	set_stage(&s);
	d = race_start(cpu, rounds, reader_round, &s);
	for (uint64_t i = 0; i < rounds; i++) {
		/* Nothing tells who came first: the daemon's lead, which it needs, goes around. */
		d.skew = -(int64_t)(i % 7) * 128;
		daemon_round(&s, &d);
		missed += !race_result(&d);
	}
	race_end(&d);
	region_fini(&s.r);
	printf("%llu rounds, %llu looks missed\n", (unsigned long long)rounds,
	       (unsigned long long)missed);
	return MUST_LOSE ? !missed : !!missed;
}
