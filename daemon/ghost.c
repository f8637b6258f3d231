/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "daemon/ghost.h"

#define ENTRIES_MIN 1024u
#define NOBODY      0xffffffffu

#define WHY_BITS 5u
#define NS_BITS  11u
#define TAG_LOW  (WHY_BITS + NS_BITS)

static_assert(MISS_MAX < 1u << WHY_BITS, "a reason fits an entry");
static_assert(GHOST_NS_OTHER == (1u << NS_BITS) - 1, "and a namespace");

uint32_t ghost_entries(uint32_t max_blocks)
{
	return MAX(1u << log2_floor(MAX(max_blocks / 8, 1u)), ENTRIES_MIN);
}

int ghost_init(struct ghost_ring *g, uint32_t max_blocks, const struct keyhash *hash)
{
	uint32_t n = ghost_entries(max_blocks);

	*g = (struct ghost_ring){ .mask = n - 1, .hash_mask = n / 2 - 1, .hash = *hash };
	/* Zeroed by the kernel page by page: an entry without a reason is none. */
	g->entry = calloc(n, sizeof(*g->entry));
	g->newest = calloc(n / 2, sizeof(*g->newest));
	return g->entry && g->newest ? 0 : -ENOMEM;
}

void ghost_fini(struct ghost_ring *g)
{
	free(g->entry);
	free(g->newest);
	g->entry = NULL;
	g->newest = NULL;
}

/* The tag, in its place in a word. */
static uint64_t tag_of(const struct ghost_ring *g, const struct block_key *key)
{
	return keyhash(&g->hash, key) >> TAG_LOW << TAG_LOW;
}

static uint32_t *bucket_of(const struct ghost_ring *g, uint64_t word)
{
	return &g->newest[word >> TAG_LOW & g->hash_mask];
}

/* How many were written since entry i was. */
static uint32_t age_of(const struct ghost_ring *g, uint32_t i)
{
	return (g->next - 1 - i) & g->mask;
}

/*
 * The next older one of the same bucket, or NOBODY. What a link names may have been overwritten:
 * then it is younger now, or of another bucket.
 */
static uint32_t older_than(const struct ghost_ring *g, uint32_t i)
{
	uint32_t older = g->entry[i].older;

	if (older > g->mask || age_of(g, older) <= age_of(g, i))
		return NOBODY;
	if (bucket_of(g, g->entry[older].word) != bucket_of(g, g->entry[i].word))
		return NOBODY;
	return older;
}

static uint32_t newest_of(const struct ghost_ring *g, uint64_t tag)
{
	uint32_t i = *bucket_of(g, tag);

	return bucket_of(g, g->entry[i].word) == bucket_of(g, tag) ? i : NOBODY;
}

/* The entry with that tag, or NOBODY. */
static uint32_t find_tag(const struct ghost_ring *g, uint64_t tag)
{
	uint32_t i = newest_of(g, tag);

	while (i != NOBODY) {
		uint64_t word = g->entry[i].word;

		if (word >> TAG_LOW == tag >> TAG_LOW && word & ((1u << WHY_BITS) - 1))
			return i;
		i = older_than(g, i);
	}
	return NOBODY;
}

static void write_entry(struct ghost_entry *e, uint64_t tag, uint32_t ns, enum miss_reason why,
			uint64_t now)
{
	e->word = tag | (uint64_t)MIN(ns, GHOST_NS_OTHER) << WHY_BITS | (uint64_t)why;
	e->when = (uint32_t)(now >> GHOST_TIME_SHIFT);
}

static void add(struct ghost_ring *g, uint64_t tag, uint32_t ns, enum miss_reason why, uint64_t now)
{
	uint32_t i = g->next, *newest = bucket_of(g, tag);

	write_entry(&g->entry[i], tag, ns, why, now);
	/* Perhaps of another bucket by now: that is found out when it is followed. */
	g->entry[i].older = *newest == i ? NOBODY : *newest;
	*newest = i;
	g->next = (i + 1) & g->mask;
}

void ghost_note(struct ghost_ring *g, const struct block_key *key, uint32_t ns,
		enum miss_reason why, uint64_t now)
{
	add(g, tag_of(g, key), ns, why, now);
}

void ghost_renew(struct ghost_ring *g, const struct block_key *key, uint32_t ns,
		 enum miss_reason why, uint64_t now)
{
	uint64_t tag = tag_of(g, key);
	uint32_t i = find_tag(g, tag);

	if (i == NOBODY)
		add(g, tag, ns, why, now);
	else
		write_entry(&g->entry[i], tag, ns, why, now);
}

int ghost_find(const struct ghost_ring *g, const struct block_key *key, struct ghost_found *ret)
{
	uint32_t i = find_tag(g, tag_of(g, key));
	const struct ghost_entry *e;

	if (i == NOBODY)
		return 0;
	e = &g->entry[i];
	*ret = (struct ghost_found){
		.why = (enum miss_reason)(e->word & ((1u << WHY_BITS) - 1)),
		.ns = (uint32_t)(e->word >> WHY_BITS & GHOST_NS_OTHER),
		.when = (uint64_t)e->when << GHOST_TIME_SHIFT,
	};
	return 1;
}

void ghost_prefetch(const struct ghost_ring *g, const struct block_key *key)
{
	touch_line(bucket_of(g, tag_of(g, key)));
}
