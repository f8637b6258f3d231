/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "shm/control.h"

/* Twice as many places as descriptors, so the index is at most half full. */
static uint64_t bucket_count(uint32_t max_blocks)
{
	return pow2_ceil(((uint64_t)max_blocks * 2 + BUCKET_ENTRIES - 1) / BUCKET_ENTRIES);
}

static int config_valid(const struct control_config *cfg)
{
	return cfg->max_blocks >= 1 && cfg->max_blocks <= CONTROL_BLOCKS_MAX &&
	       cfg->max_namespaces >= 1 && cfg->max_namespaces <= CONTROL_NAMESPACES_MAX &&
	       cfg->granule_shift >= SLOT_SHIFT &&
	       cfg->granule_shift <= CONTROL_GRANULE_SHIFT_MAX &&
	       cfg->pool_bytes >> cfg->granule_shift >= 1 &&
	       cfg->pool_bytes <= (uint64_t)SLOT_NONE << SLOT_SHIFT &&
	       !(cfg->pool_bytes & ((UINT64_C(1) << cfg->granule_shift) - 1));
}

/* The end of a part of n things that starts at from. */
static uint64_t behind(uint64_t from, uint64_t n, size_t size)
{
	return from + ALIGN_UP(n * size, LAYOUT_PAGE);
}

int control_geometry(const struct control_config *cfg, struct control_geometry *ret)
{
	struct control_geometry g;

	if (!config_valid(cfg))
		return -EINVAL;
	g.n_granules = (uint32_t)(cfg->pool_bytes >> cfg->granule_shift);
	g.n_buckets = bucket_count(cfg->max_blocks);
	g.ns_offset = LAYOUT_PAGE;
	g.granule_offset = behind(g.ns_offset, cfg->max_namespaces, sizeof(struct ns_entry));
	g.index_offset = behind(g.granule_offset, g.n_granules, sizeof(struct granule));
	g.desc_offset = behind(g.index_offset, g.n_buckets, sizeof(struct bucket));
	g.aux_offset = behind(g.desc_offset, cfg->max_blocks, sizeof(struct desc));
	g.total_bytes = behind(g.aux_offset, cfg->max_blocks, sizeof(struct desc_aux));
	*ret = g;
	return 0;
}

uint64_t control_size(const struct control_config *cfg)
{
	struct control_geometry g;

	return control_geometry(cfg, &g) ? 0 : g.total_bytes;
}

static void format_granules(struct granule *g, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		g[i].ns = NS_NONE;
		g[i].first = i;
	}
}

void control_format(void *base, const struct control_config *cfg)
{
	struct control_header *h = base;
	struct control_geometry g;

	if (control_geometry(cfg, &g))
		return;
	h->layout_version = LAYOUT_VERSION;
	h->header_bytes = LAYOUT_PAGE;
	memcpy(h->boot_id, cfg->boot_id, sizeof(h->boot_id));
	h->domain_id = cfg->domain_id;
	h->total_bytes = g.total_bytes;
	h->pool_bytes = cfg->pool_bytes;
	memcpy(h->index_salt, cfg->index_salt, sizeof(h->index_salt));
	h->ns_offset = g.ns_offset;
	h->granule_offset = g.granule_offset;
	h->index_offset = g.index_offset;
	h->desc_offset = g.desc_offset;
	h->aux_offset = g.aux_offset;
	h->n_buckets = g.n_buckets;
	h->max_blocks = cfg->max_blocks;
	h->max_namespaces = cfg->max_namespaces;
	h->n_granules = g.n_granules;
	h->granule_shift = cfg->granule_shift;
	h->epoch = 1;
	h->state = CONTROL_ACTIVE;
	format_granules((struct granule *)((char *)base + g.granule_offset), g.n_granules);
	store_release(&h->magic, CONTROL_MAGIC);
}

void control_config_of(const struct control_header *h, struct control_config *ret)
{
	*ret = (struct control_config){
		.pool_bytes = h->pool_bytes,
		.max_blocks = h->max_blocks,
		.max_namespaces = h->max_namespaces,
		.granule_shift = h->granule_shift,
	};
}

static const char *check_header(const struct control_header *h, uint64_t size)
{
	struct control_config cfg;
	struct control_geometry g;

	if (size < LAYOUT_PAGE)
		return "region is smaller than its header";
	if (load_acquire(&h->magic) != CONTROL_MAGIC)
		return "not a control region (magic)";
	if (h->layout_version != LAYOUT_VERSION || h->header_bytes != LAYOUT_PAGE)
		return "another layout version";
	control_config_of(h, &cfg);
	if (control_geometry(&cfg, &g))
		return "header has numbers out of bounds";
	if (h->ns_offset != g.ns_offset || h->granule_offset != g.granule_offset ||
	    h->index_offset != g.index_offset || h->desc_offset != g.desc_offset ||
	    h->aux_offset != g.aux_offset || h->n_buckets != g.n_buckets ||
	    h->n_granules != g.n_granules)
		return "header has offsets that do not follow from its sizes";
	if (h->total_bytes != g.total_bytes || size != g.total_bytes)
		return "region has another size than its header says";
	return NULL;
}

const char *control_attach(void *base, uint64_t size, struct control *c)
{
	struct control_header *h = base;
	const char *wrong = check_header(h, size);

	if (wrong)
		return wrong;
	*c = (struct control){
		.head = h,
		.ns = (struct ns_entry *)((char *)base + h->ns_offset),
		.granule = (struct granule *)((char *)base + h->granule_offset),
		.index = (struct bucket *)((char *)base + h->index_offset),
		.desc = (struct desc *)((char *)base + h->desc_offset),
		.aux = (struct desc_aux *)((char *)base + h->aux_offset),
		.bucket_mask = h->n_buckets - 1,
		.salt = { h->index_salt[0], h->index_salt[1] },
		.max_blocks = h->max_blocks,
		.max_namespaces = h->max_namespaces,
	};
	return NULL;
}
