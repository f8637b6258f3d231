/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "client/hold.h"

static struct hold *hold_alloc(size_t n)
{
	struct hold *h = calloc(1, sizeof(*h) + n * sizeof(h->lease[0]));

	if (h)
		h->refs = 1;
	return h;
}

int hold_new(struct kvpool *p, size_t max_blocks, struct hold **ret)
{
	struct hold *h = hold_alloc(1);
	int err;

	if (!h)
		return handle_error(p, -ENOMEM, "no memory for a hold on blocks");
	err = kvpool_lease_new(p, max_blocks, &h->lease[0]);
	if (err < 0) {
		free(h);
		return err;
	}
	h->n = 1;
	*ret = h;
	return 0;
}

/* The daemon may have given fewer hazard words than there are leases. */
static int has_words(const struct kvpool_lease *l, const struct attach *a)
{
	return 2 * l->index + 1 < a->session.hazard_count;
}

int hold_new_pins(struct kvpool *p, const struct attach *a, size_t n, struct hold **ret)
{
	struct hold *h = hold_alloc(n);
	int err = h ? 0 : -ENOMEM;

	while (!err && h->n < n) {
		err = lease_make(p, 1, &h->lease[h->n]);
		if (!err && !has_words(h->lease[h->n], a)) {
			kvpool_lease_free(h->lease[h->n]);
			err = -ENOSPC;
		}
		h->n += !err;
	}
	if (h && h->n) {
		*ret = h;
		return 0;
	}
	free(h);
	if (err == -ENOMEM)
		return handle_error(p, err, "no memory to pin %zu blocks", n);
	return handle_error(p, err,
			    "no lease is left to pin what is committed: raise max_leases in "
			    "struct kvpool_options");
}

struct hold *hold_ref(struct hold *h)
{
	add_relaxed(&h->refs, 1);
	return h;
}

struct hold *hold_unref(struct hold *h)
{
	if (!h || add_acq_rel(&h->refs, (uint64_t)-1) != 1)
		return NULL;
	for (size_t i = 0; i < h->n; i++)
		kvpool_lease_free(h->lease[i]);
	free(h);
	return NULL;
}

void hold_pin(struct hold *h, size_t i, struct attach *a, uint32_t desc)
{
	struct kvpool_lease *l = h->lease[i];

	attach_dup(a);
	l->attach = a;
	l->notes[0] = (struct lookup_note){ .desc = desc };
	l->depth = 1;
	/*
	 * Release, and before the message: see above. There is nothing to validate, since this
	 * program alone can end the reservation.
	 */
	store_release(lease_hazard(l, 0), hazard_make(desc, TIER_HOST, 0));
}

void hold_keep(struct hold *h, size_t i)
{
	struct kvpool_lease *keep = h->lease[i];

	for (size_t k = 0; k < h->n; k++)
		if (k != i)
			kvpool_lease_free(h->lease[k]);
	h->lease[0] = keep;
	h->n = 1;
}
