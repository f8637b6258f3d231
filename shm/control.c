/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/atomic.h"
#include "shm/control.h"

/* The offsets of the parts, in the order in which they lie. */
struct geometry {
	uint64_t ns, granule, index, desc, aux, total;
	uint64_t n_buckets;
	uint32_t n_granules;
};

/* Twice as many places as descriptors, so the index is at most half full. */
static uint64_t bucket_count(uint32_t max_blocks)
{
	return pow2_ceil(((uint64_t)max_blocks * 2 + BUCKET_ENTRIES - 1) / BUCKET_ENTRIES);
}

static void layout(const struct control_config *cfg, struct geometry *g)
{
	g->n_granules = (uint32_t)(cfg->pool_bytes >> cfg->granule_shift);
	g->n_buckets = bucket_count(cfg->max_blocks);
	g->ns = LAYOUT_PAGE;
	g->granule = g->ns + ALIGN_UP(cfg->max_namespaces * sizeof(struct ns_entry), LAYOUT_PAGE);
	g->index = g->granule + ALIGN_UP(g->n_granules * sizeof(struct granule), LAYOUT_PAGE);
	g->desc = g->index + ALIGN_UP(g->n_buckets * sizeof(struct bucket), LAYOUT_PAGE);
	g->aux = g->desc + ALIGN_UP(cfg->max_blocks * sizeof(struct desc), LAYOUT_PAGE);
	g->total = g->aux + ALIGN_UP(cfg->max_blocks * sizeof(struct desc_aux), LAYOUT_PAGE);
}

static int config_valid(const struct control_config *cfg)
{
	return cfg->max_blocks >= 1 && cfg->max_blocks <= CONTROL_BLOCKS_MAX &&
	       cfg->max_namespaces >= 1 && cfg->max_namespaces <= 65536 &&
	       cfg->granule_shift >= SLOT_SHIFT && cfg->granule_shift <= 40 &&
	       cfg->pool_bytes >> cfg->granule_shift >= 1 &&
	       cfg->pool_bytes <= (uint64_t)SLOT_NONE << SLOT_SHIFT &&
	       !(cfg->pool_bytes & ((UINT64_C(1) << cfg->granule_shift) - 1));
}

uint64_t control_size(const struct control_config *cfg)
{
	struct geometry g;

	if (!config_valid(cfg))
		return 0;
	layout(cfg, &g);
	return g.total;
}

static void format_granules(struct control *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		c->granule[i].ns = NS_NONE;
		c->granule[i].first = i;
	}
}

void control_format(void *base, const struct control_config *cfg)
{
	struct control_header *h = base;
	struct control c = { .granule = NULL };
	struct geometry g;

	layout(cfg, &g);
	h->layout_version = LAYOUT_VERSION;
	h->header_bytes = LAYOUT_PAGE;
	memcpy(h->boot_id, cfg->boot_id, sizeof(h->boot_id));
	h->domain_id = cfg->domain_id;
	h->total_bytes = g.total;
	h->pool_bytes = cfg->pool_bytes;
	memcpy(h->index_salt, cfg->index_salt, sizeof(h->index_salt));
	h->ns_offset = g.ns;
	h->granule_offset = g.granule;
	h->index_offset = g.index;
	h->desc_offset = g.desc;
	h->aux_offset = g.aux;
	h->n_buckets = g.n_buckets;
	h->max_blocks = cfg->max_blocks;
	h->max_namespaces = cfg->max_namespaces;
	h->n_granules = g.n_granules;
	h->granule_shift = cfg->granule_shift;
	h->epoch = 1;
	h->state = CONTROL_ACTIVE;
	c.granule = (struct granule *)((char *)base + g.granule);
	format_granules(&c, g.n_granules);
	store_release(&h->magic, CONTROL_MAGIC);
}

/* The header's own numbers, as the configuration that they claim to come from. */
static void config_of(const struct control_header *h, struct control_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->pool_bytes = h->pool_bytes;
	cfg->max_blocks = h->max_blocks;
	cfg->max_namespaces = h->max_namespaces;
	cfg->granule_shift = h->granule_shift;
}

static const char *check_header(const struct control_header *h, uint64_t size)
{
	struct control_config cfg;
	struct geometry g;

	if (size < LAYOUT_PAGE)
		return "region is smaller than its header";
	if (load_acquire(&h->magic) != CONTROL_MAGIC)
		return "not a control region (magic)";
	if (h->layout_version != LAYOUT_VERSION || h->header_bytes != LAYOUT_PAGE)
		return "another layout version";
	config_of(h, &cfg);
	if (!config_valid(&cfg))
		return "header has numbers out of bounds";
	layout(&cfg, &g);
	if (h->ns_offset != g.ns || h->granule_offset != g.granule || h->index_offset != g.index ||
	    h->desc_offset != g.desc || h->aux_offset != g.aux || h->n_buckets != g.n_buckets ||
	    h->n_granules != g.n_granules)
		return "header has offsets that do not follow from its sizes";
	if (h->total_bytes != g.total || size != g.total)
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
