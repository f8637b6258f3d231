/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model.h"
#include "proto/check.h"

static_assert(PRIORITY_DEFAULT == PROTO_PRIORITY_DEFAULT && PRIORITY_MAX == PROTO_PRIORITY_MAX,
	      "priorities of the policy and of the protocol are the same numbers");

struct namespace *namespace_get(const struct pool *p, uint32_t number)
{
	if (number >= p->cfg.max_namespaces || !p->namespaces[number].desc)
		return NULL;
	return &p->namespaces[number];
}

struct namespace *namespace_next(const struct pool *p, const struct namespace *after)
{
	for (uint32_t i = after ? after->number + 1 : 0; i < p->namespaces_end; i++)
		if (p->namespaces[i].desc)
			return &p->namespaces[i];
	return NULL;
}

void namespace_fini(struct namespace *ns)
{
	free(ns->desc);
	free(ns->model);
	free(ns->lru.heap);
	memset(ns, 0, sizeof(*ns));
}

/* Every block may be a leaf: the heap grows with the slots. */
static int grow_heap(struct namespace *ns, uint32_t room)
{
	uint32_t *heap;

	if (room <= ns->lru_room)
		return 0;
	heap = realloc(ns->lru.heap, room * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	ns->lru.heap = heap;
	ns->lru_room = room;
	return 0;
}

int namespace_grow(struct pool *p, struct namespace *ns, uint32_t first, uint64_t now)
{
	struct extent_set *s = &ns->extents;
	uint64_t bytes = (uint64_t)s->granules << p->extents.shift;
	int r = grow_heap(ns, s->n_slots + (uint32_t)((bytes >> SLOT_SHIFT) / s->unit));

	return r ? r : extent_new(&p->extents, s, first, now);
}

/* Gives its extents without a block back, and has them punched. */
static void shrink(struct pool *p, struct namespace *ns)
{
	struct extent *e, *tmp;

	list_for_each_safe(e, tmp, &ns->extents.all, all)
	{
		uint32_t first = e->first, count = e->count;

		if (e->taken)
			continue;
		extent_retire(&p->extents, &ns->extents, e);
		extent_punch(&p->extents, first, count);
	}
}

static int is_empty(const struct namespace *ns)
{
	return ns->extents.n_free + ns->extents.n_shut == ns->extents.n_slots;
}

void namespace_shrink_unused(struct pool *p)
{
	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		if (!ns->holds && is_empty(ns))
			shrink(p, ns);
}

static struct namespace *find_seed(struct pool *p, const uint8_t *seed)
{
	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;)
		if (!memcmp(ns->seed, seed, sizeof(ns->seed)))
			return ns;
	return NULL;
}

/* The namespace of the same model that differs in the fewest fields. */
static uint32_t find_near(struct pool *p, const struct namespace *self)
{
	unsigned int best = ~0u;
	uint32_t near = NS_NONE;

	for (struct namespace *ns = NULL; (ns = namespace_next(p, ns)) != NULL;) {
		struct nsdesc_difference none;
		unsigned int n;

		if (ns == self || strcmp(ns->model, self->model))
			continue;
		n = nsdesc_compare(self->desc, self->n_desc, ns->desc, ns->n_desc, &none, 0);
		if (n < best) {
			best = n;
			near = ns->number;
		}
	}
	return near;
}

static void close_namespace(struct pool *p, struct namespace *ns)
{
	store_release(&p->control.ns[ns->number].state, NS_FREE);
	shrink(p, ns);
	namespace_fini(ns);
}

/* An entry for a new namespace: a free one, or that of the empty and unused one of long ago. */
static struct namespace *find_entry(struct pool *p)
{
	struct namespace *old = NULL;

	for (uint32_t i = 0; i < p->cfg.max_namespaces; i++) {
		struct namespace *ns = &p->namespaces[i];

		if (!ns->desc)
			return ns;
		if (!ns->holds && is_empty(ns) && (!old || ns->used < old->used))
			old = ns;
	}
	if (old)
		close_namespace(p, old);
	return old;
}

/* What clients and a successor see; state last. */
static void tell(struct pool *p, const struct namespace *ns, const struct nsdesc_values *v)
{
	struct ns_entry *e = &p->control.ns[ns->number];

	store_relaxed(&e->block_tokens, ns->block_tokens);
	store_relaxed(&e->block_bytes, ns->block_bytes);
	store_relaxed(&e->stride, ns->stride);
	memcpy(e->seed, ns->seed, sizeof(e->seed));
	store_relaxed(&e->group_rule, v->group_rule);
	store_relaxed(&e->group_n, v->group_n);
	store_relaxed(&e->disk_blocks, 0);
	store_release(&e->state, NS_OPEN);
}

static int open_new(struct pool *p, const uint8_t *desc, size_t n, const struct nsdesc_values *v,
		    struct namespace **ret)
{
	uint64_t stride = ALIGN_UP(v->block_bytes, SLOT_UNIT);
	uint32_t granules = extent_granules(&p->extents, stride);
	struct namespace *ns;
	uint8_t *copy;
	char *model;

	if (v->group_rule != GROUP_ALL)
		return -EOPNOTSUPP;
	if (!granules)
		return -EFBIG;
	copy = malloc(n);
	model = strdup(v->model);
	ns = copy && model ? find_entry(p) : NULL;
	if (!ns) {
		free(copy);
		free(model);
		return copy && model ? -ENOSPC : -ENOMEM;
	}
	memcpy(copy, desc, n);
	*ns = (struct namespace){
		.desc = copy,
		.n_desc = n,
		.model = model,
		.number = (uint32_t)(ns - p->namespaces),
		.block_tokens = v->block_tokens,
		.block_bytes = v->block_bytes,
		.stride = stride,
		.priority = PRIORITY_DEFAULT,
		.roots = DESC_NONE,
		.flush_roots = DESC_NONE,
	};
	p->namespaces_end = MAX(p->namespaces_end, ns->number + 1);
	nsdesc_seed(desc, n, ns->seed);
	extent_set_init(&ns->extents, ns->number, granules, stride);
	lru_init(&ns->lru, &p->block->lru, sizeof(*p->block), NULL);
	tell(p, ns, v);
	*ret = ns;
	return 0;
}

int pool_ns_open(struct pool *p, const uint8_t *desc, size_t n, const struct nsdesc_values *v,
		 uint64_t now, uint32_t *ret_ns, int *ret_created, uint32_t *ret_near)
{
	uint8_t seed[KEY_BYTES];
	struct namespace *ns;
	uint32_t near = NS_NONE;
	int created = 0, r;

	nsdesc_seed(desc, n, seed);
	ns = find_seed(p, seed);
	if (!ns) {
		r = open_new(p, desc, n, v, &ns);
		if (r < 0)
			return r;
		near = find_near(p, ns);
		created = 1;
	} else if (ns->extents.granules > p->extents.limit) {
		return -EFBIG;
	}
	ns->used = MAX(ns->used, now);
	*ret_ns = ns->number;
	*ret_created = created;
	*ret_near = near;
	return 0;
}

const uint8_t *pool_ns_desc(const struct pool *p, uint32_t ns, size_t *ret_n)
{
	const struct namespace *x = namespace_get(p, ns);

	if (!x)
		return NULL;
	*ret_n = x->n_desc;
	return x->desc;
}

const char *pool_ns_model(const struct pool *p, uint32_t ns)
{
	const struct namespace *x = namespace_get(p, ns);

	return x ? x->model : NULL;
}

const uint8_t *pool_ns_seed(const struct pool *p, uint32_t ns)
{
	const struct namespace *x = namespace_get(p, ns);

	return x ? x->seed : NULL;
}

void pool_ns_set_policy(struct pool *p, uint32_t ns, uint64_t ttl_ns, uint32_t priority)
{
	struct namespace *x = namespace_get(p, ns);

	if (!x)
		return;
	x->ttl_ns = MIN(ttl_ns, UINT64_MAX / 2);
	x->priority = MIN(MAX(priority, 1u), PRIORITY_MAX);
}

void pool_ns_hold(struct pool *p, uint32_t ns)
{
	p->namespaces[ns].holds++;
}

void pool_ns_drop(struct pool *p, uint32_t ns)
{
	struct namespace *x = &p->namespaces[ns];

	x->holds--;
	if (!x->holds && is_empty(x))
		shrink(p, x);
}
