/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "shm/word.h"
#include "tests/pool/fixture.h"

const struct pool_config fixture_config = {
	.pool_bytes = 64 * FIXTURE_GRANULE,
	.max_blocks = 4096,
	.max_namespaces = 4,
	.granule_shift = 16,
	.reservation_ns = 30 * NSEC_PER_SEC,
	.quarantine_ns = NSEC_PER_SEC,
};

static void on_scan_pins(void *ctx, struct pinset *pins)
{
	struct fixture *f = ctx;

	f->scans++;
	if (f->on_scan)
		f->on_scan(f);
	for (uint32_t i = 0; i < FIXTURE_SESSIONS; i++)
		pinset_scan(pins, f->session[i].hazard, f->session[i].hazard_count);
}

static void on_populate(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct fixture *f = ctx;

	f->populated_bytes += bytes;
}

static void on_punch(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct fixture *f = ctx;

	assert(f->n_punch < FIXTURE_RANGES);
	f->punch[f->n_punch++] = (struct fixture_range){ offset, bytes };
}

/* Only of a fixed pool. */
static void on_drop(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct fixture *f = ctx;

	assert(f->p->cfg.fixed);
	f->dropped_bytes += bytes;
	on_punch(ctx, offset, bytes);
}

static void on_wake(void *ctx, struct pool_waiter *w, uint32_t present)
{
	struct fixture *f = ctx;

	assert(list_empty(&w->link));
	f->woken = w;
	f->woken_present = present;
	f->n_woken++;
}

static void on_pin_ended(void *ctx, const struct pool_pin *pin, enum pool_pin_end why)
{
	struct fixture *f = ctx;

	f->pin_ended = *pin;
	f->pin_ended_why = why;
	f->n_pins_ended++;
}

static const struct pool_ops ops = {
	.scan_pins = on_scan_pins,
	.populate = on_populate,
	.punch = on_punch,
	.drop = on_drop,
	.wake = on_wake,
	.pin_ended = on_pin_ended,
};

void fixture_init(struct fixture *f, const struct pool_config *cfg)
{
	uint64_t bytes = session_size(FIXTURE_HAZARDS, 16);

	memset(f, 0, sizeof(*f));
	f->now = 100 * NSEC_PER_SEC;
	for (uint32_t i = 0; i < FIXTURE_SESSIONS; i++) {
		f->session_memory[i] = aligned_alloc(LAYOUT_PAGE, bytes);
		assert(f->session_memory[i]);
		memset(f->session_memory[i], 0, bytes);
		session_format(f->session_memory[i], i + 1, FIXTURE_HAZARDS, 16);
		session_map_trusted(f->session_memory[i], FIXTURE_HAZARDS, 16, &f->session[i]);
	}
	assert(pool_new(cfg, &ops, f, &f->p) == 0);
}

void fixture_fini(struct fixture *f)
{
	f->p = pool_free(f->p);
	for (uint32_t i = 0; i < FIXTURE_SESSIONS; i++)
		free(f->session_memory[i]);
}

size_t fixture_desc(const char *model, uint8_t salt, uint64_t block_bytes, uint8_t *out,
		    struct nsdesc_values *ret)
{
	static const uint8_t weights[32] = { 1, 2, 3 };
	struct nsdesc_builder b;
	struct nsdesc_error err;
	long n;

	nsdesc_begin(&b);
	nsdesc_put_text(&b, NSDESC_MODEL, model);
	nsdesc_put(&b, NSDESC_WEIGHTS, weights, sizeof(weights));
	nsdesc_put_text(&b, NSDESC_TYPE_K, "f16");
	nsdesc_put_text(&b, NSDESC_TYPE_V, "f16");
	nsdesc_put_number(&b, NSDESC_LAYERS, 2);
	nsdesc_put_number(&b, NSDESC_KV_HEADS, 2);
	nsdesc_put_number(&b, NSDESC_HEAD_DIM_K, 64);
	nsdesc_put_number(&b, NSDESC_HEAD_DIM_V, 64);
	nsdesc_put_text(&b, NSDESC_LAYOUT, "test");
	nsdesc_put_number(&b, NSDESC_BLOCK_TOKENS, 16);
	nsdesc_put_number(&b, NSDESC_BLOCK_BYTES, block_bytes);
	nsdesc_put_text(&b, NSDESC_ENGINE, "test 1");
	nsdesc_put(&b, NSDESC_SALT, &salt, 1);
	n = nsdesc_finish(&b, out);
	assert(n > 0);
	assert(nsdesc_check(out, (size_t)n, ret, &err) == 0);
	return (size_t)n;
}

uint32_t fixture_ns(struct fixture *f, const char *model, uint8_t salt, uint64_t block_bytes)
{
	static uint8_t bytes[NSDESC_MAX_BYTES];
	struct nsdesc_values v;
	size_t n = fixture_desc(model, salt, block_bytes, bytes, &v);
	uint32_t ns, near;
	int created;

	assert(pool_ns_open(f->p, bytes, n, &v, f->now, &ns, &created, &near) == 0);
	pool_ns_hold(f->p, ns);
	return ns;
}

void fixture_keys(uint64_t seed, uint32_t n, struct block_key *keys)
{
	uint64_t h = mix64(seed + 1);

	for (uint32_t i = 0; i < n; i++)
		for (unsigned int w = 0; w < KEY_WORDS; w++)
			keys[i].w[w] = h = mix64(h + w + 0x9e3779b97f4a7c15ull);
}

uint32_t fixture_reserve(struct fixture *f, struct pool_owner *o, uint32_t ns,
			 const struct block_key *parent, const struct block_key *keys, uint32_t n)
{
	int r;

	assert(n <= FIXTURE_RUN);
	memset(f->verdict, 0, sizeof(f->verdict));
	r = pool_reserve(f->p, o, ns, parent, keys, n, f->now, f->verdict, f->grant, &f->full);
	assert(r >= 0);
	return (uint32_t)r;
}

void fixture_commit(struct fixture *f, struct pool_owner *o, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert(pool_commit(f->p, o, f->grant[i].desc, f->grant[i].gen, 7 * i, f->now) ==
		       VERDICT_COMMITTED);
}

void fixture_publish(struct fixture *f, struct pool_owner *o, uint32_t ns,
		     const struct block_key *keys, uint32_t n)
{
	uint32_t granted = fixture_reserve(f, o, ns, NULL, keys, n);

	for (uint32_t i = 0; i < n; i++)
		assert(f->verdict[i] == VERDICT_GRANTED || f->verdict[i] == VERDICT_PRESENT);
	fixture_commit(f, o, granted);
	pool_wake(f->p);
}

void fixture_chain(struct fixture *f, struct pool_owner *o, uint32_t ns, uint64_t seed, uint32_t n)
{
	static struct block_key keys[FIXTURE_RUN];

	fixture_keys(seed, n, keys);
	fixture_publish(f, o, ns, keys, n);
}

uint32_t fixture_cached(const struct fixture *f, uint32_t ns, uint64_t seed, uint32_t n)
{
	static struct block_key keys[FIXTURE_RUN];

	fixture_keys(seed, n, keys);
	return pool_present(f->p, ns, keys, n);
}

uint32_t fixture_find(const struct fixture *f, const struct block_key *key)
{
	return block_find(f->p, key);
}

void fixture_pin(struct fixture *f, uint32_t session, uint32_t hazard, uint32_t desc)
{
	store_release(&f->session[session].hazard[hazard], hazard_make(desc, TIER_HOST, 0));
}

void fixture_unpin(struct fixture *f, uint32_t session, uint32_t hazard)
{
	store_release(&f->session[session].hazard[hazard], 0);
}

void fixture_punched(struct fixture *f)
{
	for (uint32_t i = 0; i < f->n_punch; i++)
		pool_punched(f->p, f->punch[i].offset, f->punch[i].bytes);
	f->n_punched += f->n_punch;
	f->n_punch = 0;
}

uint64_t fixture_tick(struct fixture *f)
{
	uint64_t next;

	for (uint32_t i = 0; (next = pool_tick(f->p, f->now)) <= f->now; i++)
		assert(i < 10000);
	pool_wake(f->p);
	return next;
}

void fixture_pass(struct fixture *f, uint64_t ns)
{
	f->now += ns;
}

struct pool_stats fixture_stats(struct fixture *f)
{
	struct pool_stats s;

	pool_get_stats(f->p, &s);
	return s;
}
