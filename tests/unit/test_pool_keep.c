/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators' pins, readers, TTLs, priorities, hints, flushes and a pool that is too small, in any
 * order: what somebody keeps is there, every pin that is gone was told of, and the model is
 * audited.
 *
 * 	test_pool_keep [SEED [STEPS]]
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/pool/fixture.h"

#define SPACES  2u
#define CHAINS  40u
#define LEN     32u
#define HEAD    8u /* blocks that four chains share */
#define READERS 24u

static struct fixture f;
static struct pool_owner owner;
static uint64_t rng, made, taken_back, budget;
static uint32_t ns[SPACES];
static struct {
	uint32_t desc; /* DESC_NONE: reads nothing */
	uint64_t gen;
} readers[READERS];

static const struct pool_config config = {
	.pool_bytes = KIB(16) * 64,
	.max_blocks = 512,
	.max_namespaces = SPACES,
	.granule_shift = 14,
	.reservation_ns = 30 * NSEC_PER_SEC,
	.quarantine_ns = NSEC_PER_SEC,
};

static uint32_t roll(uint32_t n)
{
	rng = mix64(rng + 0x9e3779b97f4a7c15ull);
	return (uint32_t)(rng >> 33) % n;
}

/* Four chains in a row begin with the same blocks. */
static void chain_of(uint32_t s, uint32_t c, struct block_key *keys)
{
	fixture_keys(s * 1000 + c / 4, HEAD, keys);
	fixture_keys(s * 1000 + 500 + c, LEN - HEAD, keys + HEAD);
}

/* A cached block of some chain, DESC_NONE when there is none of that one. */
static uint32_t some_block(uint32_t *ret_s, struct block_key *ret_key)
{
	struct block_key keys[LEN];
	uint32_t s = roll(SPACES), n;
	uint64_t gen;

	chain_of(s, roll(CHAINS), keys);
	n = pool_present(f.p, ns[s], keys, LEN);
	*ret_s = s;
	if (!n)
		return DESC_NONE;
	n = roll(3) ? n - 1 : roll(n);
	*ret_key = keys[n];
	return pool_find(f.p, ns[s], &keys[n], &gen);
}

static void step_publish(void)
{
	struct block_key keys[LEN];
	uint32_t s = roll(SPACES), n;

	chain_of(s, roll(CHAINS), keys);
	n = fixture_reserve(&f, &owner, ns[s], NULL, keys, 1 + roll(LEN));
	fixture_commit(&f, &owner, n);
}

static void step_touch(void)
{
	struct block_key key;
	uint32_t s, d = some_block(&s, &key);

	pool_touch(f.p, ns[s], d, 16, 16, f.now);
}

static void step_read(void)
{
	uint32_t i = roll(READERS), s;
	struct block_key key;

	if (readers[i].desc != DESC_NONE) {
		fixture_unpin(&f, i % FIXTURE_SESSIONS, i / FIXTURE_SESSIONS);
		readers[i].desc = DESC_NONE;
		return;
	}
	readers[i].desc = some_block(&s, &key);
	if (readers[i].desc == DESC_NONE)
		return;
	readers[i].gen = block_gen(f.p, readers[i].desc);
	fixture_pin(&f, i % FIXTURE_SESSIONS, i / FIXTURE_SESSIONS, readers[i].desc);
}

static void step_pin(void)
{
	static const char *const labels[] = { "", "a", "b" };
	const struct pool_pin_wish wish = {
		.ttl_ns = roll(2) ? roll(5) * NSEC_PER_SEC : 0,
		.priority = 1 + roll(99),
		.label = labels[roll(3)],
	};
	struct pool_pinned done;
	struct block_key key;
	uint32_t s, d = some_block(&s, &key);
	uint64_t last = f.p->pin.last;
	int r;

	if (d == DESC_NONE)
		return;
	r = pool_pin(f.p, d, block_gen(f.p, d), &wish, f.now, &done);
	assert(r == 0 || r == -EDQUOT);
	if (r == 0) {
		made += done.pin.number > last;
		assert(done.pin.blocks <= done.wanted);
	}
}

static void step_unpin(void)
{
	const struct pool_pin *x = pool_pin_next(f.p, made ? roll((uint32_t)made) : 0);
	uint64_t bytes;

	if (!x)
		return;
	assert(pool_unpin(f.p, x->number, &bytes) == 0);
	taken_back++;
}

static void step_budget(void)
{
	budget = roll(4) ? config.pool_bytes / 100 * roll(60) : config.pool_bytes;
	pool_set_pin_budget(f.p, budget);
}

static void step_policy(void)
{
	pool_ns_set_policy(f.p, ns[roll(SPACES)], roll(2) ? roll(20) * NSEC_PER_SEC : 0, roll(101));
}

static void step_hint(void)
{
	struct pool_hint h = {
		.reuse_ns = roll(2) ? roll(100) * NSEC_PER_SEC : 0,
		.priority = roll(100),
		.ended = !roll(3),
	};
	struct block_key key;
	uint32_t s, d = some_block(&s, &key);

	if (d != DESC_NONE)
		assert(pool_hint(f.p, ns[s], &key, &h, f.now) <= LEN);
}

static void step_time(void)
{
	fixture_pass(&f, roll(3) ? roll(1000) * NSEC_PER_MSEC : 10 * NSEC_PER_SEC);
	if (roll(2))
		pool_tick(f.p, f.now);
	else
		fixture_tick(&f);
}

static void step_flush(void)
{
	struct pool_flushed done = { .freed_blocks = 0 };
	uint32_t before = f.n_pins_ended;

	pool_flush(f.p, ns[roll(SPACES)], 0, f.now, &done);
	assert(done.dropped_pins == f.n_pins_ended - before);
}

/* A reader comes between a mark and its snapshot. */
static void on_scan(struct fixture *x)
{
	uint32_t i = roll(READERS), d = roll(config.max_blocks);

	if (roll(4) || readers[i].desc != DESC_NONE || block_state(f.p, d) != DESC_COMMITTED)
		return;
	readers[i].desc = d;
	readers[i].gen = block_gen(f.p, d);
	fixture_pin(&f, i % FIXTURE_SESSIONS, i / FIXTURE_SESSIONS, d);
}

static const struct {
	void (*run)(void);
	uint32_t weight;
} steps[] = {
	{ step_publish, 40 }, { step_touch, 10 }, { step_read, 20 },  { step_pin, 12 },
	{ step_unpin, 3 },    { step_budget, 2 }, { step_policy, 3 }, { step_hint, 12 },
	{ step_time, 10 },    { step_flush, 1 },
};

static void any_step(void)
{
	uint32_t total = 0, at;

	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++)
		total += steps[i].weight;
	at = roll(total);
	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++) {
		if (at < steps[i].weight) {
			steps[i].run();
			return;
		}
		at -= steps[i].weight;
	}
}

/* What a reader pins, and all before it, is where it was. */
static void check_readers(void)
{
	for (uint32_t i = 0; i < READERS; i++) {
		if (readers[i].desc == DESC_NONE)
			continue;
		assert(block_gen(f.p, readers[i].desc) == readers[i].gen);
		for (uint32_t d = readers[i].desc; d != DESC_NONE; d = block_parent(f.p, d))
			assert(block_state(f.p, d) == DESC_COMMITTED ||
			       block_state(f.p, d) == DESC_DOOMED);
	}
}

static void check_pins(void)
{
	const struct pool_pin *x = NULL;
	uint64_t after = 0, used, limit;
	uint32_t n = 0;

	for (; (x = pool_pin_next(f.p, after)) != NULL; after = x->number, n++) {
		uint64_t gen;

		assert(pool_find(f.p, x->ns, &x->key, &gen) == x->desc);
		for (uint32_t d = x->desc; d != DESC_NONE; d = block_parent(f.p, d))
			assert(block_state(f.p, d) == DESC_COMMITTED && pin_holds(&f.p->pin, d));
	}
	assert(made == n + f.n_pins_ended + taken_back);
	pool_pin_usage(f.p, &limit, &used);
	assert(limit == budget && used <= budget);
}

static void one_seed(uint64_t seed, uint64_t n_steps)
{
	struct pool_stats st;

	rng = seed;
	made = taken_back = 0;
	fixture_init(&f, &config);
	budget = config.pool_bytes * POOL_PIN_BUDGET / 100;
	f.p->flush_step = seed % 2 ? 7 : POOL_FLUSH_STEP;
	pool_owner_init(&owner, 1);
	for (uint32_t s = 0; s < SPACES; s++)
		ns[s] = fixture_ns(&f, "m", (uint8_t)s, s ? 8192 : 4096);
	for (uint32_t i = 0; i < READERS; i++)
		readers[i].desc = DESC_NONE;
	for (uint64_t i = 0; i < n_steps; i++) {
		f.on_scan = on_scan;
		any_step();
		f.on_scan = NULL;
		check_readers();
		check_pins();
		if (i % 32 == 0)
			fixture_audit(&f);
	}
	st = fixture_stats(&f);
	printf("seed %llu: %llu published, %llu evicted, %llu expired, %llu flushed, %llu pins, %u "
	       "ended, %llu taken back\n",
	       (unsigned long long)seed, (unsigned long long)st.published,
	       (unsigned long long)st.evicted, (unsigned long long)st.expired,
	       (unsigned long long)st.flushed, (unsigned long long)made, f.n_pins_ended,
	       (unsigned long long)taken_back);
	/* A run in which nothing of this happens tests nothing. */
	if (n_steps >= 2000)
		assert(st.expired && st.evicted > st.expired && st.flushed && taken_back &&
		       f.n_pins_ended);
	fixture_audit(&f);
	fixture_fini(&f);
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
	return 0;
}
