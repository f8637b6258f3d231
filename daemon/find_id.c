/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "daemon/find_id.h"
#include "daemon/model.h"

/* The digits before the first one that is not given, as bytes of a key: the last may be half. */
int find_id_init(struct find_id *f, uint32_t ns, const char *id)
{
	char bits[2 * KEY_BYTES + 1], mask[2 * KEY_BYTES + 1];
	size_t n = strlen(id);

	if (!n || n > 2 * KEY_BYTES)
		return -EINVAL;
	memset(bits, '0', sizeof(bits));
	memset(mask, '0', sizeof(mask));
	memcpy(bits, id, n);
	memset(mask, 'f', n);
	bits[2 * KEY_BYTES] = mask[2 * KEY_BYTES] = '\0';
	*f = (struct find_id){ .ns = ns, .desc = DESC_NONE };
	if (hex_decode(bits, f->bits, KEY_BYTES) < 0)
		return -EINVAL;
	return hex_decode(mask, f->mask, KEY_BYTES);
}

static int is_it(const struct find_id *f, const struct pool *p, uint32_t d)
{
	const struct desc *k = &p->control.desc[d];

	if (block_state(p, d) != DESC_COMMITTED)
		return 0;
	for (unsigned int i = 0; i < KEY_WORDS; i++)
		if ((load_relaxed(&k->key[i]) ^ f->bits[i]) & f->mask[i])
			return 0;
	return f->ns == NS_NONE || block_namespace(p, d)->number == f->ns;
}

int find_id_step(struct find_id *f, const struct pool *p)
{
	uint32_t end = MIN(f->at + FIND_ID_STEP, p->fresh_block);

	for (; f->at < end && f->found < 2; f->at++) {
		if (!is_it(f, p, f->at))
			continue;
		if (!f->found++) {
			f->desc = f->at;
			f->gen = block_gen(p, f->at);
		}
	}
	return f->at < p->fresh_block && f->found < 2;
}

int find_id_is_there(const struct find_id *f, const struct pool *p)
{
	return f->found && block_gen(p, f->desc) == f->gen &&
	       block_state(p, f->desc) == DESC_COMMITTED;
}

void find_id_of(const struct pool *p, uint32_t desc, char ret[FIND_ID_DIGITS + 1])
{
	struct block_key key = desc_key(&p->control, desc);

	hex_encode(&key, FIND_ID_DIGITS / 2, ret);
}
