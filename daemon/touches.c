/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/domain.h"
#include "daemon/touches.h"

uint32_t touches_drain(struct session *s, uint64_t now)
{
	struct region *r = s->region;
	struct touch t;
	uint32_t n = 0;

	while (n < REGION_TOUCHES && touch_pop(&r->map, &r->touch_place, &r->touches_lost, &t)) {
		n++;
		if (session_has_ns(s, t.ns))
			pool_touch(s->domain->pool, t.ns, t.desc, t.asked_tokens,
				   MIN(t.hit_tokens, t.asked_tokens), now);
	}
	if (n)
		s->active = now;
	return n;
}
