/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "daemon/leases.h"
#include "shm/word.h"

/*
 * Bytes of d and its ancestors, up to one that was counted. Every number may be nonsense but links.
 */
static uint64_t leases_chain(const struct control *c, uint32_t d, struct pinset *seen)
{
	uint64_t bytes = 0;

	while (d < c->max_blocks && !pinset_has(seen, d)) {
		enum desc_state state = word_state(load_acquire(&c->desc[d].word));

		if (state == DESC_FREE)
			break;
		pinset_add(seen, d);
		/* Its own bytes are not cached while it is being written, those before it are. */
		if (state != DESC_RESERVED && state != DESC_QUARANTINE)
			bytes += c->ns[c->desc[d].ns].stride;
		d = c->desc[d].parent;
	}
	return bytes;
}

int leases_any(const struct session_map *m)
{
	for (uint32_t i = 0; i < m->hazard_count; i++)
		if (load_relaxed(&m->hazard[i]))
			return 1;
	return 0;
}

void leases_count(const struct control *c, const struct session_map *m, struct pinset *scratch,
		  struct leases *ret)
{
	struct leases l = { 0, 0 };

	pinset_clear(scratch);
	for (uint32_t i = 0; i < m->hazard_count; i++) {
		uint64_t word = load_acquire(&m->hazard[i]);

		if (!word)
			continue;
		l.words++;
		l.bytes += leases_chain(c, hazard_desc(word), scratch);
	}
	*ret = l;
}
