/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: descriptors, their parents and their slots. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shm/checker_run.h"
#include "shm/desc.h"
#include "shm/word.h"

#define found(r, number, ...) checker_found(r, "descriptor", number, __VA_ARGS__)

#define BIT(state) (1u << (state))

/*
 * What each state asks for. parents: states that the block before it can have; key, ns and depth
 * count then. A child is RESERVED under RESERVED in one run, COMMITTED under COMMITTED; an eviction
 * and a doom begin at the deepest block. tiers: copies of it exist, and so does its check. listed:
 * it has an index entry when nothing is under way.
 */
static const struct {
	unsigned int parents;
	int tiers, listed;
} rules[] = {
	[DESC_FREE] = { 0, 0, 0 },
	[DESC_RESERVED] = { BIT(DESC_RESERVED) | BIT(DESC_COMMITTED), 0, 0 },
	[DESC_COMMITTED] = { BIT(DESC_COMMITTED), 1, 1 },
	[DESC_EVICTING] = { BIT(DESC_COMMITTED) | BIT(DESC_EVICTING), 1, 0 },
	[DESC_DOOMED] = { BIT(DESC_COMMITTED) | BIT(DESC_DOOMED), 1, 0 },
	[DESC_QUARANTINE] = { 0, 0, 0 },
};

static const char *const names[] = {
	[DESC_FREE] = "FREE",
	[DESC_RESERVED] = "RESERVED",
	[DESC_COMMITTED] = "COMMITTED",
	[DESC_EVICTING] = "EVICTING",
	[DESC_DOOMED] = "DOOMED",
	[DESC_QUARANTINE] = "QUARANTINE",
};

const char *checker_state_name(enum desc_state state)
{
	return state <= DESC_STATE_MAX ? names[state] : "unknown";
}

/* "A, B or C" for a set of states. */
static const char *state_list(unsigned int states, char *text, size_t n)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned int s = 0; s <= DESC_STATE_MAX; s++) {
		const char *glue = !at ? "" : states >> (s + 1) ? ", " : " or ";

		if (states & BIT(s))
			at += (size_t)snprintf(text + at, n - at, "%s%s", glue, names[s]);
	}
	return text;
}

static uint32_t slot_of(const struct checker_run *r, uint32_t d, enum tier tier)
{
	return load_relaxed(control_slot(&r->c, d, tier));
}

/* Units of the pool that d's slot covers; 0 when it has none there. */
static uint64_t slot_units(const struct checker_run *r, uint32_t d)
{
	uint32_t slot = slot_of(r, d, TIER_HOST), ns = load_relaxed(&r->c.desc[d].ns);
	uint64_t units;

	if (slot == SLOT_NONE || word_state(load_relaxed(&r->c.desc[d].word)) == DESC_FREE ||
	    !checker_ns_sound(r, ns))
		return 0;
	units = r->c.ns[ns].stride >> SLOT_SHIFT;
	return slot < r->pool_units && units <= r->pool_units - slot ? units : 0;
}

/* The descriptor before d that has a unit which d has too. */
static uint32_t slot_owner(const struct checker_run *r, uint32_t d, uint64_t unit)
{
	uint32_t other;

	for (other = 0; other < d; other++) {
		uint32_t slot = slot_of(r, other, TIER_HOST);

		if (unit - slot < slot_units(r, other))
			break;
	}
	return other;
}

/* Takes the units of d's slot; a unit that another block has is reported. */
static void take_slot(struct checker_run *r, uint32_t d)
{
	uint32_t slot = slot_of(r, d, TIER_HOST);
	uint64_t n = slot_units(r, d);

	for (uint64_t u = slot; u < slot + n; u++) {
		if (r->taken[u >> 6] >> (u & 63) & 1) {
			found(r, d, "slot is %u, which descriptor %u has too, expected its own",
			      slot, slot_owner(r, d, u));
			return;
		}
		r->taken[u >> 6] |= UINT64_C(1) << (u & 63);
	}
}

/* The slot lies in an extent of the namespace, on a multiple of the stride from its start. */
static void check_extent(struct checker_run *r, uint32_t d, uint32_t slot)
{
	uint32_t ns = load_relaxed(&r->c.desc[d].ns), shift = r->c.head->granule_shift;
	uint64_t offset = slot_offset(slot), stride = r->c.ns[ns].stride, start, end;
	const struct granule *g = &r->c.granule[offset >> shift];
	uint32_t first = g->first;

	if (g->ns != ns) {
		found(r, d, "namespace of its slot is %s, expected %u", checker_number(g->ns).text,
		      ns);
		return;
	}
	if (first > offset >> shift || r->c.granule[first].count > r->c.head->n_granules - first)
		return; /* reported with the granule */
	start = (uint64_t)first << shift;
	end = start + ((uint64_t)r->c.granule[first].count << shift);
	if (offset + stride > end)
		found(r, d,
		      "end of its slot is %" PRIu64 ", expected at most %" PRIu64
		      ", the end of its extent",
		      offset + stride, end);
	else if ((offset - start) % stride)
		found(r, d, "slot is %u, expected a multiple of %" PRIu64 " from %" PRIu64 " on",
		      slot, stride >> SLOT_SHIFT, start >> SLOT_SHIFT);
}

static void check_host_slot(struct checker_run *r, uint32_t d)
{
	uint32_t slot = slot_of(r, d, TIER_HOST), ns = load_relaxed(&r->c.desc[d].ns);

	if (slot == SLOT_NONE)
		return;
	if (slot >= r->pool_units) {
		found(r, d, "slot is %u, expected below %" PRIu64, slot, r->pool_units);
		return;
	}
	if (!checker_ns_sound(r, ns))
		return; /* reported with the namespace, or the identity */
	take_slot(r, d);
	check_extent(r, d, slot);
}

/* A tier's bit and its slot go together. */
static void check_tiers(struct checker_run *r, uint32_t d, uint64_t word)
{
	unsigned int tiers = word_tiers(word), memory = (1u << TIER_MEMORY_MAX) - 1;
	unsigned int known = memory | 1u << TIER_DISK | 1u << TIER_REMOTE;

	if (!(tiers & memory) || tiers & ~known) {
		found(r, d, "tiers is 0x%02x, expected one of memory or more", tiers);
		return;
	}
	for (unsigned int t = 0; t < TIER_MEMORY_MAX; t++) {
		uint32_t slot = slot_of(r, d, (enum tier)t);

		if (tiers >> t & 1 && slot == SLOT_NONE)
			found(r, d, "slot of tier %u is none, expected one", t);
		if (!(tiers >> t & 1) && slot != SLOT_NONE && checker_quiet(r))
			found(r, d, "slot of tier %u is %u, expected none", t, slot);
	}
}

static void check_parent(struct checker_run *r, uint32_t d, enum desc_state state)
{
	const struct desc *k = &r->c.desc[d], *p;
	uint32_t parent = load_relaxed(&k->parent), depth = load_relaxed(&k->depth);
	enum desc_state is;
	char list[96];

	if (parent == DESC_NONE) {
		if (depth)
			found(r, d, "depth is %u, expected 0, as it has no parent", depth);
		return;
	}
	if (parent >= r->c.max_blocks) {
		found(r, d, "parent is %u, expected below %u", parent, r->c.max_blocks);
		return;
	}
	p = &r->c.desc[parent];
	is = word_state(load_acquire(&p->word));
	if (is > DESC_STATE_MAX || !(rules[state].parents & BIT(is)))
		found(r, d, "parent is %s, expected %s", checker_state_name(is),
		      state_list(rules[state].parents, list, sizeof(list)));
	else if (load_relaxed(&p->ns) != load_relaxed(&k->ns))
		found(r, d, "ns is %u, expected %u, as its parent's", load_relaxed(&k->ns),
		      load_relaxed(&p->ns));
	else if (depth != load_relaxed(&p->depth) + 1 || !depth)
		found(r, d, "depth is %u, expected %u, one more than its parent's", depth,
		      load_relaxed(&p->depth) + 1);
}

static void check_identity(struct checker_run *r, uint32_t d, enum desc_state state)
{
	uint32_t ns = load_relaxed(&r->c.desc[d].ns);
	uint64_t check = load_relaxed(&r->c.aux[d].check);

	if (rules[state].tiers && check != desc_check(&r->c, d)) {
		found(r, d, "check is 0x%08" PRIx64 ", expected 0x%08x", check,
		      desc_check(&r->c, d));
		return;
	}
	if (ns >= r->c.max_namespaces || load_acquire(&r->c.ns[ns].state) != NS_OPEN) {
		found(r, d, "ns is %u, expected an open namespace", ns);
		return;
	}
	check_parent(r, d, state);
}

/* A reservation has the slot that it was made for in one tier. */
static int has_slot(const struct checker_run *r, uint32_t d)
{
	int any = 0;

	for (unsigned int t = 0; t < TIER_MEMORY_MAX; t++)
		any |= slot_of(r, d, (enum tier)t) != SLOT_NONE;
	return any;
}

static void check_state(struct checker_run *r, uint32_t d, uint64_t word)
{
	enum desc_state state = word_state(word);
	int listed = r->listed[d >> 6] >> (d & 63) & 1;

	if (state == DESC_EVICTING && checker_quiet(r))
		found(r, d, "state is EVICTING, expected no eviction under way");
	if (rules[state].tiers)
		check_tiers(r, d, word);
	else if (word_tiers(word))
		found(r, d, "tiers is 0x%02x, expected 0 while %s", word_tiers(word), names[state]);
	if (state == DESC_RESERVED && !has_slot(r, d)) {
		if (checker_quiet(r))
			found(r, d, "slot is none, expected one while RESERVED");
		return; /* half-made: what else stands in it counts for nothing */
	}
	if (rules[state].parents)
		check_identity(r, d, state);
	if (state != DESC_FREE)
		check_host_slot(r, d);
	if (rules[state].listed && !listed && checker_quiet(r))
		found(r, d, "index entry is missing, expected one while %s", names[state]);
}

static void check_desc(struct checker_run *r, uint32_t d)
{
	uint64_t word = load_acquire(&r->c.desc[d].word);

	if (word_state(word) > DESC_STATE_MAX) {
		found(r, d, "state is %u, expected %u to %u", word_state(word), DESC_FREE,
		      DESC_STATE_MAX);
		return;
	}
	if (word_flags(word))
		found(r, d, "flags is 0x%x, expected 0", word_flags(word));
	check_state(r, d, word);
}

void checker_descs(struct checker_run *r)
{
	for (uint32_t d = 0; d < r->c.max_blocks && !checker_full(r); d++)
		check_desc(r, d);
}
