/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two descriptors: two bytes say how long the first one is, the rest is the second one. What is
 * accepted is canonical: made again from its fields it is the same bytes. What is said of two
 * descriptors can be shown, and nothing is said only of equal ones.
 */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include "base/compiler.h"
#include "proto/nsdesc.h"
#include "proto/text.h"
#include "tests/fuzz/descriptor.h"
#include "tests/fuzz/fuzz.h"

static struct nsdesc_builder builder;

/* Builds the fields again, last one first. */
static void check_canonical(const uint8_t *bytes, size_t n)
{
	struct nsdesc_item items[NSDESC_FIELDS_MAX];
	uint8_t again[NSDESC_MAX_BYTES];
	unsigned int count = 0;

	for (size_t at = 0; at < n; count++) {
		at = nsdesc_next(bytes, n, at, &items[count]);
		assert(at);
	}
	nsdesc_begin(&builder);
	while (count--)
		nsdesc_put(&builder, (enum nsdesc_tag)items[count].tag, items[count].value,
			   items[count].n);
	assert(nsdesc_finish(&builder, again) == (long)n);
	assert(!memcmp(again, bytes, n));
}

static int check_one(const uint8_t *bytes, size_t n)
{
	struct nsdesc_values v;
	struct nsdesc_error err = { 0 };

	if (nsdesc_check(bytes, n, &v, &err) < 0) {
		assert(err.why && *err.why && !err.field == !err.tag);
		return 0;
	}
	assert(*v.model && !text_check(v.model, strlen(v.model)));
	assert(v.block_tokens >= 1 && v.block_tokens <= 65536);
	assert(v.block_bytes >= KIB(4) && v.block_bytes <= MIB(256));
	assert(v.group_rule <= NSDESC_RULE_LAST);
	assert((v.group_rule == NSDESC_RULE_TRAILING) == (v.group_n > 0));
	check_canonical(bytes, n);
	return 1;
}

static void check_shown(const char *text)
{
	assert(memchr(text, 0, sizeof(((struct nsdesc_difference *)0)->here)));
	assert(*text && !text_check(text, strlen(text)));
}

static void check_two(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
	struct nsdesc_difference d[NSDESC_TAG_MAX];
	unsigned int n = nsdesc_compare(a, n_a, b, n_b, d, NSDESC_TAG_MAX);

	assert(n <= NSDESC_TAG_MAX);
	assert((n == 0) == (n_a == n_b && !memcmp(a, b, n_a)));
	assert(nsdesc_compare(b, n_b, a, n_a, NULL, 0) == n);
	for (unsigned int i = 0; i < n; i++) {
		assert(d[i].field && (!i || d[i].field != d[i - 1].field));
		check_shown(d[i].here);
		check_shown(d[i].there);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct descriptor whole;
	size_t first;
	int good_a, good_b;

	if (n < 2)
		return 0;
	first = data[0] | (size_t)data[1] << 8;
	data += 2;
	n -= 2;
	first = MIN(first, n);
	good_a = check_one(data, first);
	good_b = check_one(data + first, n - first);
	if (good_a && good_b)
		check_two(data, first, data + first, n - first);
	if (good_a) {
		whole = descriptor_good(&descriptor_full);
		check_two(data, first, whole.data, whole.n);
	}
	return 0;
}

static void tell_two(void (*tell)(const void *data, size_t n), const struct parts *p,
		     const struct parts *q)
{
	struct descriptor a = descriptor_good(p), b = descriptor_good(q);
	uint8_t both[2 + 2 * NSDESC_MAX_BYTES];

	both[0] = (uint8_t)a.n;
	both[1] = (uint8_t)(a.n >> 8);
	memcpy(both + 2, a.data, a.n);
	memcpy(both + 2 + a.n, b.data, b.n);
	tell(both, 2 + a.n + b.n);
}

void fuzz_seeds(void (*tell)(const void *data, size_t n))
{
	char text[NSDESC_TEXT_MAX + 1];
	struct parts p = descriptor_full, q = descriptor_full;

	tell_two(tell, &descriptor_minimal, &descriptor_full);
	tell_two(tell, &descriptor_full, &descriptor_full);
	tell_two(tell, &descriptor_minimal, &descriptor_minimal);
	part_set(&q, (struct part){ NSDESC_ADAPTER, "another", 0.1 });
	part_set(&q, (struct part){ NSDESC_EXTRA, "flash_attn=0" });
	tell_two(tell, &p, &q);
	/* Long texts that differ late, of characters of several bytes. */
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[sizeof(text) - 1] = '\0';
	part_set(&p, (struct part){ NSDESC_LAYOUT, text });
	tell_two(tell, &p, &q);
	part_set(&q, (struct part){ NSDESC_LAYOUT, text + 2 });
	tell_two(tell, &p, &q);
}
