/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: a sound region has no finding, and each corruption has exactly its own. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shm/checker.h"
#include "shm/desc.h"
#include "shm/word.h"
#include "tests/shm/region.h"

/*
 * The sound region: namespace 0 has the chain 0 to 5, below it the run 6, 7 RESERVED, and the
 * DOOMED block 8 below 3; namespace 1 has the chain 9, 10. 11 is QUARANTINE, 12 to 31 are FREE.
 * Each lives for the first time: gen 1. Extents of two granules: 0 and 1, 2 and 3; granules 4 and 5
 * are nobody's, as is namespace 2.
 */
#define BLOCKS     32u
#define RESERVED_A 6u
#define RESERVED_B 7u
#define DOOMED     8u
#define OTHER_A    9u
#define OTHER_B    10u
#define QUARANTINE 11u
#define FREE       12u

#define WORD(state, tiers, gen) ((uint64_t)(gen) << 16 | (tiers) << 8 | (state))

static struct region r;
static struct block_key keys[16], other[4];
static char text[64][256];
static uint32_t n_texts;

static int setup(void **state)
{
	struct region_config cfg = {
		.max_blocks = BLOCKS, .namespaces = 2, .granules = 2, .spare_granules = 2,
		.spare_namespaces = 1, .sessions = 2,
	};
	uint32_t d[16];

	region_init(&r, &cfg);
	region_keys(1, 100, 16, keys);
	region_keys(2, 100, 4, other);
	region_publish(&r, keys, 6, d);
	assert_int_equal(region_reserve(&r, &keys[6], d[5], 0), RESERVED_A);
	assert_int_equal(region_reserve(&r, &keys[7], RESERVED_A, 0), RESERVED_B);
	assert_int_equal(region_reserve(&r, &keys[8], d[3], 0), DOOMED);
	region_commit(&r, DOOMED);
	d[0] = DOOMED;
	doom_mark(&r.index, d, 1);
	assert_int_equal(region_reserve(&r, &other[0], DESC_NONE, 1), OTHER_A);
	region_commit(&r, OTHER_A);
	assert_int_equal(region_reserve(&r, &other[1], OTHER_A, 1), OTHER_B);
	region_commit(&r, OTHER_B);
	assert_int_equal(region_reserve(&r, &other[2], OTHER_B, 1), QUARANTINE);
	region_quarantine(&r, QUARANTINE);
	r.session[0].hazard[2] = hazard_make(DOOMED, TIER_HOST, 0);
	return 0;
}

static int teardown(void **state)
{
	region_fini(&r);
	return 0;
}

static void collect(void *ctx, const char *t)
{
	assert_true(n_texts < ARRAY_SIZE(text));
	assert_true(strlen(t) < sizeof(text[0]));
	strcpy(text[n_texts++], t);
}

static int64_t check(enum checker_mode mode, uint32_t max)
{
	size_t bytes = checker_scratch(r.base, r.bytes);
	void *scratch = malloc(bytes + 1);
	struct checker k = {
		.mode = mode, .sessions = r.session, .n_sessions = 2, .scratch = scratch,
		.scratch_bytes = bytes, .max_findings = max, .found = collect,
	};
	int64_t n;

	assert_non_null(scratch);
	memset(scratch, 0xff, bytes);
	n_texts = 0;
	n = checker_run(&k, r.base, r.bytes);
	free(scratch);
	assert_int_equal(n, n_texts);
	return n;
}

static void sound_region_has_no_finding(void **state)
{
	check(CHECKER_QUIET, 64);
	if (n_texts)
		fail_msg("%s", text[0]);
	check(CHECKER_AFTER_KILL, 64);
	if (n_texts)
		fail_msg("%s", text[0]);
}

static void empty_region_has_no_finding(void **state)
{
	region_fini(&r);
	region_init(&r, &(struct region_config){ .max_blocks = 1000, .sessions = 2 });
	assert_int_equal(check(CHECKER_QUIET, 64), 0);
	assert_int_equal(check(CHECKER_AFTER_KILL, 64), 0);
}

/* Where a row writes. */
enum place { HEADER, NAMESPACE, GRANULE, ENTRY, DESC, AUX, SESSION, HAZARD, TOUCH };

#define FIELD(type, f) offsetof(struct type, f), sizeof(((struct type *)0)->f)
#define H(f)    HEADER, 0, FIELD(control_header, f)
#define N(i, f) NAMESPACE, i, FIELD(ns_entry, f)
#define G(i, f) GRANULE, i, FIELD(granule, f)
#define D(i, f) DESC, i, FIELD(desc, f)
#define A(i, f) AUX, i, FIELD(desc_aux, f)
#define S(f)    SESSION, 1, FIELD(session_header, f)
#define WORDS   0, sizeof(uint64_t)

/*
 * One corruption: value is written to the field, or xor-ed to what stands there. quiet and killed
 * are what the two modes find, lines divided by '\n', NULL for nothing. In a text, @ stands for the
 * number of the entry that names descriptor entry_of, # for the number of its second place.
 */
struct row {
	enum place place;
	uint64_t index;
	size_t at, n;
	uint64_t value;
	int xor;
	const char *quiet, *killed;
};

#define BOTH(t) t, t

static const struct row rows[] = {
	{ H(magic), 1, 0, BOTH("header: magic is 1, expected 3552306854158685771") },
	{ H(layout_version), 1, 0, BOTH("header: layout_version is 1, expected 2") },
	{ H(header_bytes), 64, 0, BOTH("header: header_bytes is 64, expected 4096") },
	{ H(max_blocks), 0, 0, BOTH("header: max_blocks is 0, expected 1 to 4294967280") },
	{ H(max_namespaces), 65537, 0,
	  BOTH("header: max_namespaces is 65537, expected 1 to 65536") },
	{ H(granule_shift), 11, 0, BOTH("header: granule_shift is 11, expected 12 to 40") },
	{ H(granule_shift), 255, 0, BOTH("header: granule_shift is 255, expected 12 to 40") },
	{ H(pool_bytes), 100000, 0,
	  BOTH("header: pool_bytes is 100000, expected 1 or more times 65536") },
	{ H(ns_offset), 8192, 0, BOTH("header: ns_offset is 8192, expected 4096") },
	{ H(granule_offset), 1, 0, BOTH("header: granule_offset is 1, expected 8192") },
	{ H(index_offset), 2, 0, BOTH("header: index_offset is 2, expected 12288") },
	{ H(desc_offset), 3, 0, BOTH("header: desc_offset is 3, expected 16384") },
	{ H(aux_offset), 4, 0, BOTH("header: aux_offset is 4, expected 20480") },
	{ H(n_buckets), 16, 0, BOTH("header: n_buckets is 16, expected 8") },
	{ H(n_granules), 7, 0, BOTH("header: n_granules is 7, expected 6") },
	{ H(total_bytes), 4096, 0, BOTH("header: total_bytes is 4096, expected 24576") },
	{ H(zero), 1, 0, BOTH("header: zero is 1, expected 0") },
	{ H(zero2), 2, 0, BOTH("header: zero2 is 2, expected 0") },
	{ H(zero3), 4, 0, BOTH("header: zero3 is 4, expected 0") },
	{ H(epoch), 0, 0, BOTH("header: epoch is 0, expected 1 to 18446744073709551615") },
	{ H(state), 3, 0, BOTH("header: state is 3, expected 1 to 2") },

	{ N(2, state), 2, 0, BOTH("namespace 2: state is 2, expected 0 or 1") },
	{ N(1, block_tokens), 0, 0, BOTH("namespace 1: block_tokens is 0, expected 1 or more") },
	{ N(1, block_bytes), 100, 0,
	  BOTH("namespace 1: block_bytes is 100, expected 4096 to 268435456") },
	{ N(1, stride), 8192, 0, BOTH("namespace 1: stride is 8192, expected 4096") },
	{ N(1, group_rule), 3, 0, BOTH("namespace 1: group_rule is 3, expected 0 to 2") },
	{ N(1, zero), 1, 0, BOTH("namespace 1: zero is not 0, expected 0") },

	{ G(4, zero), 1, 0, BOTH("granule 4: zero is not 0, expected 0") },
	{ G(3, ns), 7, 0,
	  BOTH("granule 3: ns is 7, expected 1\ngranule 3: ns is 7, expected an open namespace") },
	{ G(3, ns), NS_NONE, 0, "granule 3: ns is none, expected 1", NULL },
	{ G(3, ns), 0, 0, BOTH("granule 3: ns is 0, expected 1") },
	{ G(3, count), 1, 0, BOTH("granule 3: count is 1, expected 0") },
	{ G(3, first), 3, 0,
	  BOTH("granule 3: first is 3, expected 2\ngranule 3: count is 0, expected 1 to 3") },
	{ G(3, first), 1, 0,
	  BOTH("granule 3: first is 1, expected 2\n"
	       "granule 3: first is 1, expected the start of its extent") },
	{ G(3, first), 9, 0,
	  BOTH("granule 3: first is 9, expected 2\n"
	       "granule 3: first is 9, expected the start of its extent") },
	{ G(2, count), 5, 0, BOTH("granule 2: count is 5, expected 1 to 4") },
	{ G(4, first), 77, 0, NULL, NULL }, /* nobody's: its other fields count for nothing */
	{ G(4, count), 77, 0, NULL, NULL },
	{ G(4, gen), 77, 0, NULL, NULL },

	{ D(FREE, word), WORD(DESC_FREE, 0, 99), 0, NULL, NULL },
	{ D(FREE, word), WORD(6, 0, 1), 0, BOTH("descriptor 12: state is 6, expected 0 to 5") },
	{ D(FREE, word), WORD(15, 0, 1), 0, BOTH("descriptor 12: state is 15, expected 0 to 5") },
	{ D(FREE, word), WORD(DESC_FREE, 1, 1), 0,
	  BOTH("descriptor 12: tiers is 0x01, expected 0 while FREE") },
	{ D(FREE, word), WORD(DESC_FREE | 2 << 4, 0, 1), 0,
	  BOTH("descriptor 12: flags is 0x2, expected 0") },
	{ A(FREE, check), 1, 0, NULL, NULL },
	{ A(RESERVED_B, check), 1, 0, NULL, NULL }, /* a time */
	{ D(FREE, slot[0]), 2, 0, NULL, NULL },

	{ D(RESERVED_B, word), WORD(DESC_RESERVED, 1, 1), 0,
	  BOTH("descriptor 7: tiers is 0x01, expected 0 while RESERVED") },
	{ D(RESERVED_B, slot[0]), SLOT_NONE, 0,
	  "descriptor 7: slot is none, expected one while RESERVED", NULL },
	{ D(RESERVED_B, depth), 9, 0,
	  BOTH("descriptor 7: depth is 9, expected 7, one more than its parent's") },
	{ D(RESERVED_B, ns), 2, 0, BOTH("descriptor 7: ns is 2, expected an open namespace") },
	{ D(RESERVED_B, ns), 1, 0,
	  BOTH("descriptor 7: ns is 1, expected 0, as its parent's\n"
	       "descriptor 7: namespace of its slot is 0, expected 1") },
	{ D(RESERVED_B, parent), FREE, 0,
	  BOTH("descriptor 7: parent is FREE, expected RESERVED or COMMITTED") },
	{ D(RESERVED_B, parent), DOOMED, 0,
	  BOTH("descriptor 7: parent is DOOMED, expected RESERVED or COMMITTED") },
	{ D(RESERVED_B, parent), 32, 0, BOTH("descriptor 7: parent is 32, expected below 32") },
	{ D(RESERVED_B, parent), DESC_NONE, 0,
	  BOTH("descriptor 7: depth is 7, expected 0, as it has no parent") },
	{ D(RESERVED_B, slot[0]), 2, 0,
	  BOTH("descriptor 7: slot is 2, which descriptor 2 has too, expected its own") },

	{ D(5, word), WORD(DESC_COMMITTED, 0, 1), 0,
	  BOTH("descriptor 5: tiers is 0x00, expected one of memory or more") },
	{ D(5, word), WORD(DESC_COMMITTED, 0x41, 1), 0,
	  BOTH("descriptor 5: tiers is 0x41, expected one of memory or more") },
	{ D(5, word), WORD(DESC_COMMITTED, 0x31, 1), 0, NULL, NULL }, /* also on disk and remote */
	{ D(5, word), WORD(DESC_COMMITTED, 3, 1), 0,
	  BOTH("descriptor 5: slot of tier 1 is none, expected one") },
	{ D(5, slot[1]), 9, 0, "descriptor 5: slot of tier 1 is 9, expected none", NULL },
	{ D(5, word), WORD(DESC_COMMITTED, 5, 1), 0,
	  BOTH("descriptor 5: tiers is 0x05, expected one of memory or more") },
	{ D(5, slot[0]), SLOT_NONE, 0, BOTH("descriptor 5: slot of tier 0 is none, expected one") },
	{ D(5, slot[0]), 96, 0, BOTH("descriptor 5: slot is 96, expected below 96") },
	{ D(5, slot[0]), 0, 0,
	  BOTH("descriptor 5: slot is 0, which descriptor 0 has too, expected its own") },
	{ D(5, slot[0]), 60, 0, BOTH("descriptor 5: namespace of its slot is 1, expected 0") },
	{ D(5, slot[0]), 64, 0,
	  BOTH("descriptor 5: namespace of its slot is none, expected 0") },
	{ D(5, crc), 1, 1, BOTH("descriptor 5: check is CHECK") },
	{ A(5, writer), 1, 1, BOTH("descriptor 5: check is CHECK") },
	{ A(5, check), 1, 1, BOTH("descriptor 5: check is CHECK") },
	{ D(5, parent), 3, 0, BOTH("descriptor 5: check is CHECK") },
	{ D(DOOMED, depth), 1, 0, BOTH("descriptor 8: check is CHECK") },

	{ D(OTHER_A, word), WORD(DESC_EVICTING, 1, 1), 0,
	  "descriptor 9: state is EVICTING, expected no eviction under way\n"
	  "descriptor 10: parent is EVICTING, expected COMMITTED",
	  "descriptor 10: parent is EVICTING, expected COMMITTED" },
	{ D(OTHER_B, word), WORD(DESC_EVICTING, 1, 1), 0,
	  "descriptor 10: state is EVICTING, expected no eviction under way", NULL },
	{ D(OTHER_B, word), WORD(DESC_RESERVED, 0, 1), 0,
	  BOTH("entry @: state of descriptor 10 is RESERVED, expected COMMITTED or EVICTING") },
	{ D(OTHER_B, word), WORD(DESC_FREE, 0, 1), 0,
	  BOTH("entry @: state of descriptor 10 is FREE, expected COMMITTED or EVICTING") },
	{ D(OTHER_B, word), WORD(DESC_QUARANTINE, 0, 1), 0,
	  BOTH("entry @: state of descriptor 10 is QUARANTINE, expected COMMITTED or EVICTING") },
	{ D(OTHER_B, word), WORD(DESC_DOOMED, 1, 1), 0,
	  "entry @: state of descriptor 10 is DOOMED, expected COMMITTED or EVICTING", NULL },
	{ D(OTHER_B, word), WORD(DESC_RESERVED, 0, 2), 0,
	  "entry @: gen is 0x0001, expected 0x0002", NULL },
	{ D(3, word), WORD(DESC_DOOMED, 1, 1), 0,
	  "entry @: state of descriptor 3 is DOOMED, expected COMMITTED or EVICTING\n"
	  "descriptor 4: parent is DOOMED, expected COMMITTED",
	  "descriptor 4: parent is DOOMED, expected COMMITTED" },
	{ D(3, word), WORD(DESC_QUARANTINE, 0, 1), 0,
	  BOTH("entry @: state of descriptor 3 is QUARANTINE, expected COMMITTED or EVICTING\n"
	       "descriptor 4: parent is QUARANTINE, expected COMMITTED\n"
	       "descriptor 8: parent is QUARANTINE, expected COMMITTED or DOOMED") },
	{ D(QUARANTINE, parent), 31, 0, NULL, NULL },
	{ D(QUARANTINE, depth), 31, 0, NULL, NULL },
	{ D(QUARANTINE, slot[0]), 0, 0,
	  BOTH("descriptor 11: slot is 0, which descriptor 0 has too, expected its own\n"
	       "descriptor 11: namespace of its slot is 0, expected 1") },

	{ ENTRY, 4, WORDS, 0, 0,
	  "descriptor 4: index entry is missing, expected one while COMMITTED", NULL },
	{ ENTRY, 4, WORDS, 1ull << 32, 1, "entry @: gen is 0x0000, expected 0x0001", NULL },
	{ ENTRY, 4, WORDS, 1ull << 63, 1, BOTH("entry @: tag is TAG") },
	{ ENTRY, 4, WORDS, UINT32_MAX, 1,
	  "entry @: descriptor is 4294967289, expected below 32\n"
	  "descriptor 4: index entry is missing, expected one while COMMITTED",
	  "entry @: descriptor is 4294967289, expected below 32" },

	{ S(magic), 1, 0, BOTH("session 1: magic is 1, expected 3552853380157167179") },
	{ S(layout_version), 1, 0, BOTH("session 1: layout_version is 1, expected 2") },
	{ S(header_bytes), 2, 0, BOTH("session 1: header_bytes is 2, expected 4096") },
	{ S(total_bytes), 2, 0, BOTH("session 1: total_bytes is 2, expected 12288") },
	{ S(hazard_offset), 2, 0, BOTH("session 1: hazard_offset is 2, expected 4096") },
	{ S(hazard_count), 2, 0, BOTH("session 1: hazard_count is 2, expected 8") },
	{ S(touch_offset), 2, 0, BOTH("session 1: touch_offset is 2, expected 8192") },
	{ S(touch_count), 2, 0, BOTH("session 1: touch_count is 2, expected 16") },
	{ S(zero), 1, 0, BOTH("session 1: zero is 1, expected 0") },
	{ S(zero2), 1, 0, BOTH("session 1: zero is 1, expected 0") },
	{ S(zero3), 1, 0, BOTH("session 1: zero is 1, expected 0") },
	{ S(counter), 7, 0, NULL, NULL }, /* the first counter is lookups */
	{ S(counter[COUNTER_ASKED_TOKENS]), 7, 0,
	  "session 1: counter of asked tokens is 7, expected 0", NULL },
	{ HAZARD, 3, WORDS, 33, 0,
	  BOTH("session 1: descriptor in hazard word 3 is 32, expected below 32") },
	{ HAZARD, 3, WORDS, 1ull << 63, 0,
	  BOTH("session 1: descriptor in hazard word 3 is 4294967295, expected below 32") },
	{ HAZARD, 3, WORDS, 2ull << 32 | 1, 0,
	  BOTH("session 1: tier in hazard word 3 is 2, expected below 2") },
	{ HAZARD, 3, WORDS, 5ull << 40 | 1ull << 32 | 32, 0, NULL, NULL },
	{ TOUCH, 5, FIELD(touch, seq), 5, 0,
	  "session 1: seq of touch 5 is 5, expected its place and at most 0", NULL },
	{ TOUCH, 5, FIELD(touch, seq), 6, 0,
	  "session 1: seq of touch 5 is 6, expected its place and at most 0", NULL },
};

static uint64_t entry_number(uint32_t d)
{
	uint64_t i = 0;

	while (entry_desc(r.c.index[i / BUCKET_ENTRIES].entry[i % BUCKET_ENTRIES]) != d)
		i++;
	return i;
}

static char *address(const struct row *row)
{
	uint64_t e = row->place == ENTRY ? entry_number((uint32_t)row->index) : 0;

	switch (row->place) {
	case HEADER: return (char *)r.c.head;
	case NAMESPACE: return (char *)&r.c.ns[row->index];
	case GRANULE: return (char *)&r.c.granule[row->index];
	case ENTRY: return (char *)&r.c.index[e / BUCKET_ENTRIES].entry[e % BUCKET_ENTRIES];
	case DESC: return (char *)&r.c.desc[row->index];
	case AUX: return (char *)&r.c.aux[row->index];
	case SESSION: return (char *)r.session[row->index].head;
	case HAZARD: return (char *)&r.session[1].hazard[row->index];
	case TOUCH: return (char *)&r.session[1].touch[row->index];
	}
	return NULL;
}

/*
 * One finding against the line that is expected: @ is the number of the entry, and CHECK and TAG
 * stand for two numbers that follow from hashes and only must differ.
 */
static int line_matches(const char *got, const char *want, size_t n, uint64_t entry)
{
	char line[256];
	const char *at = memchr(want, '@', n);
	unsigned int is, expected;

	if (at)
		snprintf(line, sizeof(line), "%.*s%llu%.*s", (int)(at - want), want,
			 (unsigned long long)entry, (int)(want + n - at - 1), at + 1);
	else
		snprintf(line, sizeof(line), "%.*s", (int)n, want);
	n = strlen(line);
	if (n < 5 || (strcmp(line + n - 5, "CHECK") && strcmp(line + n - 3, "TAG")))
		return !strcmp(got, line);
	n = (size_t)(strstr(line, " is ") - line) + 4;
	return !strncmp(got, line, n) &&
	       sscanf(got + n, "0x%x, expected 0x%x", &is, &expected) == 2 && is != expected;
}

static void expect_findings(size_t row, const char *mode, const char *want, uint64_t entry)
{
	uint32_t n = 0;

	for (const char *line = want; line && *line; n++) {
		size_t len = strcspn(line, "\n");

		if (n >= n_texts || !line_matches(text[n], line, len, entry))
			fail_msg("row %zu, %s: \"%s\", expected \"%.*s\"", row, mode,
				 n < n_texts ? text[n] : "nothing", (int)len, line);
		line += len + (line[len] == '\n');
	}
	if (n_texts > n)
		fail_msg("row %zu, %s: \"%s\", expected nothing more", row, mode, text[n]);
}

static void each_corruption_has_its_finding(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		char *at = address(row) + row->at;
		uint64_t entry = 0, before = 0, value;
		size_t n = MIN(row->n, sizeof(before));

		if (row->quiet && strchr(row->quiet, '@'))
			entry = entry_number((uint32_t)row->index);
		memcpy(&before, at, n);
		value = row->xor ? before ^ row->value : row->value;
		memcpy(at, &value, n);
		check(CHECKER_QUIET, 64);
		expect_findings(i, "quiet", row->quiet, entry);
		check(CHECKER_AFTER_KILL, 64);
		expect_findings(i, "after a kill", row->killed, entry);
		memcpy(at, &before, n);
	}
	assert_int_equal(check(CHECKER_QUIET, 64), 0);
}

/* One place for an entry of d that is empty now. */
static uint64_t *empty_entry(uint64_t bucket)
{
	for (unsigned int i = BUCKET_ENTRIES; i-- > 0;)
		if (!r.c.index[bucket].entry[i])
			return &r.c.index[bucket].entry[i];
	fail_msg("bucket %llu is full", (unsigned long long)bucket);
	return NULL;
}

static void expect_one(enum checker_mode mode, const char *part)
{
	check(mode, 64);
	if (n_texts != 1 || !strstr(text[0], part))
		fail_msg("%u findings, \"%s\", expected one with \"%s\"", n_texts,
			 n_texts ? text[0] : "", part);
}

static void entry_in_two_places(void **state)
{
	struct index_place p = index_place(&r.c, &keys[4]);
	uint64_t number = entry_number(4);
	uint64_t entry = r.c.index[number / BUCKET_ENTRIES].entry[number % BUCKET_ENTRIES];
	uint64_t *second = empty_entry(p.bucket[number / BUCKET_ENTRIES == p.bucket[0]]);
	uint64_t *third;

	*second = entry;
	expect_one(CHECKER_QUIET, "descriptor is 4 again, expected it once");
	assert_int_equal(check(CHECKER_AFTER_KILL, 64), 0); /* it was being moved */
	third = empty_entry(p.bucket[0]);
	*third = entry;
	expect_one(CHECKER_AFTER_KILL, "descriptor is 4 again, expected it once");
}

static void entry_in_a_foreign_bucket(void **state)
{
	struct index_place p = index_place(&r.c, &keys[4]);
	uint64_t number = entry_number(4), bucket = 0;
	uint64_t *e = &r.c.index[number / BUCKET_ENTRIES].entry[number % BUCKET_ENTRIES];
	char part[64];

	while (bucket == p.bucket[0] || bucket == p.bucket[1])
		bucket++;
	*empty_entry(bucket) = *e;
	*e = 0;
	snprintf(part, sizeof(part), "bucket is %llu, expected %llu or %llu",
		 (unsigned long long)bucket, (unsigned long long)p.bucket[0],
		 (unsigned long long)p.bucket[1]);
	expect_one(CHECKER_QUIET, part);
	expect_one(CHECKER_AFTER_KILL, part);
}

static void one_key_in_two_descriptors(void **state)
{
	uint32_t d = region_reserve(&r, &keys[0], DESC_NONE, 0);

	assert_int_equal(d, FREE);
	region_commit(&r, d);
	expect_one(CHECKER_QUIET, "too, expected one descriptor for it");
	expect_one(CHECKER_AFTER_KILL, "too, expected one descriptor for it");
}

/* Blocks of three units: one that hangs over the end of its extent, and one between two places. */
static void slots_of_a_larger_stride(void **state)
{
	r.c.ns[1].block_bytes = 3 * SLOT_UNIT - 100;
	r.c.ns[1].stride = 3 * SLOT_UNIT;
	r.c.desc[OTHER_A].slot[0] = 32;
	r.c.desc[OTHER_B].slot[0] = 35;
	r.c.desc[QUARANTINE].slot[0] = 38;
	assert_int_equal(check(CHECKER_QUIET, 64), 0);
	r.c.desc[QUARANTINE].slot[0] = 39;
	expect_one(CHECKER_QUIET, "slot is 39, expected a multiple of 3 from 32 on");
	r.c.desc[QUARANTINE].slot[0] = 62;
	expect_one(CHECKER_QUIET,
		   "end of its slot is 266240, expected at most 262144, the end of its extent");
	r.c.desc[QUARANTINE].slot[0] = 95;
	r.c.desc[QUARANTINE].ns = 1;
	expect_one(CHECKER_QUIET, "namespace of its slot is none, expected 1");
}

/* Killed while an extent of two granules was handed out, or taken back: in either order. */
static void extent_on_its_way(void **state)
{
	struct granule *g = &r.c.granule[4];

	g[0].first = g[1].first = 4;
	g[0].count = 2;
	g[1].ns = 1;
	assert_int_equal(check(CHECKER_AFTER_KILL, 64), 0);
	expect_one(CHECKER_QUIET, "granule 5: ns is 1, expected none, as in granule 4");
	g[0].count = 0;
	assert_int_equal(check(CHECKER_AFTER_KILL, 64), 0);
	expect_one(CHECKER_QUIET, "granule 5: first is 4, expected the start of its extent");
	g[0].count = 2;
	g[0].ns = 1;
	g[1].ns = NS_NONE;
	assert_int_equal(check(CHECKER_AFTER_KILL, 64), 0);
	expect_one(CHECKER_QUIET, "granule 5: ns is none, expected 1");
	g[1].ns = 1;
	assert_int_equal(check(CHECKER_QUIET, 64), 0);
}

static void findings_are_bounded(void **state)
{
	for (uint32_t d = 0; d < BLOCKS; d++)
		r.c.desc[d].word = 15;
	assert_int_equal(check(CHECKER_QUIET, 3), 3);
	assert_int_equal(check(CHECKER_QUIET, 0), 0);
	assert_true(check(CHECKER_QUIET, 64) >= BLOCKS);
}

static void scratch_is_measured(void **state)
{
	uint64_t scratch[2];
	struct checker k = {
		.scratch = scratch, .scratch_bytes = sizeof(scratch), .max_findings = 9,
		.found = collect,
	};

	assert_int_equal(checker_scratch(r.base, r.bytes), 3 * sizeof(uint64_t)); /* 32 + 96 bits */
	assert_int_equal(checker_run(&k, r.base, r.bytes), -EINVAL);
	assert_int_equal(checker_scratch(r.base, r.bytes - 1), 0);
	assert_int_equal(checker_scratch(r.base, 0), 0);
	n_texts = 0;
	assert_int_equal(checker_run(&k, r.base, 100), 1);
	assert_string_equal(text[0], "header: size of the region is 100, expected 4096 or more");
	n_texts = 0;
	assert_int_equal(checker_run(&k, r.base, r.bytes + 4096), 1);
	assert_string_equal(text[0], "header: size of the region is 28672, expected 24576");
}

int main(void)
{
#define WITH_REGION(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_REGION(sound_region_has_no_finding),
		WITH_REGION(empty_region_has_no_finding),
		WITH_REGION(each_corruption_has_its_finding),
		WITH_REGION(entry_in_two_places),
		WITH_REGION(entry_in_a_foreign_bucket),
		WITH_REGION(one_key_in_two_descriptors),
		WITH_REGION(slots_of_a_larger_stride),
		WITH_REGION(extent_on_its_way),
		WITH_REGION(findings_are_bounded),
		WITH_REGION(scratch_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
