/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over sessions, for people. */
#include "daemon/domain.h"

void domain_census(const struct domain *d, struct domain_census *ret)
{
	struct domain_census c = { 0, 0, 0 };
	const struct session *s;

	list_for_each(s, &d->sessions, link)
	{
		c.admins += s->state == SESSION_ADMIN;
		c.clients += s->state != SESSION_ADMIN;
		c.draining += s->state == SESSION_DRAINING;
	}
	*ret = c;
}

void domain_usage(struct domain *d, struct usage *ret, uint64_t *ret_touches_lost)
{
	struct usage sum = d->ended_usage;
	uint64_t lost = d->ended_touches_lost;
	struct session *s;

	list_for_each(s, &d->sessions, link)
	{
		struct usage u;

		if (!s->region)
			continue;
		account_read(&s->account, &s->region->map, &u);
		usage_add(&sum, &u);
		lost += s->region->touches_lost;
	}
	*ret = sum;
	*ret_touches_lost = lost;
}

void domain_reset_counters(struct domain *d, uint64_t now)
{
	struct baseline b = { .at = now, .counts = d->counts };
	struct domain_census census;

	domain_drain_touches(d, now);
	pool_get_stats(d->pool, &b.pool);
	domain_usage(d, &b.usage, &b.touches_lost);
	domain_census(d, &census);
	b.counts.connects -= census.clients - census.draining;
	d->baseline = b;
}
