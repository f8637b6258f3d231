/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: session regions, whose clients can write anything there. */
#include <inttypes.h>

#include "shm/checker_run.h"
#include "shm/word.h"

#define found(r, number, ...) checker_found(r, "session", number, __VA_ARGS__)

static void check_number(struct checker_run *r, uint32_t i, const char *what, uint64_t is,
			 uint64_t want)
{
	if (is != want)
		found(r, i, "%s is %" PRIu64 ", expected %" PRIu64, what, is, want);
}

static void check_header(struct checker_run *r, uint32_t i, const struct session_map *m)
{
	const struct session_header *h = m->head;
	uint64_t zero = h->zero[0] | h->zero[1];

	for (unsigned int w = 0; w < sizeof(h->zero2) / sizeof(h->zero2[0]); w++)
		zero |= h->zero2[w];
	for (unsigned int b = 0; b < sizeof(h->zero3); b++)
		zero |= h->zero3[b];
	check_number(r, i, "magic", h->magic, SESSION_MAGIC);
	check_number(r, i, "layout_version", h->layout_version, LAYOUT_VERSION);
	check_number(r, i, "header_bytes", h->header_bytes, LAYOUT_PAGE);
	check_number(r, i, "total_bytes", h->total_bytes,
		     session_size(m->hazard_count, m->touch_count));
	check_number(r, i, "hazard_offset", h->hazard_offset,
		     (uint64_t)((const char *)m->hazard - (const char *)h));
	check_number(r, i, "hazard_count", h->hazard_count, m->hazard_count);
	check_number(r, i, "touch_offset", h->touch_offset,
		     (uint64_t)((const char *)m->touch - (const char *)h));
	check_number(r, i, "touch_count", h->touch_count, m->touch_count);
	check_number(r, i, "zero", zero, 0);
}

static void check_hazard(struct checker_run *r, uint32_t i, uint32_t k, uint64_t h)
{
	if (!h)
		return;
	if (hazard_desc(h) >= r->c.max_blocks)
		found(r, i, "descriptor in hazard word %u is %u, expected below %u", k,
		      hazard_desc(h), r->c.max_blocks);
	else if (hazard_tier(h) >= TIER_MEMORY_MAX)
		found(r, i, "tier in hazard word %u is %u, expected below %u", k, hazard_tier(h),
		      TIER_MEMORY_MAX);
}

/* A record that was ever written names its own place in the ring, and one that was taken. */
static void check_touch(struct checker_run *r, uint32_t i, uint32_t k, uint64_t head)
{
	const struct touch *t = &r->k->sessions[i].touch[k];
	uint64_t seq = load_acquire(&t->seq);

	if (!seq)
		return;
	if (((seq - 1) & (r->k->sessions[i].touch_count - 1)) != k || seq > head)
		found(r, i,
		      "seq of touch %u is %" PRIu64 ", expected its place and at most %" PRIu64, k,
		      seq, head);
}

/* Where its client is quiet, what it asked for is what it hit and missed. */
static void check_counters(struct checker_run *r, uint32_t i, const uint64_t *counter)
{
	uint64_t sum = counter[COUNTER_HIT_TOKENS] + counter[COUNTER_MISS_TOKENS];

	check_number(r, i, "counter of asked tokens", counter[COUNTER_ASKED_TOKENS], sum);
}

void checker_session(struct checker_run *r, uint32_t i)
{
	const struct session_map *m = &r->k->sessions[i];
	uint64_t head = load_acquire(&m->head->touch_head);

	check_header(r, i, m);
	for (uint32_t k = 0; k < m->hazard_count && !checker_full(r); k++)
		check_hazard(r, i, k, load_acquire(&m->hazard[k]));
	if (!checker_quiet(r))
		return;
	for (uint32_t k = 0; k < m->touch_count && !checker_full(r); k++)
		check_touch(r, i, k, head);
	check_counters(r, i, m->head->counter);
}
