/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/compiler.h"
#include "shm/session.h"

static uint64_t touch_offset(uint32_t hazards)
{
	return LAYOUT_PAGE + ALIGN_UP(hazards * (uint64_t)sizeof(uint64_t), LAYOUT_PAGE);
}

uint64_t session_size(uint32_t hazards, uint32_t touches)
{
	if (hazards < 1 || hazards > SESSION_HAZARDS_MAX || !is_pow2(touches) ||
	    touches > SESSION_TOUCHES_MAX)
		return 0;
	return touch_offset(hazards) +
	       ALIGN_UP(touches * (uint64_t)sizeof(struct touch), LAYOUT_PAGE);
}

void session_format(void *base, uint64_t session, uint32_t hazards, uint32_t touches)
{
	struct session_header *h = base;

	h->layout_version = LAYOUT_VERSION;
	h->header_bytes = LAYOUT_PAGE;
	h->total_bytes = session_size(hazards, touches);
	h->session = session;
	h->hazard_offset = LAYOUT_PAGE;
	h->hazard_count = hazards;
	h->touch_offset = (uint32_t)touch_offset(hazards);
	h->touch_count = touches;
	store_release(&h->magic, SESSION_MAGIC);
}

void session_map_trusted(void *base, uint32_t hazards, uint32_t touches, struct session_map *m)
{
	*m = (struct session_map){
		.head = base,
		.hazard = (uint64_t *)((char *)base + LAYOUT_PAGE),
		.touch = (struct touch *)((char *)base + touch_offset(hazards)),
		.hazard_count = hazards,
		.touch_count = touches,
	};
}

const char *session_attach(void *base, uint64_t size, struct session_map *m)
{
	const struct session_header *h = base;

	if (size < LAYOUT_PAGE || load_acquire(&h->magic) != SESSION_MAGIC)
		return "not a session region (magic)";
	if (h->layout_version != LAYOUT_VERSION || h->header_bytes != LAYOUT_PAGE)
		return "another layout version";
	if (h->total_bytes != size || session_size(h->hazard_count, h->touch_count) != size ||
	    h->hazard_offset != LAYOUT_PAGE || h->touch_offset != touch_offset(h->hazard_count))
		return "header has sizes that do not follow from its counts";
	session_map_trusted(base, h->hazard_count, h->touch_count, m);
	return NULL;
}

/*
 * A head that is this far from where the reader stands was not reached by looking things up: it
 * jumped, or it stepped back (the difference is then huge).
 */
#define TOUCH_JUMP_MAX (UINT64_C(1) << 32)

/* Records are moved word by word, relaxed: seq tells whether the copy is whole. */
#define TOUCH_WORDS (sizeof(struct touch) / sizeof(uint64_t))

void touch_push(const struct session_map *m, const struct touch *t)
{
	uint64_t place = add_relaxed(&m->head->touch_head, 1);
	uint64_t *to = (uint64_t *)&m->touch[place & (m->touch_count - 1)];
	uint64_t from[TOUCH_WORDS];

	memcpy(from, t, sizeof(from));
	/* A reader of the old record must see that it goes before it sees any new word. */
	store_relaxed(&to[0], 0);
	fence_release();
	for (unsigned int i = 1; i < TOUCH_WORDS; i++)
		store_relaxed(&to[i], from[i]);
	store_release(&to[0], place + 1);
}

/* Copies the record at place; false when it is not there yet or no longer. */
static int touch_read(const struct session_map *m, uint64_t place, struct touch *ret)
{
	const uint64_t *from = (const uint64_t *)&m->touch[place & (m->touch_count - 1)];
	uint64_t to[TOUCH_WORDS];

	to[0] = load_acquire(&from[0]);
	if (to[0] != place + 1)
		return 0;
	for (unsigned int i = 1; i < TOUCH_WORDS; i++)
		to[i] = load_acquire(&from[i]);
	if (load_relaxed(&from[0]) != to[0])
		return 0;
	memcpy(ret, to, sizeof(to));
	return 1;
}

int touch_pop(const struct session_map *m, uint64_t *place, uint64_t *lost, struct touch *ret)
{
	uint64_t head = load_acquire(&m->head->touch_head);
	uint64_t behind = head - *place;

	if (behind > TOUCH_JUMP_MAX) {
		(*lost)++;
		*place = head;
	} else if (behind > m->touch_count) {
		*lost += behind - m->touch_count;
		*place = head - m->touch_count;
	}
	while (*place != head) {
		if (touch_read(m, (*place)++, ret))
			return 1;
		(*lost)++;
	}
	return 0;
}
