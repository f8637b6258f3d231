/* SPDX-License-Identifier: Apache-2.0 */
/* Two descriptors, as small and as large as they come, to be changed field by field. */
#ifndef KVP_TESTS_FUZZ_DESCRIPTOR_H
#define KVP_TESTS_FUZZ_DESCRIPTOR_H

#include <stddef.h>

#include "proto/nsdesc.h"

#define PARTS_MAX 80

/*
 * One field to build: text in text; numbers and doubles in x; a digest as text whose SHA-256 it is,
 * of an adapter with its scale in x; a salt in the first n bytes of text.
 */
struct part {
	enum nsdesc_tag tag;
	const char *text;
	double x;
	size_t n;
};

struct parts {
	struct part part[PARTS_MAX];
	unsigned int count;
};

/* The same that tests/unit/keys_vectors.py knows: what is required, and everything. */
extern const struct parts descriptor_minimal, descriptor_full;

/* The first part of a tag, or NULL. */
struct part *part_of(const struct parts *parts, enum nsdesc_tag tag);

void part_remove(struct parts *parts, enum nsdesc_tag tag);
/* Replaces the first part of its tag, or adds it. */
void part_set(struct parts *parts, struct part part);
void part_add(struct parts *parts, struct part part);

/* As nsdesc_finish. */
long descriptor_build(const struct parts *parts, struct nsdesc_builder *b, uint8_t *out);

struct descriptor {
	uint8_t data[NSDESC_MAX_BYTES];
	size_t n;
};

/* Builds what must succeed. */
struct descriptor descriptor_good(const struct parts *parts);

#endif
