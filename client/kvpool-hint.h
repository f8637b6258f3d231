/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kvpool-hint.h - tell the daemon what a program knows of the future of a prefix.
 *
 * Blocks go when there is need of their room, those first that were used longest ago. A hint
 * changes the time that a prefix counts as used at, once: to
 *
 * 	now + reuse_s + (priority - 50) * 10 seconds
 *
 * but no more than an hour from now. The next use of it counts as any other. Nothing is pinned, and
 * nothing is freed at once.
 *
 * A time to come keeps the prefix as long as others of that time. A time in the past, and the end,
 * is that of what only this prefix has: from its deepest block up to where another one goes on, an
 * operator has a pin, or another program used it since.
 *
 * What kvpool.h says of errors, threads and forks holds here, too.
 */
#ifndef KVPOOL_HINT_H
#define KVPOOL_HINT_H

#include "kvpool.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct kvpool_hint {
	size_t size;       /**< sizeof(struct kvpool_hint) */
	unsigned reuse_s;  /**< it will be wanted again in about so many seconds; 0: unknown */
	unsigned priority; /**< 1 to 99, 50 is what all have; 0: nothing is said */
	int ended;         /**< it will not be wanted again: the first to go; alone */
};

/**
 * Tells the daemon of the cached part of a prompt. Returns how many blocks it was applied to: of a
 * time to come 1, the deepest one, which keeps those before it; of a time in the past, and the end,
 * all that only this prefix has. 0: nothing of it is cached, or others go on from its end.
 *
 * -EOPNOTSUPP: the daemon takes no hints (KVPOOL_HINTS of kvpool_features()). -EINVAL: the hint
 * says nothing, or two things that exclude each other, or there are more than 1048576 blocks. Else
 * as calls that ask the daemon. A hint that is lost does no harm: there is no need to look at the
 * result.
 */
int kvpool_hint(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		const struct kvpool_hint *hint);

/** The same for the keys of a chain from its first block on. */
int kvpool_hint_keys(struct kvpool_ns *ns, const struct kvpool_key *keys, size_t n_keys,
		     const struct kvpool_hint *hint);

/** The same for a chain, without hashing. */
int kvpool_hint_chain(const struct kvpool_chain *chain, const struct kvpool_hint *hint);

/**
 * The same without waiting (see "Not blocking" in kvpool.h), and without hearing what came of it: there is no
 * operation to finish. Return 0 also when nothing is cached; -ENOTCONN when there is no connection
 * at the moment, -EAGAIN when too many operations are under way, else as above.
 */
int kvpool_hint_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		      const struct kvpool_hint *hint);
int kvpool_hint_keys_start(struct kvpool_ns *ns, const struct kvpool_key *keys, size_t n_keys,
			   const struct kvpool_hint *hint);
int kvpool_hint_chain_start(const struct kvpool_chain *chain, const struct kvpool_hint *hint);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
