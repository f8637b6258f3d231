/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "client/lease.h"
#include "client/ns.h"

/* A free number of a lease, under the lock; max_leases when there is none. */
static uint32_t take_index(struct kvpool *p)
{
	for (uint32_t i = 0; i < p->max_leases; i++) {
		uint64_t bit = UINT64_C(1) << (i & 63);

		if (!(p->lease_map[i >> 6] & bit)) {
			p->lease_map[i >> 6] |= bit;
			return i;
		}
	}
	return p->max_leases;
}

int lease_make(struct kvpool *p, size_t max_blocks, struct kvpool_lease **ret)
{
	struct kvpool_lease *l = calloc(1, sizeof(*l) + max_blocks * sizeof(l->notes[0]));

	if (!l)
		return -ENOMEM;
	pthread_mutex_lock(&p->lock);
	handle_tidy_locked(p);
	l->index = take_index(p);
	pthread_mutex_unlock(&p->lock);
	if (l->index == p->max_leases) {
		free(l);
		return -ENOSPC;
	}
	handle_ref(p);
	l->pool = p;
	l->max_blocks = (uint32_t)max_blocks;
	l->reason = KVPOOL_BELOW_MIN;
	*ret = l;
	return 0;
}

int kvpool_lease_new(struct kvpool *p, size_t max_blocks, struct kvpool_lease **ret)
{
	int err;

	if (handle_is_forked(p))
		return -ESTALE;
	if (!max_blocks || max_blocks > LEASE_BLOCKS_MAX)
		return handle_error(p, -EINVAL, "a lease of %zu blocks: give 1 to %u", max_blocks,
				    LEASE_BLOCKS_MAX);
	err = lease_make(p, max_blocks, ret);
	if (err == -ENOMEM)
		return handle_error(p, err, "no memory for a lease of %zu blocks", max_blocks);
	if (err < 0)
		return handle_error(p, err,
				    "all %u leases of this pool exist: free some, or raise "
				    "max_leases in struct kvpool_options",
				    p->max_leases);
	return 0;
}

struct kvpool_lease *kvpool_lease_free(struct kvpool_lease *l)
{
	struct kvpool *p;

	if (!l)
		return NULL;
	p = l->pool;
	kvpool_release(l);
	ns_put(l->ns);
	if (!handle_is_forked(p)) {
		pthread_mutex_lock(&p->lock);
		p->lease_map[l->index >> 6] &= ~(UINT64_C(1) << (l->index & 63));
		handle_tidy_locked(p);
		pthread_mutex_unlock(&p->lock);
	}
	free(l);
	handle_unref(p);
	return NULL;
}

void kvpool_release(struct kvpool_lease *l)
{
	struct attach *a = l->attach;

	if (!a)
		return;
	if (!handle_is_forked(l->pool))
		lookup_unpin(lease_hazard(l, 0));
	l->attach = NULL;
	l->depth = 0;
	attach_put(a);
}

size_t kvpool_lease_blocks(const struct kvpool_lease *l)
{
	return handle_is_forked(l->pool) ? 0 : l->depth;
}

size_t kvpool_lease_tokens(const struct kvpool_lease *l)
{
	return l->ns ? kvpool_lease_blocks(l) * l->ns->block_tokens : 0;
}

enum kvpool_reason kvpool_lease_reason(const struct kvpool_lease *l)
{
	return handle_is_forked(l->pool) ? KVPOOL_FORKED : l->reason;
}

const void *kvpool_lease_block(const struct kvpool_lease *l, size_t i)
{
	if (i >= l->depth || l->depth_only || handle_is_forked(l->pool))
		return NULL;
	return l->attach->pool + slot_offset(l->notes[i].slot);
}
