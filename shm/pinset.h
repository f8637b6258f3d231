/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of all hazard words: the set of descriptors that somebody pins. Daemon-side, over
 * memory of the caller.
 */
#ifndef KVP_SHM_PINSET_H
#define KVP_SHM_PINSET_H

#include <stdint.h>

#define PINSET_LIST 2048u

/* bits: (max_blocks + 63) / 64 words, zeroed at the start. */
struct pinset {
	uint64_t *bits;
	uint32_t max_blocks;
	uint32_t count;             /* members */
	uint32_t list[PINSET_LIST]; /* the first of them, so that clearing is cheap */
};

void pinset_clear(struct pinset *s);

/* Adds d; a number that is no descriptor is ignored. */
void pinset_add(struct pinset *s, uint32_t d);

static inline int pinset_has(const struct pinset *s, uint32_t d)
{
	return s->bits[d >> 6] >> (d & 63) & 1;
}

/* Adds what count hazard words of one session name (acquire loads). The words are not trusted. */
void pinset_scan(struct pinset *s, const uint64_t *words, uint32_t count);

#endif
