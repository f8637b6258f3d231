/* SPDX-License-Identifier: Apache-2.0 */
/* The list of namespaces. */
#include <string.h>

#include "base/hex.h"
#include "daemon/request.h"
#include "proto/nsdesc.h"

/* An item has at most some 2200 bytes, with texts of the longest kind. */
#define NAMESPACES_PAGE 28u

static_assert(NAMESPACES_PAGE * 2300 < FRAME_MAX, "a page of namespaces fits a packet");

/* An item of the list, and the texts that are made for it. */
struct namespace_row {
	Kvpool__NamespaceItem item;
	char fingerprint[2 * KEY_BYTES + 1];
	char type_k[NSDESC_TEXT_MAX + 1], type_v[NSDESC_TEXT_MAX + 1];
};

static char *row_text(char buf[NSDESC_TEXT_MAX + 1], const struct nsdesc_item *it)
{
	memcpy(buf, it->value, it->n);
	buf[it->n] = '\0';
	return buf;
}

/* What its descriptor says of the model. */
static void namespace_shape(struct namespace_row *row, const struct pool_ns_stats *s)
{
	struct nsdesc_item it;
	size_t at = 0;

	while (at < s->n_desc && (at = nsdesc_next(s->desc, s->n_desc, at, &it)))
		switch (it.tag) {
		case NSDESC_LAYERS:
			row->item.n_layers = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_KV_HEADS:
			row->item.n_kv_heads = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_HEAD_DIM_K:
			row->item.head_dim_k = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_HEAD_DIM_V:
			row->item.head_dim_v = (uint32_t)nsdesc_item_number(&it);
			break;
		case NSDESC_TYPE_K:
			row->item.type_k = row_text(row->type_k, &it);
			break;
		case NSDESC_TYPE_V:
			row->item.type_v = row_text(row->type_v, &it);
			break;
		}
}

static void namespace_row(struct namespace_row *row, uint32_t ns, const struct pool_ns_stats *s)
{
	kvpool__namespace_item__init(&row->item);
	hex_encode(s->seed, sizeof(s->seed), row->fingerprint);
	row->item.ns = ns;
	row->item.model = (char *)s->model;
	row->item.fingerprint = row->fingerprint;
	row->item.block_tokens = s->block_tokens;
	row->item.block_bytes = s->block_bytes;
	row->item.blocks = s->blocks;
	row->item.leased_blocks = s->leased_blocks;
	row->item.writing_blocks = s->writing_blocks;
	row->item.unnamed_blocks = s->unnamed_blocks;
	row->item.extents = s->extents;
	row->item.extent_bytes = s->extent_bytes;
	row->item.lookups = s->lookups;
	row->item.asked_tokens = s->asked_tokens;
	row->item.hit_tokens = s->hit_tokens;
	row->item.miss_reasons = (uint64_t *)s->missed;
	row->item.n_miss_reasons = USAGE_REASONS;
	row->item.used_ns = s->used;
	row->item.ttl_ns = s->ttl_ns;
	row->item.priority = s->priority;
	row->item.expired_blocks = s->expired;
	row->item.pinned_blocks = s->pinned_blocks;
	row->item.free_blocks = s->free_blocks;
	row->item.empty_blocks = s->empty_blocks;
	namespace_shape(row, s);
}

/* The cursor is the number after the last one that was listed. */
void handler_namespaces(struct request *rq)
{
	const Kvpool__Namespaces *m = rq->msg;
	struct pool *p = rq->domain->pool;
	Kvpool__NamespacesReply reply = KVPOOL__NAMESPACES_REPLY__INIT;
	struct namespace_row rows[NAMESPACES_PAGE];
	Kvpool__NamespaceItem *items[NAMESPACES_PAGE];
	struct pool_ns_stats s;
	uint32_t ns;

	domain_drain_touches(rq->domain, rq->now);
	pool_count_leased(p);
	for (ns = m->after;
	     ns < pool_control(p)->max_namespaces && reply.n_items < NAMESPACES_PAGE; ns++) {
		if (pool_ns_get_stats(p, ns, &s) < 0)
			continue;
		namespace_row(&rows[reply.n_items], ns, &s);
		items[reply.n_items] = &rows[reply.n_items].item;
		reply.n_items++;
	}
	reply.items = items;
	reply.next = ns < pool_control(p)->max_namespaces ? ns : 0;
	request_reply(rq, &reply.base);
}
