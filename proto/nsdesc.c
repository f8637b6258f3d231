/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/sha256.h"
#include "proto/nsdesc.h"
#include "proto/text.h"

#define SEED_PREFIX "kvpool-ns-1"

#define TEXT(tag, name, need, many) \
	{ tag, name, NSDESC_KIND_TEXT, need, many, 1, NSDESC_TEXT_MAX }
#define BYTES(tag, name, need, many, min, max) \
	{ tag, name, NSDESC_KIND_BYTES, need, many, min, max }
#define NUMBER(tag, name, need, min, max) \
	{ tag, name, NSDESC_KIND_NUMBER, need, 0, min, max }
#define DOUBLE(tag, name) \
	{ tag, name, NSDESC_KIND_DOUBLE, 0, 0, 8, 8 }

/* In order of the tags: nsdesc_field_find counts on it. */
static const struct nsdesc_field field_table[] = {
	TEXT(NSDESC_MODEL, "model", 1, 0),
	BYTES(NSDESC_WEIGHTS, "weights", 1, 0, 32, 32),
	BYTES(NSDESC_ADAPTER, "adapter", 0, 1, NSDESC_ADAPTER_BYTES, NSDESC_ADAPTER_BYTES),
	TEXT(NSDESC_TYPE_K, "type_k", 1, 0),
	TEXT(NSDESC_TYPE_V, "type_v", 1, 0),
	NUMBER(NSDESC_LAYERS, "layers", 1, 1, 65536),
	NUMBER(NSDESC_KV_HEADS, "kv_heads", 1, 1, 65536),
	NUMBER(NSDESC_HEAD_DIM_K, "head_dim_k", 1, 1, 1u << 20),
	/* 0: V is a part of what K stores (latent attention) */
	NUMBER(NSDESC_HEAD_DIM_V, "head_dim_v", 1, 0, 1u << 20),
	TEXT(NSDESC_LAYOUT, "layout", 1, 0),
	TEXT(NSDESC_ROTATION, "rotation", 0, 0),
	NUMBER(NSDESC_BLOCK_TOKENS, "block_tokens", 1, 1, 65536),
	NUMBER(NSDESC_BLOCK_BYTES, "block_bytes", 1, KIB(4), MIB(256)),
	TEXT(NSDESC_ROPE_TYPE, "rope_type", 0, 0),
	DOUBLE(NSDESC_ROPE_FREQ_BASE, "rope_freq_base"),
	DOUBLE(NSDESC_ROPE_FREQ_SCALE, "rope_freq_scale"),
	TEXT(NSDESC_ROPE_SCALING, "rope_scaling", 0, 0),
	NUMBER(NSDESC_TP_RANK, "tp_rank", 0, 0, 65535),
	NUMBER(NSDESC_TP_SIZE, "tp_size", 0, 1, 65536),
	TEXT(NSDESC_ENGINE, "engine", 1, 0),
	/* "all" is said by leaving it out, so that there is one way to say it */
	NUMBER(NSDESC_GROUP_RULE, "group_rule", 0, NSDESC_RULE_TRAILING, NSDESC_RULE_LAST),
	NUMBER(NSDESC_GROUP_N, "group_n", 0, 1, UINT32_MAX),
	NUMBER(NSDESC_GROUP_INDEX, "group_index", 0, 0, 65535),
	NUMBER(NSDESC_GROUP_COUNT, "group_count", 0, 1, 65536),
	BYTES(NSDESC_SALT, "salt", 0, 0, 1, 64),
	TEXT(NSDESC_EXTRA, "extra", 0, 1),
};

_Static_assert(ARRAY_SIZE(field_table) == NSDESC_TAG_MAX, "a row for each tag");

const struct nsdesc_field *nsdesc_field_find(unsigned int tag)
{
	return tag >= 1 && tag <= NSDESC_TAG_MAX ? &field_table[tag - 1] : NULL;
}

size_t nsdesc_next(const uint8_t *bytes, size_t n, size_t at, struct nsdesc_item *ret)
{
	uint16_t tag, zero;
	uint32_t len;

	if (at > n || n - at < NSDESC_ITEM_HEADER)
		return 0;
	memcpy(&tag, bytes + at, 2);
	memcpy(&zero, bytes + at + 2, 2);
	memcpy(&len, bytes + at + 4, 4);
	len = le32toh(len);
	at += NSDESC_ITEM_HEADER;
	if (zero || len > n - at)
		return 0;
	*ret = (struct nsdesc_item){ le16toh(tag), len, bytes + at };
	return at + len;
}

uint64_t nsdesc_item_number(const struct nsdesc_item *it)
{
	uint64_t le;

	memcpy(&le, it->value, 8);
	return le64toh(le);
}

static double nsdesc_double(const uint8_t *value)
{
	uint64_t bits;
	double x;

	memcpy(&bits, value, 8);
	bits = le64toh(bits);
	memcpy(&x, &bits, 8);
	return x;
}

double nsdesc_item_double(const struct nsdesc_item *it)
{
	return nsdesc_double(it->value + it->n - 8);
}

int nsdesc_item_compare(const struct nsdesc_item *a, const struct nsdesc_item *b)
{
	int d;

	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	d = memcmp(a->value, b->value, MIN(a->n, b->n));
	if (d)
		return d;
	return (a->n > b->n) - (a->n < b->n);
}

size_t nsdesc_item_name(const struct nsdesc_item *it)
{
	const uint8_t *equals = memchr(it->value, '=', it->n);

	return equals ? (size_t)(equals - it->value) : it->n;
}

/* -0 is refused because it equals 0 and has other bytes, the rest because it means nothing. */
static const char *nsdesc_double_why(double x)
{
	return !isfinite(x) || (x == 0 && signbit(x)) ? "is -0 or not a finite number" : NULL;
}

static const char *nsdesc_text_why(const struct nsdesc_item *it)
{
	size_t name = nsdesc_item_name(it);

	if (text_check((const char *)it->value, it->n) < 0)
		return "is not UTF-8 text without control characters";
	if (it->tag == NSDESC_EXTRA && (name == 0 || name == it->n))
		return "is not of the form name=value";
	return NULL;
}

/* What is wrong with the value of one item, whose length is as the table wants it, or NULL. */
static const char *nsdesc_value_why(const struct nsdesc_field *f, const struct nsdesc_item *it)
{
	uint64_t number;

	switch (f->kind) {
	case NSDESC_KIND_TEXT:
		return nsdesc_text_why(it);
	case NSDESC_KIND_NUMBER:
		number = nsdesc_item_number(it);
		return number < f->min || number > f->max ? "is out of range" : NULL;
	case NSDESC_KIND_DOUBLE:
		return nsdesc_double_why(nsdesc_item_double(it));
	case NSDESC_KIND_BYTES:
		break;
	}
	return it->tag == NSDESC_ADAPTER ? nsdesc_double_why(nsdesc_item_double(it)) : NULL;
}

static const char *nsdesc_item_why(const struct nsdesc_field *f, const struct nsdesc_item *it)
{
	int number = f->kind == NSDESC_KIND_NUMBER;
	uint64_t min = number ? 8 : f->min;
	uint64_t max = number ? 8 : f->max;

	if (it->n < min || it->n > max)
		return "has a wrong length";
	return nsdesc_value_why(f, it);
}

/* What is wrong with an item behind another one, or NULL. */
static const char *nsdesc_order_why(const struct nsdesc_field *f, const struct nsdesc_item *before,
				    const struct nsdesc_item *it)
{
	size_t name = nsdesc_item_name(it);
	int d = nsdesc_item_compare(before, it);

	if (d > 0)
		return "is out of order";
	if (d == 0 || (before->tag == it->tag && !f->repeated))
		return "is there twice";
	if (it->tag == NSDESC_EXTRA && before->tag == NSDESC_EXTRA &&
	    nsdesc_item_name(before) == name && !memcmp(before->value, it->value, name))
		return "has two values of one name";
	return NULL;
}

/* What one pass over the fields finds. */
struct nsdesc_scan {
	unsigned int tag, count; /* of the field in hand; fields so far */
	uint32_t seen;           /* a bit per tag */
	uint64_t number[NSDESC_TAG_MAX + 1];
	struct nsdesc_item model;
};

static int nsdesc_has(const struct nsdesc_scan *s, unsigned int tag)
{
	return s->seen >> tag & 1;
}

static void nsdesc_note(struct nsdesc_scan *s, const struct nsdesc_field *f,
			const struct nsdesc_item *it)
{
	s->seen |= 1u << it->tag;
	if (f->kind == NSDESC_KIND_NUMBER)
		s->number[it->tag] = nsdesc_item_number(it);
	if (it->tag == NSDESC_MODEL)
		s->model = *it;
}

/* Reads all items and checks each for itself. Returns NULL, or what is wrong with field s->tag. */
static const char *nsdesc_scan_items(struct nsdesc_scan *s, const uint8_t *bytes, size_t n)
{
	struct nsdesc_item it, before = { 0 };
	const char *why;

	for (size_t at = 0; at < n; before = it) {
		const struct nsdesc_field *f;

		s->tag = 0;
		at = nsdesc_next(bytes, n, at, &it);
		if (!at)
			return "is cut in the middle of a field";
		f = nsdesc_field_find(it.tag);
		if (!f)
			return "has a tag that this version does not know";
		if (++s->count > NSDESC_FIELDS_MAX)
			return "has too many fields";
		s->tag = it.tag;
		why = nsdesc_item_why(f, &it);
		if (!why && before.tag)
			why = nsdesc_order_why(f, &before, &it);
		if (why)
			return why;
		nsdesc_note(s, f, &it);
	}
	return NULL;
}

/* Checks "this one of that many": both or neither, and below. */
static const char *nsdesc_pair_why(struct nsdesc_scan *s, unsigned int index, unsigned int count)
{
	if (nsdesc_has(s, index) != nsdesc_has(s, count)) {
		s->tag = nsdesc_has(s, index) ? count : index;
		return "is missing";
	}
	s->tag = index;
	if (nsdesc_has(s, index) && s->number[index] >= s->number[count])
		return "is out of range";
	return NULL;
}

/* Checks what fields have to do with each other. Returns NULL, or what is wrong with s->tag. */
static const char *nsdesc_scan_whole(struct nsdesc_scan *s)
{
	int trailing = s->number[NSDESC_GROUP_RULE] == NSDESC_RULE_TRAILING;
	const char *why;

	for (unsigned int tag = 1; tag <= NSDESC_TAG_MAX; tag++) {
		s->tag = tag;
		if (nsdesc_field_find(tag)->required && !nsdesc_has(s, tag))
			return "is missing";
	}
	s->tag = NSDESC_GROUP_N;
	if (trailing != nsdesc_has(s, NSDESC_GROUP_N))
		return trailing ? "is missing" : "does not go with this group_rule";
	why = nsdesc_pair_why(s, NSDESC_TP_RANK, NSDESC_TP_SIZE);
	return why ? why : nsdesc_pair_why(s, NSDESC_GROUP_INDEX, NSDESC_GROUP_COUNT);
}

static const char *nsdesc_scan(struct nsdesc_scan *s, const uint8_t *bytes, size_t n)
{
	const char *why;

	*s = (struct nsdesc_scan){ 0 };
	if (n > NSDESC_MAX_BYTES)
		return "is too long";
	why = nsdesc_scan_items(s, bytes, n);
	return why ? why : nsdesc_scan_whole(s);
}

int nsdesc_check(const uint8_t *bytes, size_t n, struct nsdesc_values *ret,
		 struct nsdesc_error *err)
{
	struct nsdesc_scan s;
	const char *why = nsdesc_scan(&s, bytes, n);

	if (why) {
		const struct nsdesc_field *f = nsdesc_field_find(s.tag);

		*err = (struct nsdesc_error){ why, f ? f->name : NULL, s.tag };
		return -EINVAL;
	}
	*ret = (struct nsdesc_values){
		.block_tokens = (uint32_t)s.number[NSDESC_BLOCK_TOKENS],
		.block_bytes = s.number[NSDESC_BLOCK_BYTES],
		.group_rule = (uint32_t)s.number[NSDESC_GROUP_RULE],
		.group_n = (uint32_t)s.number[NSDESC_GROUP_N],
	};
	memcpy(ret->model, s.model.value, s.model.n);
	return 0;
}

void nsdesc_seed(const uint8_t *bytes, size_t n, uint8_t seed[NSDESC_SEED_BYTES])
{
	sha256_pair(SEED_PREFIX, sizeof(SEED_PREFIX) - 1, bytes, n, seed);
}
