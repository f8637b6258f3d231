/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/keymap.h"
#include "shm/word.h"

#define SIZE_MIN UINT64_C(256)

static int set_size(struct keymap *m, uint64_t n)
{
	uint64_t *old = m->entry, *entry = calloc(n, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	for (uint64_t i = 0; old && i <= m->mask; i++) {
		uint64_t at = old[i] >> 32 & (n - 1);

		if (!old[i])
			continue;
		while (entry[at])
			at = (at + 1) & (n - 1);
		entry[at] = old[i];
	}
	free(old);
	m->entry = entry;
	m->mask = n - 1;
	return 0;
}

int keymap_init(struct keymap *m, const struct control *control, const struct keyhash *hash)
{
	*m = (struct keymap){ .hash = *hash, .control = control };
	return set_size(m, SIZE_MIN);
}

void keymap_fini(struct keymap *m)
{
	free(m->entry);
	m->entry = NULL;
}

uint32_t keymap_hash(const struct keymap *m, const struct block_key *key)
{
	return (uint32_t)keyhash(&m->hash, key);
}

static int key_is(const struct keymap *m, uint32_t d, const struct block_key *key)
{
	const uint64_t *w = m->control->desc[d].key;

	return load_relaxed(&w[0]) == key->w[0] && load_relaxed(&w[1]) == key->w[1] &&
	       load_relaxed(&w[2]) == key->w[2] && load_relaxed(&w[3]) == key->w[3];
}

uint32_t keymap_find(const struct keymap *m, const struct block_key *key)
{
	uint32_t h;

	if (!m->used)
		return DESC_NONE;
	h = keymap_hash(m, key);
	for (uint64_t at = h & m->mask; m->entry[at]; at = (at + 1) & m->mask) {
		int second;
		uint32_t d = keymap_desc(m->entry[at], &second);

		if (m->entry[at] >> 32 == h && key_is(m, d, key))
			return d;
	}
	return DESC_NONE;
}

int keymap_reserve(struct keymap *m)
{
	uint64_t n = m->mask + 1;

	return m->used < n - n / 4 ? 0 : set_size(m, 2 * n);
}

void keymap_add(struct keymap *m, const struct block_key *key, uint32_t d, int second)
{
	uint32_t h = keymap_hash(m, key);
	uint64_t at = h & m->mask;

	while (m->entry[at])
		at = (at + 1) & m->mask;
	m->entry[at] = (uint64_t)h << 32 | (second ? KEYMAP_SECOND : 0) | ((uint64_t)d + 1);
	m->used++;
}

/* The entry that stays empty: later ones of the same run move up, each no further than its home. */
static void close_gap(struct keymap *m, uint64_t gap)
{
	for (uint64_t at = (gap + 1) & m->mask; m->entry[at]; at = (at + 1) & m->mask) {
		uint64_t home = m->entry[at] >> 32 & m->mask;

		if (((at - home) & m->mask) < ((at - gap) & m->mask))
			continue;
		m->entry[gap] = m->entry[at];
		gap = at;
	}
	m->entry[gap] = 0;
}

int keymap_remove(struct keymap *m, const struct block_key *key, uint32_t d)
{
	uint64_t at = keymap_hash(m, key) & m->mask;
	int second;

	while (keymap_desc(m->entry[at], &second) != d)
		at = (at + 1) & m->mask;
	close_gap(m, at);
	m->used--;
	/* Where there is no memory it just stays as large as it is. */
	if (m->mask + 1 > SIZE_MIN && m->used < m->mask / 8)
		(void)set_size(m, (m->mask + 1) / 2);
	return second;
}
