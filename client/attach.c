/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "client/attach.h"

void attach_init(struct attach *a)
{
	*a = (struct attach){ .users = ATTACH_RETIRED };
}

/* One region, that a child does not inherit: a child must not write through a stale hazard word. */
static int map_region(int fd, uint64_t bytes, int writable, void **ret_base, const char **ret_why)
{
	void *base;
	int err;

	*ret_why = "a region is not sealed, or not as large as the daemon says";
	err = fd_check_sealed(fd, bytes);
	if (err < 0)
		return err;
	*ret_why = "a region cannot be mapped";
	err = fd_map(fd, bytes, writable, &base);
	if (err < 0)
		return err;
	if (madvise(base, bytes, MADV_DONTFORK) < 0) {
		err = -errno;
		fd_unmap(base, bytes);
		return err;
	}
	*ret_base = base;
	return 0;
}

/* What the maps hold must be what they are said to be. Writes to an empty place. */
static const char *check_regions(struct attach *a, const struct attach_offer *o, void *control,
				 void *region)
{
	const char *why = control_attach(control, o->control_bytes, &a->control);

	if (!why && a->control.head->pool_bytes != o->pool_bytes)
		why = "the pool has another size than the control region says";
	return why ? why : session_attach(region, o->region_bytes, &a->session);
}

int attach_map(struct attach *a, const struct attach_offer *o, uint32_t serial,
	       const char **ret_why)
{
	void *control = NULL, *pool = NULL, *region = NULL;
	const char *why;
	int err;

	err = map_region(o->control_fd, o->control_bytes, 0, &control, ret_why);
	if (!err)
		err = map_region(o->pool_fd, o->pool_bytes, o->pool_writable, &pool, ret_why);
	if (!err)
		err = map_region(o->region_fd, o->region_bytes, 1, &region, ret_why);
	if (err < 0)
		goto unmap;
	why = check_regions(a, o, control, region);
	if (why) {
		*ret_why = why;
		err = -EPROTO;
		goto unmap;
	}
	a->pool = pool;
	a->pool_bytes = o->pool_bytes;
	a->control_bytes = o->control_bytes;
	a->region_bytes = o->region_bytes;
	a->serial = serial;
	a->writable = o->pool_writable;
	store_release(&a->users, 0); /* pairs with the acquire in attach_try_get */
	return 0;
unmap:
	fd_unmap(region, o->region_bytes);
	fd_unmap(pool, o->pool_bytes);
	fd_unmap(control, o->control_bytes);
	return err;
}

void attach_retire(struct attach *a)
{
	or_acq_rel(&a->users, ATTACH_RETIRED);
}

int attach_is_idle(const struct attach *a)
{
	/* Acquire: pairs with the release in attach_put. */
	return load_acquire(&a->users) == ATTACH_RETIRED && attach_is_mapped(a);
}

void attach_unmap(struct attach *a)
{
	fd_unmap(a->session.head, a->region_bytes);
	fd_unmap(a->pool, a->pool_bytes);
	fd_unmap(a->control.head, a->control_bytes);
	/* users stays RETIRED throughout: a lookup may be looking at it this moment. */
	a->pool = NULL;
}
