/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes that are used: the ones that lookups end at most, or the one of an id. */
#include <stdlib.h>
#include <string.h>

#include "daemon/find_id.h"
#include "daemon/find_ns.h"
#include "daemon/finder.h"
#include "daemon/insight.h"
#include "daemon/touches.h"

/* An item has at most some 850 bytes, with a model name of the longest kind. */
#define PREFIXES_PAGE    64u
#define PREFIXES_DEFAULT 20u

static_assert(PREFIXES_PAGE * 1000 < FRAME_MAX, "a page of a list fits a packet");

/* An item of the list, and the texts that are made for it. */
struct prefix_row {
	Kvpool__PrefixItem item;
	char id[FIND_ID_DIGITS + 1], label[POOL_PIN_LABEL + 1];
};

static void prefix_tracked(const struct prefix *e, uint64_t now, Kvpool__PrefixItem *item)
{
	if (!e)
		return;
	item->tracked = 1;
	item->hits = e->hits;
	item->hit_tokens = e->hit_tokens;
	item->readers = prefixes_readers(e);
	item->age_ns = now - MIN(e->first, now);
	item->used_ns = now - MIN(e->used, now);
}

/* A pin that ends here gives its label; one that ends further on keeps it all the same. */
static void prefix_pin(const struct pool *p, uint32_t desc, uint64_t now, struct prefix_row *row)
{
	const struct pool_pin *pin = pool_pin_at(p, desc);

	row->item.pinned = pool_pin_keeps(p, desc);
	if (!pin)
		return;
	strcpy(row->label, pin->label);
	row->item.pin_label = row->label;
	if (pin->until != UINT64_MAX)
		row->item.pin_left_ns = pin->until > now ? pin->until - now : 1;
}

static void prefix_row(struct request *rq, const struct explain_block *b, struct prefix_row *row)
{
	struct domain *d = rq->domain;
	Kvpool__PrefixItem *item = &row->item;
	struct explain_fanout f;

	kvpool__prefix_item__init(item);
	find_id_of(d->pool, b->desc, row->id);
	item->id = row->id;
	item->ns = b->ns;
	item->namespace_ = (char *)insight_model(d, b->ns);
	item->tokens = b->tokens;
	item->bytes = b->bytes;
	item->writer = (char *)insight_client(d, b->writer);
	prefix_tracked(insight_prefix(d, b->desc), rq->now, item);
	insight_fanout(d, b->ns, b->desc, &f);
	item->children = f.children;
	item->children_once = f.once;
	prefix_pin(d->pool, b->desc, rq->now, row);
}

static void prefixes_reply(struct request *rq, struct prefix_row *rows, uint32_t n)
{
	Kvpool__PrefixesReply reply = KVPOOL__PREFIXES_REPLY__INIT;
	Kvpool__PrefixItem *items[PREFIXES_PAGE];

	for (uint32_t i = 0; i < n; i++)
		items[i] = &rows[i].item;
	reply.items = items;
	reply.n_items = n;
	reply.tracked = rq->domain->prefixes.n;
	request_reply(rq, &reply.base);
}

/* A block by what the list is sorted by, the largest first. */
struct ranked {
	uint64_t rank;
	struct explain_block block;
};

static int ranked_compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? 1 : -1;
	return x->block.desc < y->block.desc ? -1 : x->block.desc > y->block.desc;
}

static uint64_t rank_of(const struct prefix *e, const struct explain_block *b, uint32_t sort)
{
	switch (sort) {
	case SORT_BYTES:
		return b->bytes;
	case SORT_AGE:
		return UINT64_MAX - e->first;
	default:
		return e->hits;
	}
}

/* All that are tracked in namespaces of that name. */
static uint32_t gather(const struct domain *d, const Kvpool__Prefixes *m, struct ranked *ranked)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->prefixes.n; i++) {
		const struct prefix *e = &d->prefixes.entry[i];
		struct explain_block *b = &ranked[n].block;

		if (explain_block(d->pool, e->desc, b) < 0 || b->gen != e->gen ||
		    !find_ns_matches(d->pool, e->ns, m->namespace_))
			continue;
		ranked[n++].rank = rank_of(e, b, m->sort);
	}
	return n;
}

static void prefixes_list(struct request *rq, const Kvpool__Prefixes *m)
{
	uint32_t limit = MIN(m->limit ?: PREFIXES_DEFAULT, PREFIXES_PAGE), n;
	struct prefix_row rows[PREFIXES_PAGE];
	struct ranked ranked[PREFIXES_MAX];

	touches_sweep(rq->domain);
	n = gather(rq->domain, m, ranked);
	qsort(ranked, n, sizeof(ranked[0]), ranked_compare);
	n = MIN(n, limit);
	for (uint32_t i = 0; i < n; i++)
		prefix_row(rq, &ranked[i].block, &rows[i]);
	prefixes_reply(rq, rows, n);
}

static void prefixes_one(struct request *rq, const Kvpool__Prefixes *m)
{
	uint32_t ns = NS_NONE, desc;
	struct prefix_row row;
	struct explain_block b;

	if (*m->namespace_ && !find_ns(rq, m->namespace_, &ns))
		return;
	if (!finder_find(rq, ns, m->id, &desc))
		return;
	/* It is there: finder_find has just looked. */
	(void)explain_block(rq->domain->pool, desc, &b);
	prefix_row(rq, &b, &row);
	prefixes_reply(rq, &row, 1);
}

void handler_prefixes(struct request *rq)
{
	const Kvpool__Prefixes *m = rq->msg;

	domain_drain_touches(rq->domain, rq->now);
	if (*m->id)
		prefixes_one(rq, m);
	else if (find_ns_any(rq, m->namespace_))
		prefixes_list(rq, m);
}
