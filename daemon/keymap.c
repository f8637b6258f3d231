/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "daemon/keymap.h"
#include "shm/word.h"

/*
 * Every key lies anywhere in the table, so with small pages each look at it walks the page tables
 * first: that was most of what a reservation cost. Where the kernel gives no huge pages, nothing
 * changes.
 */
static void ask_for_huge_pages(void *memory, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = ALIGN_UP((uintptr_t)memory, page);
	uintptr_t end = ((uintptr_t)memory + bytes) & ~(page - 1);

	if (start < end)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

int keymap_init(struct keymap *m, uint32_t max_blocks, const struct control *control, uint64_t salt)
{
	uint64_t n = pow2_ceil(max_blocks + max_blocks / 3 + 1);
	uint64_t *entry = calloc(n, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	ask_for_huge_pages(entry, n * sizeof(*entry));
	*m = (struct keymap){ .entry = entry, .mask = n - 1, .salt = salt, .control = control };
	return 0;
}

void keymap_fini(struct keymap *m)
{
	free(m->entry);
	m->entry = NULL;
}

/* All of the key counts: its words are the client's choice. */
uint32_t keymap_hash(const struct keymap *m, const struct block_key *key)
{
	uint64_t h = m->salt;

	for (unsigned int i = 0; i < KEY_WORDS; i++)
		h = mix64(h ^ key->w[i]);
	return (uint32_t)h;
}

static int key_is(const struct keymap *m, uint32_t d, const struct block_key *key)
{
	const uint64_t *w = m->control->desc[d].key;

	return load_relaxed(&w[0]) == key->w[0] && load_relaxed(&w[1]) == key->w[1] &&
	       load_relaxed(&w[2]) == key->w[2] && load_relaxed(&w[3]) == key->w[3];
}

uint32_t keymap_find(const struct keymap *m, const struct block_key *key)
{
	uint32_t h = keymap_hash(m, key);

	for (uint64_t at = h & m->mask; m->entry[at]; at = (at + 1) & m->mask) {
		uint64_t e = m->entry[at];

		if (e >> 32 == h && key_is(m, entry_desc(e), key))
			return entry_desc(e);
	}
	return DESC_NONE;
}

void keymap_prefetch(const struct keymap *m, const struct block_key *key)
{
	__builtin_prefetch(&m->entry[keymap_hash(m, key) & m->mask]);
}

void keymap_add(struct keymap *m, uint32_t d)
{
	struct block_key key = desc_key(m->control, d);
	uint32_t h = keymap_hash(m, &key);
	uint64_t at = h & m->mask;

	while (m->entry[at])
		at = (at + 1) & m->mask;
	m->entry[at] = (uint64_t)h << 32 | ((uint64_t)d + 1);
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

void keymap_remove(struct keymap *m, uint32_t d)
{
	struct block_key key = desc_key(m->control, d);
	uint64_t at = keymap_hash(m, &key) & m->mask;

	while (entry_desc(m->entry[at]) != d)
		at = (at + 1) & m->mask;
	close_gap(m, at);
}
