/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: entries of the index. */
#include <inttypes.h>
#include <string.h>

#include "shm/checker_run.h"
#include "shm/index.h"
#include "shm/word.h"

#define found(r, number, ...) checker_found(r, "entry", number, __VA_ARGS__)

/* An entry, where it stands, and its descriptor's word. */
struct checked_entry {
	uint64_t number, bucket, entry, word;
	uint32_t desc;
};

static int key_same(const struct checker_run *r, uint32_t a, uint32_t b)
{
	struct block_key x = desc_key(&r->c, a), y = desc_key(&r->c, b);

	return !memcmp(&x, &y, sizeof(x));
}

/* The entry is of the life that its descriptor is in. */
static int entry_current(uint64_t entry, uint64_t word)
{
	return entry_gen(entry) == (word_gen(word) & 0xffff);
}

/* What stands before an entry, in both places of its key. */
struct rivals {
	unsigned int same_bucket, same_key;
	uint32_t desc; /* another one with the key */
};

static void count_rivals(const struct checker_run *r, const struct checked_entry *e,
			 uint64_t bucket, struct rivals *rivals)
{
	for (unsigned int i = 0; i < BUCKET_ENTRIES; i++) {
		uint64_t v = load_relaxed(&r->c.index[bucket].entry[i]);
		uint32_t d = entry_desc(v);

		if (!v || bucket * BUCKET_ENTRIES + i >= e->number || d >= r->c.max_blocks)
			continue;
		if (d == e->desc) {
			rivals->same_bucket += bucket == e->bucket;
		} else if (entry_current(v, load_relaxed(&r->c.desc[d].word)) &&
			   key_same(r, d, e->desc)) {
			rivals->same_key++;
			rivals->desc = d;
		}
	}
}

static void check_unique(struct checker_run *r, const struct checked_entry *e,
			 const struct index_place *p)
{
	int before = r->listed[e->desc >> 6] >> (e->desc & 63) & 1;
	struct rivals rivals = { .same_bucket = 0 };

	count_rivals(r, e, p->bucket[0], &rivals);
	if (p->bucket[1] != p->bucket[0])
		count_rivals(r, e, p->bucket[1], &rivals);
	if (rivals.same_bucket || (before && checker_quiet(r)))
		found(r, e->number, "descriptor is %u again, expected it once", e->desc);
	if (rivals.same_key)
		found(r, e->number,
		      "key is that of descriptor %u too, expected one descriptor for it",
		      rivals.desc);
}

static void check_place(struct checker_run *r, const struct checked_entry *e)
{
	struct block_key key = desc_key(&r->c, e->desc);
	struct index_place p = index_place(&r->c, &key);

	if (e->bucket != p.bucket[0] && e->bucket != p.bucket[1])
		found(r, e->number, "bucket is %" PRIu64 ", expected %" PRIu64 " or %" PRIu64,
		      e->bucket, p.bucket[0], p.bucket[1]);
	else if (entry_tag(e->entry) != p.tag)
		found(r, e->number, "tag is 0x%04x, expected 0x%04x", entry_tag(e->entry), p.tag);
	else
		check_unique(r, e, &p);
}

/* Descriptors in an impossible state are reported as such, not here. */
static int may_be_listed(const struct checker_run *r, enum desc_state state)
{
	if (state == DESC_DOOMED)
		return !checker_quiet(r);
	return state == DESC_COMMITTED || state == DESC_EVICTING || state > DESC_STATE_MAX;
}

static void check_entry(struct checker_run *r, uint64_t bucket, unsigned int i, uint64_t entry)
{
	struct checked_entry e = {
		.number = bucket * BUCKET_ENTRIES + i,
		.bucket = bucket,
		.entry = entry,
		.desc = entry_desc(entry),
	};

	if (e.desc >= r->c.max_blocks) {
		found(r, e.number, "descriptor is %u, expected below %u", e.desc, r->c.max_blocks);
		return;
	}
	e.word = load_acquire(&r->c.desc[e.desc].word);
	if (!entry_current(entry, e.word)) {
		if (!checker_quiet(r))
			return; /* stale: it never matches, and a successor clears it */
		found(r, e.number, "gen is 0x%04x, expected 0x%04x", entry_gen(entry),
		      (unsigned int)(word_gen(e.word) & 0xffff));
	} else if (!may_be_listed(r, word_state(e.word))) {
		found(r, e.number, "state of descriptor %u is %s, expected COMMITTED or EVICTING",
		      e.desc, checker_state_name(word_state(e.word)));
	} else {
		check_place(r, &e);
	}
	r->listed[e.desc >> 6] |= UINT64_C(1) << (e.desc & 63);
}

void checker_index(struct checker_run *r)
{
	for (uint64_t b = 0; b <= r->c.bucket_mask; b++)
		for (unsigned int i = 0; i < BUCKET_ENTRIES && !checker_full(r); i++) {
			uint64_t entry = load_acquire(&r->c.index[b].entry[i]);

			if (entry)
				check_entry(r, b, i, entry);
		}
}
