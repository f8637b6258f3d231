/* SPDX-License-Identifier: Apache-2.0 */
/* Making a descriptor. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "proto/nsdesc.h"

void nsdesc_begin(struct nsdesc_builder *b)
{
	b->used = 0;
	b->count = 0;
	b->why = NULL;
	b->tag = 0;
}

static void nsdesc_refuse(struct nsdesc_builder *b, unsigned int tag, const char *why)
{
	b->tag = tag;
	b->why = why;
}

void nsdesc_put(struct nsdesc_builder *b, enum nsdesc_tag tag, const void *value, size_t n)
{
	uint16_t head[2] = { htole16((uint16_t)tag), 0 };
	uint32_t len = htole32((uint32_t)n);
	uint8_t *at = b->bytes + b->used;

	if (b->why)
		return;
	if (b->count == NSDESC_FIELDS_MAX) {
		nsdesc_refuse(b, tag, "is one field too many");
		return;
	}
	if (n > NSDESC_MAX_BYTES || b->used + NSDESC_ITEM_HEADER + n > NSDESC_MAX_BYTES) {
		nsdesc_refuse(b, tag, "does not fit");
		return;
	}
	b->offset[b->count++] = (uint32_t)b->used;
	memcpy(at, head, 4);
	memcpy(at + 4, &len, 4);
	if (n)
		memcpy(at + NSDESC_ITEM_HEADER, value, n);
	b->used += NSDESC_ITEM_HEADER + n;
}

void nsdesc_put_text(struct nsdesc_builder *b, enum nsdesc_tag tag, const char *text)
{
	if (text)
		nsdesc_put(b, tag, text, strlen(text));
}

void nsdesc_put_number(struct nsdesc_builder *b, enum nsdesc_tag tag, uint64_t n)
{
	uint64_t le = htole64(n);

	/* The one value that is said by leaving the field out. */
	if (tag == NSDESC_GROUP_RULE && n == NSDESC_RULE_ALL)
		return;
	nsdesc_put(b, tag, &le, 8);
}

void nsdesc_put_double(struct nsdesc_builder *b, enum nsdesc_tag tag, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, 8);
	bits = htole64(bits);
	nsdesc_put(b, tag, &bits, 8);
}

void nsdesc_put_adapter(struct nsdesc_builder *b, const uint8_t digest[32], double scale)
{
	uint8_t value[NSDESC_ADAPTER_BYTES];
	uint64_t bits;

	memcpy(&bits, &scale, 8);
	bits = htole64(bits);
	memcpy(value, digest, 32);
	memcpy(value + 32, &bits, 8);
	nsdesc_put(b, NSDESC_ADAPTER, value, sizeof(value));
}

static struct nsdesc_item nsdesc_built(const struct nsdesc_builder *b, unsigned int i)
{
	struct nsdesc_item it = { 0 };

	(void)nsdesc_next(b->bytes, b->used, b->offset[i], &it);
	return it;
}

/* Sorts the fields by tag and value (insertion: they are few, and mostly in order). */
static void nsdesc_sort(struct nsdesc_builder *b)
{
	for (unsigned int i = 1; i < b->count; i++) {
		struct nsdesc_item moved = nsdesc_built(b, i);
		uint32_t offset = b->offset[i];
		unsigned int k = i;

		for (; k > 0; k--) {
			struct nsdesc_item before = nsdesc_built(b, k - 1);

			if (nsdesc_item_compare(&before, &moved) <= 0)
				break;
			b->offset[k] = b->offset[k - 1];
		}
		b->offset[k] = offset;
	}
}

long nsdesc_finish(struct nsdesc_builder *b, uint8_t *out)
{
	struct nsdesc_values values;
	struct nsdesc_error err;
	size_t n = 0;

	if (b->why)
		return -EINVAL;
	nsdesc_sort(b);
	for (unsigned int i = 0; i < b->count; i++) {
		size_t size = NSDESC_ITEM_HEADER + nsdesc_built(b, i).n;

		memcpy(out + n, b->bytes + b->offset[i], size);
		n += size;
	}
	if (nsdesc_check(out, n, &values, &err) < 0) {
		nsdesc_refuse(b, err.tag, err.why);
		return -EINVAL;
	}
	return (long)n;
}
