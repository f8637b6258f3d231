/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "shm/desc.h"
#include "shm/evict.h"

static void unlist(struct index_writer *w, uint32_t d)
{
	struct block_key key = desc_key(w->c, d);

	index_remove(w, &key, d);
}

void evict_mark(struct control *c, const uint32_t *batch, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		desc_set_state(c, batch[i], DESC_EVICTING);
	fence_seq_cst(); /* pairs with the fence in pin_one: see shm/lookup.h */
}

/*
 * A pin holds everything above it: the batch is deepest first, so one pass carries it to the last
 * ancestor.
 */
static void spread_pins(const struct control *c, const uint32_t *batch, uint32_t n,
			struct pinset *pins)
{
	for (uint32_t i = 0; i < n; i++)
		if (pinset_has(pins, batch[i]))
			pinset_add(pins, load_relaxed(&c->desc[batch[i]].parent));
}

uint32_t evict_settle(struct index_writer *w, const uint32_t *batch, uint32_t n,
		      struct pinset *pins)
{
	struct control *c = w->c;
	uint32_t freed = 0;

	spread_pins(c, batch, n, pins);
	for (uint32_t i = n; i-- > 0;)
		if (pinset_has(pins, batch[i]))
			desc_set_state(c, batch[i], DESC_COMMITTED);
	for (uint32_t i = 0; i < n; i++) {
		if (pinset_has(pins, batch[i]))
			continue;
		unlist(w, batch[i]);
		desc_free(c, batch[i]);
		freed++;
	}
	return freed;
}

void doom_mark(struct index_writer *w, const uint32_t *batch, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		desc_set_state(w->c, batch[i], DESC_DOOMED);
	for (uint32_t i = 0; i < n; i++)
		unlist(w, batch[i]);
	fence_seq_cst(); /* pairs with the fence in pin_one */
}

uint32_t doom_settle(struct control *c, uint32_t *batch, uint32_t n, struct pinset *pins)
{
	uint32_t stay = 0;

	spread_pins(c, batch, n, pins);
	for (uint32_t i = 0; i < n; i++) {
		if (pinset_has(pins, batch[i]))
			batch[stay++] = batch[i];
		else
			desc_free(c, batch[i]);
	}
	return stay;
}
