/* SPDX-License-Identifier: Apache-2.0 */
/* Single flight: waiting for what another client writes. */
#include "daemon/model.h"
#include "shm/lookup.h"

/* Keys that are looked up together. */
#define PART 128u

void pool_waiter_init(struct pool_waiter *w)
{
	*w = (struct pool_waiter){ .ns = NS_NONE };
	list_init(&w->link);
}

/* The block under key in that namespace, or DESC_NONE. */
static uint32_t find(const struct pool *p, const struct namespace *ns, const struct block_key *key)
{
	uint32_t d = block_find(p, key);

	return d != DESC_NONE && block_namespace(p, d) == ns ? d : DESC_NONE;
}

/* How many of at most PART keys are cached from the first on: as a reader finds it. */
static uint32_t cached(const struct pool *p, const struct namespace *ns,
		       const struct block_key *keys, uint32_t n)
{
	struct lookup_note notes[PART];
	uint32_t found = lookup_scan(&p->control, keys, n, TIER_HOST, notes);

	for (uint32_t i = 0; i < found; i++)
		if (block_namespace(p, notes[i].desc) != ns)
			return i;
	return found;
}

/* How many keys are cached from the first on, and the block under the next one. */
static uint32_t present(const struct pool *p, uint32_t number, const struct block_key *keys,
			uint32_t n, uint32_t *ret_next)
{
	const struct namespace *ns = namespace_get(p, number);
	uint32_t i = 0;

	*ret_next = DESC_NONE;
	while (ns && i < n) {
		uint32_t part = MIN(n - i, PART), k = cached(p, ns, &keys[i], part);

		i += k;
		if (k < part) {
			*ret_next = find(p, ns, &keys[i]);
			break;
		}
	}
	return i;
}

uint32_t pool_present(const struct pool *p, uint32_t ns, const struct block_key *keys, uint32_t n)
{
	uint32_t next;

	return present(p, ns, keys, n, &next);
}

/* Returns 1 when w has to wait, and for which block is noted in it. */
static int must_wait(const struct pool *p, struct pool_waiter *w, uint32_t *ret_present)
{
	uint32_t next, n = present(p, w->ns, w->keys, w->n_keys, &next);

	if (next == DESC_NONE) {
		*ret_present = n;
		return 0;
	}
	w->desc = next;
	w->gen = block_gen(p, next);
	return 1;
}

int pool_wait(struct pool *p, struct pool_waiter *w, uint32_t *ret_present)
{
	if (!must_wait(p, w, ret_present))
		return 0;
	list_add_tail(&p->waiters, &w->link);
	return 1;
}

void pool_wait_cancel(struct pool_waiter *w)
{
	list_del(&w->link);
}

static int still_reserved(const struct pool *p, const struct pool_waiter *w)
{
	return block_gen(p, w->desc) == w->gen && block_state(p, w->desc) == DESC_RESERVED;
}

void pool_wake(struct pool *p)
{
	struct pool_waiter *w, *tmp;

	if (!p->woken)
		return;
	p->woken = 0;
	list_for_each_safe(w, tmp, &p->waiters, link) {
		uint32_t n;

		if (still_reserved(p, w) || must_wait(p, w, &n))
			continue;
		list_del(&w->link);
		p->ops->wake(p->ctx, w, n);
	}
}
