/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "daemon/model.h"
#include "daemon/reserve.h"
#include "daemon/unnamed.h"

void pool_owner_init(struct pool_owner *o, uint64_t session)
{
	*o = (struct pool_owner){ .session = session };
	list_init(&o->link);
	chain_init(&o->reserved);
	chain_init(&o->unnamed);
	chain_init(&o->quarantine);
}

void owner_table_init(struct owner_table *t)
{
	for (unsigned int i = 0; i < OWNER_BUCKETS; i++)
		list_init(&t->bucket[i]);
}

static struct list *bucket_of(struct pool *p, uint64_t session)
{
	return &p->owners.bucket[mix64(session) % OWNER_BUCKETS];
}

void owner_enter(struct pool *p, struct pool_owner *o)
{
	if (list_empty(&o->link))
		list_add(bucket_of(p, o->session), &o->link);
}

static uint64_t session_of(const struct pool *p, uint32_t d)
{
	return load_relaxed(&p->control.aux[d].writer);
}

int owner_has(const struct pool *p, const struct pool_owner *o, uint32_t d)
{
	return session_of(p, d) == o->session;
}

/* Who reserved d; NULL when that one is gone. */
static struct pool_owner *owner_of(struct pool *p, uint32_t d)
{
	uint64_t session = session_of(p, d);
	struct list *bucket = bucket_of(p, session);
	struct pool_owner *o;

	list_for_each(o, bucket, link) if (o->session == session) return o;
	return NULL;
}

void owner_charge(struct pool *p, struct pool_owner *o, uint32_t d)
{
	chain_append(p, &o->reserved, d);
	o->n_reserved++;
	o->reserved_bytes += block_namespace(p, d)->stride;
	p->next_time_out = MIN(p->next_time_out, block_time(p, d) + p->cfg.reservation_ns);
}

void owner_discharge(struct pool *p, struct pool_owner *o, uint32_t d)
{
	chain_remove(p, &o->reserved, d);
	o->n_reserved--;
	o->reserved_bytes -= block_namespace(p, d)->stride;
}

void owner_charge_unnamed(struct pool *p, struct pool_owner *o, uint32_t d)
{
	chain_append(p, &o->unnamed, d);
	o->n_unnamed++;
	o->unnamed_bytes += block_namespace(p, d)->stride;
	p->unnamed_bytes += block_namespace(p, d)->stride;
	block_namespace(p, d)->n_unnamed++;
}

void owner_discharge_unnamed(struct pool *p, struct pool_owner *o, uint32_t d)
{
	chain_remove(p, &o->unnamed, d);
	o->n_unnamed--;
	o->unnamed_bytes -= block_namespace(p, d)->stride;
	p->unnamed_bytes -= block_namespace(p, d)->stride;
	block_namespace(p, d)->n_unnamed--;
}

void owner_cached(struct pool *p, struct pool_owner *o, uint32_t d)
{
	o->cached_blocks++;
	o->cached_bytes += block_namespace(p, d)->stride;
}

void owner_uncached(struct pool *p, uint32_t d)
{
	struct pool_owner *o = owner_of(p, d);

	if (!o)
		return;
	o->cached_blocks--;
	o->cached_bytes -= block_namespace(p, d)->stride;
}

void owner_charge_quarantine(struct pool *p, struct pool_owner *o, uint32_t d)
{
	chain_append(p, &o->quarantine, d);
	o->n_quarantine++;
	o->reserved_bytes += block_namespace(p, d)->stride;
}

void owner_quarantine(struct pool *p, uint32_t d)
{
	struct pool_owner *o = owner_of(p, d); /* it has a reservation, so it is there */

	owner_discharge(p, o, d);
	owner_charge_quarantine(p, o, d);
}

void owner_unquarantine(struct pool *p, uint32_t d)
{
	struct pool_owner *o = owner_of(p, d);

	if (!o) {
		chain_remove(p, &p->orphans, d);
		return;
	}
	chain_remove(p, &o->quarantine, d);
	o->n_quarantine--;
	o->reserved_bytes -= block_namespace(p, d)->stride;
}

/* How many more blocks of ns are within a limit. */
static uint32_t allowance(const struct namespace *ns, uint64_t limit, uint64_t has)
{
	if (!limit)
		return UINT32_MAX;
	if (has >= limit)
		return 0;
	return (uint32_t)MIN((limit - has) / ns->stride, (uint64_t)UINT32_MAX);
}

uint32_t owner_allowance(const struct pool *p, const struct pool_owner *o,
			 const struct namespace *ns)
{
	return allowance(ns, p->cfg.owner_reserved_bytes, o->reserved_bytes);
}

uint32_t owner_allowance_unnamed(const struct pool *p, const struct pool_owner *o,
				 const struct namespace *ns)
{
	return allowance(ns, p->cfg.owner_unnamed_bytes, o->unnamed_bytes);
}

/* When the oldest reservation of o times out. */
static uint64_t due(const struct pool *p, const struct pool_owner *o)
{
	if (o->reserved.first == DESC_NONE)
		return UINT64_MAX;
	return block_time(p, o->reserved.first) + p->cfg.reservation_ns;
}

void pool_set_timeouts(struct pool *p, uint64_t reservation_ns, uint64_t quarantine_ns)
{
	p->cfg.reservation_ns = reservation_ns;
	p->cfg.quarantine_ns = quarantine_ns;
	p->next_time_out = 0; /* look at all of them */
}

static uint64_t time_out_owner(struct pool *p, struct pool_owner *o, uint64_t now,
			       uint32_t *budget)
{
	while (*budget && due(p, o) <= now) {
		/* What is below it was reserved later, but can't be committed without it. */
		uint32_t n = reserve_void_tree(p, o->reserved.first, now);

		p->count.reservations_timed_out += n;
		*budget -= MIN(*budget, n);
	}
	return due(p, o);
}

uint64_t owner_time_out(struct pool *p, uint64_t now, uint32_t *budget)
{
	uint64_t next = UINT64_MAX;

	if (now < p->next_time_out)
		return p->next_time_out;
	for (unsigned int i = 0; i < OWNER_BUCKETS; i++) {
		struct pool_owner *o;

		list_for_each(o, &p->owners.bucket[i], link) next =
			MIN(next, time_out_owner(p, o, now, budget));
	}
	p->next_time_out = next;
	return next;
}

uint64_t owner_release_orphans(struct pool *p, uint64_t now, uint32_t *budget)
{
	uint32_t d;

	while ((d = p->orphans.first) != DESC_NONE && block_time(p, d) <= now) {
		if (!*budget)
			return now;
		--*budget;
		reserve_unquarantine(p, d, 1);
	}
	return d == DESC_NONE ? UINT64_MAX : block_time(p, d);
}

void pool_owner_end(struct pool *p, struct pool_owner *o, uint64_t now)
{
	while (o->reserved.first != DESC_NONE)
		reserve_void_tree(p, o->reserved.first, now);
	while (o->unnamed.first != DESC_NONE)
		unnamed_void(p, o, o->unnamed.first);
}

void pool_set_owner_limits(struct pool *p, uint64_t reserved_bytes, uint64_t unnamed_bytes)
{
	p->cfg.owner_reserved_bytes = reserved_bytes;
	p->cfg.owner_unnamed_bytes = unnamed_bytes;
}

uint64_t pool_owner_limit(const struct pool *p)
{
	uint64_t all = pool_limit_bytes(p);

	return (p->cfg.owner_reserved_bytes ?: all) + (p->cfg.owner_unnamed_bytes ?: all);
}

static void add_extents(struct pool *p, const struct pool_chain *c, uint64_t *n, uint64_t *bytes)
{
	for (uint32_t d = c->first; d != DESC_NONE; d = p->block[d].after) {
		struct extent *e = block_extent(p, d);

		if (e->mark == p->extents.mark)
			continue;
		e->mark = p->extents.mark;
		++*n;
		*bytes += (uint64_t)e->count << p->extents.shift;
	}
}

void pool_owner_extents(struct pool *p, const struct pool_owner *o, uint64_t *ret_n,
			uint64_t *ret_bytes)
{
	uint64_t n = 0, bytes = 0;

	p->extents.mark++;
	add_extents(p, &o->reserved, &n, &bytes);
	add_extents(p, &o->unnamed, &n, &bytes);
	add_extents(p, &o->quarantine, &n, &bytes);
	*ret_n = n;
	*ret_bytes = bytes;
}

void pool_owner_gone(struct pool *p, struct pool_owner *o, uint64_t now)
{
	uint32_t d;

	if (o->gone)
		return;
	pool_owner_end(p, o, now);
	while ((d = o->quarantine.first) != DESC_NONE) {
		chain_remove(p, &o->quarantine, d);
		block_set_time(p, d, now + p->cfg.quarantine_ns);
		chain_append(p, &p->orphans, d);
	}
	o->n_quarantine = 0;
	o->reserved_bytes = 0;
	o->gone = 1;
	list_del(&o->link);
}
