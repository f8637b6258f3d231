/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attachment: the three regions of one session, mapped, and who uses them.
 *
 * Attachments lie in a fixed array of their handle and are never freed while it lives. So a lookup
 * can load the pointer to the current one and take a count on it without a lock: at worst it holds
 * a pointer to one that was retired meanwhile, or that serves the next session by now, and the
 * count tells.
 *
 * users is a count and the bit RETIRED. It is
 *
 * 	RETIRED			an empty place; nothing is mapped
 * 	n			current, n users; a try_get succeeds
 * 	RETIRED | n, n > 0	retired; nobody new comes in
 * 	RETIRED, still mapped	the last user is gone: attach_reap may unmap
 *
 * Retiring and the last put only change the word. Unmapping is a system call, and a lease may be
 * released where none is allowed, so the next call that is not part of the hit path does it.
 */
#ifndef KVP_CLIENT_ATTACH_H
#define KVP_CLIENT_ATTACH_H

#include "shm/control.h"
#include "shm/session.h"

#define ATTACH_RETIRED (UINT64_C(1) << 63)
#define ATTACH_MAX     8u

struct attach {
	uint64_t users; /* atomic */
	struct control control;
	struct session_map session;
	uint8_t *pool;
	uint64_t pool_bytes, control_bytes, region_bytes;
	uint32_t serial; /* which connection of the handle it belongs to; never 0 */
	int writable;    /* the pool is */
};

/* What a daemon hands over at the start of a session. */
struct attach_offer {
	int control_fd, pool_fd, region_fd; /* stay the caller's */
	uint64_t control_bytes, pool_bytes, region_bytes;
	int pool_writable;
};

/* Makes an empty place. */
void attach_init(struct attach *a);

/*
 * Maps the regions of an offer into an empty place. Each must be sealed against shrinking, so that
 * no access through it can raise SIGBUS, and have the format and the size that it should. Returns
 * 0: it is ready, with no user. Or -errno, with what is wrong in words; the place is empty then.
 */
int attach_map(struct attach *a, const struct attach_offer *o, uint32_t serial,
	       const char **ret_why);

/* Takes a count. Returns 0 when it is retired. */
static inline int attach_try_get(struct attach *a)
{
	uint64_t users = load_relaxed(&a->users);

	/* Acquire: what attach_map wrote is seen. */
	while (!(users & ATTACH_RETIRED))
		if (cas_acq_rel(&a->users, &users, users + 1))
			return 1;
	return 0;
}

/* Takes another count, with one in hand: it may be retired. */
static inline void attach_dup(struct attach *a)
{
	add_relaxed(&a->users, 1);
}

/* Gives a count back. Release: the reads through its maps are over. */
static inline void attach_put(struct attach *a)
{
	add_acq_rel(&a->users, (uint64_t)-1);
}

static inline int attach_is_mapped(const struct attach *a)
{
	return a->pool != NULL;
}

/* Nobody can take a count any more. Harmless on an empty place. */
void attach_retire(struct attach *a);

/* True when it is retired, mapped, and nobody uses it. */
int attach_is_idle(const struct attach *a);

/* Unmaps an idle one: an empty place again. Not in a child, where the maps do not exist. */
void attach_unmap(struct attach *a);

/* True when the daemon gave the memory up. */
static inline int attach_is_given_up(const struct attach *a)
{
	return load_acquire(&a->control.head->state) != CONTROL_ACTIVE;
}

#endif
