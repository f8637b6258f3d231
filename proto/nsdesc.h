/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace descriptor: all that must match for K/V to be interchangeable, as tagged fields in
 * one canonical form, so that equal descriptors are equal bytes and a difference can be named.
 *
 * Canonical bytes: for each field that is set, in ascending order of tag: u16 tag, u16 zero, u32
 * length, value; little endian, no padding, nothing behind. Each tag once; NSDESC_ADAPTER and
 * NSDESC_EXTRA may repeat, ascending by value, none twice, no two extras of one name. At most
 * NSDESC_FIELDS_MAX fields. Numbers are 8 bytes; floating point is the IEEE 754 double with -0,
 * infinities and NaN refused; text is UTF-8 without control characters (proto/text.h).
 *
 * 	seed = SHA-256("kvpool-ns-1" || canonical bytes)
 * 	key[i] = SHA-256(key[i - 1], or seed for i = 0 || LE u32 tokens of block i || extra)
 *
 * doc/keys.md has test vectors.
 */
#ifndef KVP_PROTO_NSDESC_H
#define KVP_PROTO_NSDESC_H

#include <stddef.h>
#include <stdint.h>

#define NSDESC_MAX_BYTES     16384u /* of a whole descriptor */
#define NSDESC_FIELDS_MAX    64u
#define NSDESC_TEXT_MAX      512u /* of one text field */
#define NSDESC_ADAPTER_BYTES 40u
#define NSDESC_SEED_BYTES    32u

/* The numbers are part of every key: never reuse or renumber one. */
enum nsdesc_tag {
	NSDESC_MODEL = 1,            /* text, required: name of the model, also for people */
	NSDESC_WEIGHTS = 2,          /* 32 bytes, required: SHA-256 of the whole weights file(s) */
	NSDESC_ADAPTER = 3,          /* 40 bytes: content digest, scale as a double; repeated */
	NSDESC_TYPE_K = 4,           /* text, required: element type of K, "f16" */
	NSDESC_TYPE_V = 5,           /* text, required */
	NSDESC_LAYERS = 6,           /* number, required: layers of this group */
	NSDESC_KV_HEADS = 7,         /* number, required */
	NSDESC_HEAD_DIM_K = 8,       /* number, required */
	NSDESC_HEAD_DIM_V = 9,       /* number, required */
	NSDESC_LAYOUT = 10,          /* text, required: order and strides of the bytes of a block */
	NSDESC_ROTATION = 11,        /* text: rotation of quantised K/V */
	NSDESC_BLOCK_TOKENS = 12,    /* number, required: 1 to 65536 */
	NSDESC_BLOCK_BYTES = 13,     /* number, required: 4 KiB to 256 MiB */
	NSDESC_ROPE_TYPE = 14,       /* text */
	NSDESC_ROPE_FREQ_BASE = 15,  /* double */
	NSDESC_ROPE_FREQ_SCALE = 16, /* double */
	NSDESC_ROPE_SCALING = 17,    /* text: any other parameter of RoPE, as the engine names it */
	NSDESC_TP_RANK = 18,         /* number: below tp_size; both or neither */
	NSDESC_TP_SIZE = 19,         /* number */
	NSDESC_ENGINE = 20,          /* text, required: whose layout, and its version */
	NSDESC_GROUP_RULE = 21,      /* number: enum nsdesc_rule, never 0: absent = all */
	NSDESC_GROUP_N = 22,         /* number: n of TRAILING n, exactly with that rule */
	NSDESC_GROUP_INDEX = 23,     /* number: which group of the model's state; both or neither */
	NSDESC_GROUP_COUNT = 24,     /* number: of how many */
	NSDESC_SALT = 25,            /* 1 to 64 bytes: separates users of one domain */
	NSDESC_EXTRA = 26,           /* text "name=value": what else matters; repeated */
	NSDESC_TAG_MAX = 26,
};

/* The same numbers as enum group_rule of shm/layout.h. */
enum nsdesc_rule {
	NSDESC_RULE_ALL = 0,
	NSDESC_RULE_TRAILING = 1,
	NSDESC_RULE_LAST = 2,
};

enum nsdesc_kind {
	NSDESC_KIND_TEXT,
	NSDESC_KIND_BYTES,
	NSDESC_KIND_NUMBER,
	NSDESC_KIND_DOUBLE,
};

/* What is known of a tag, one row each: drives the checks, the names in messages and the tests. */
struct nsdesc_field {
	enum nsdesc_tag tag;
	const char *name; /* "rope_freq_base" */
	enum nsdesc_kind kind;
	int required, repeated;
	uint64_t min, max; /* of a number, or of the length in bytes */
};

/* NULL for a number that is no tag. */
const struct nsdesc_field *nsdesc_field_find(unsigned int tag);

#define NSDESC_ITEM_HEADER 8u

/* One field in the bytes of a descriptor, which must outlive it. */
struct nsdesc_item {
	unsigned int tag;
	uint32_t n;
	const uint8_t *value;
};

/*
 * Reads the field that starts at byte `at`. Returns where the next one starts, or 0 when no whole
 * field is there. Bounds are checked, the value is not.
 */
size_t nsdesc_next(const uint8_t *bytes, size_t n, size_t at, struct nsdesc_item *ret);

/* Values of a checked item: a number; a double, or the scale of an adapter. */
uint64_t nsdesc_item_number(const struct nsdesc_item *it);
double nsdesc_item_double(const struct nsdesc_item *it);

/* Length of the name in "name=value", or of all when there is no '='. */
size_t nsdesc_item_name(const struct nsdesc_item *it);

/* The order of canonical bytes: by tag, then by value as bytes, a shorter one first. */
int nsdesc_item_compare(const struct nsdesc_item *a, const struct nsdesc_item *b);

/*
 * Building. Fields may come in any order; nsdesc_finish sorts them. Errors stick and are told by
 * nsdesc_finish.
 */
struct nsdesc_builder {
	uint8_t bytes[NSDESC_MAX_BYTES];
	size_t used;
	uint32_t offset[NSDESC_FIELDS_MAX]; /* of each field */
	unsigned int count;
	const char *why;     /* what is wrong, NULL when nothing is */
	unsigned int tag;    /* with which field */
};

void nsdesc_begin(struct nsdesc_builder *b);
void nsdesc_put(struct nsdesc_builder *b, enum nsdesc_tag tag, const void *value, size_t n);
/* NULL: absent */
void nsdesc_put_text(struct nsdesc_builder *b, enum nsdesc_tag tag, const char *text);
/* Group rule 0 (all): absent */
void nsdesc_put_number(struct nsdesc_builder *b, enum nsdesc_tag tag, uint64_t n);
void nsdesc_put_double(struct nsdesc_builder *b, enum nsdesc_tag tag, double x);
void nsdesc_put_adapter(struct nsdesc_builder *b, const uint8_t digest[32], double scale);

/*
 * Writes the canonical bytes to out (NSDESC_MAX_BYTES) and checks them. Returns the length, or
 * -EINVAL with b->why and b->tag (0: it is no single field); out then holds nothing of use.
 */
long nsdesc_finish(struct nsdesc_builder *b, uint8_t *out);

/* The values that the pool itself needs. */
struct nsdesc_values {
	char model[NSDESC_TEXT_MAX + 1];
	uint32_t block_tokens;
	uint64_t block_bytes;
	uint32_t group_rule, group_n;
};

struct nsdesc_error {
	const char *why;   /* "is missing", "is out of range", ... */
	const char *field; /* its name; NULL when the bytes are no list of fields */
	unsigned int tag;  /* its tag; 0 likewise */
};

/*
 * Checks foreign bytes against the table, strictly canonical. Returns 0 and the values, or -EINVAL
 * and *err.
 */
int nsdesc_check(const uint8_t *bytes, size_t n, struct nsdesc_values *ret,
		 struct nsdesc_error *err);

/* seed = SHA-256("kvpool-ns-1" || bytes). */
void nsdesc_seed(const uint8_t *bytes, size_t n, uint8_t seed[NSDESC_SEED_BYTES]);

/*
 * A field that two checked descriptors do not share. Values are for people: digests shortened,
 * absent is "-", long text is cut around the place where it differs; a salt is never shown. Of
 * adapters and extras, the first one is shown that the two do not share.
 */
struct nsdesc_difference {
	const char *field;
	char here[128], there[128];
};

/*
 * Compares two checked descriptors: returns how many fields differ, and the first max of them in
 * the order of the tags. 0 only for equal bytes.
 */
unsigned int nsdesc_compare(const uint8_t *here, size_t n_here, const uint8_t *there,
			    size_t n_there, struct nsdesc_difference *ret, unsigned int max);

#endif
