/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/atomic.h"
#include "shm/pinset.h"
#include "shm/word.h"

void pinset_clear(struct pinset *s)
{
	if (s->count > PINSET_LIST)
		memset(s->bits, 0, ((size_t)s->max_blocks + 63) / 64 * sizeof(uint64_t));
	else
		for (uint32_t i = 0; i < s->count; i++)
			s->bits[s->list[i] >> 6] = 0;
	s->count = 0;
}

void pinset_add(struct pinset *s, uint32_t d)
{
	if (d >= s->max_blocks || pinset_has(s, d))
		return;
	s->bits[d >> 6] |= UINT64_C(1) << (d & 63);
	if (s->count < PINSET_LIST)
		s->list[s->count] = d;
	s->count++;
}

void pinset_scan(struct pinset *s, const uint64_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		/*
		 * Loaded once: its client can change it at any time. Acquire: pairs with the
		 * release in lookup_unpin.
		 */
		uint64_t h = load_acquire(&words[i]);

		if (h)
			pinset_add(s, hazard_desc(h));
	}
}
