/* SPDX-License-Identifier: Apache-2.0 */
/* A second sequence with the same blocks: shares what lies in the cache, and copies the rest. */
#include <errno.h>
#include <string.h>

#include "client/ns.h"
#include "client/seq.h"
#include "kernels/copy.h"

#define COPIES_MAX 64u

/* A slot of the copy for each block that it needs its own copy of. Returns 0 or -errno. */
static int grow_copy(struct kvpool_seq *copy, uint32_t n)
{
	int err = n ? seq_connect(copy) : 0;

	if (!err && n)
		err = seq_extend(copy, n);
	return !err && copy->n_blocks < n ? -ENOSPC : err;
}

/* Spreads the n slots that the copy has over the places of the blocks that it copies, from the last
 * on: a place is never before the slot that goes there. */
static void lay_out(struct kvpool_seq *copy, const struct kvpool_seq *s, int share)
{
	uint32_t from = copy->n_blocks;

	for (uint32_t i = s->n_blocks; i-- > 0;)
		if (share && !s->blocks[i].own)
			copy->blocks[i] = s->blocks[i];
		else
			copy->blocks[i] = copy->blocks[--from];
	copy->n_blocks = s->n_blocks;
	copy->attach = share ? s->attach : copy->link.attach;
}

static void copy_bytes(struct kvpool_seq *copy, const struct kvpool_seq *s)
{
	struct copy_run runs[COPIES_MAX];
	unsigned int k = 0;

	for (uint32_t i = 0; i < s->n_blocks; i++) {
		if (copy->blocks[i].own)
			runs[k++] = (struct copy_run){ seq_bytes(copy, i), seq_bytes(s, i),
						       s->ns->block_bytes, 0 };
		if (k == COPIES_MAX || (k && i + 1 == s->n_blocks)) {
			copy_plain_batch(runs, k);
			k = 0;
		}
	}
}

static void share_holds(struct kvpool_seq *copy, const struct kvpool_seq *s)
{
	for (uint32_t i = 0; i < s->n_holds; i++)
		copy->holds[i] = (struct seq_hold){ hold_ref(s->holds[i].hold), s->holds[i].depth };
	copy->n_holds = s->n_holds;
}

/* Whether there is a connection, and another one than that of the blocks. */
static int has_moved(const struct kvpool_seq *s)
{
	struct link l;
	int r;

	if (link_peek(s->pool, &l) < 0)
		return 0;
	r = s->attach && s->attach != l.attach;
	link_put(s->pool, &l);
	return r;
}

/* Whether the copy shares what lies in the cache: else all is copied to the connection of today. */
static int can_share(const struct kvpool_seq *s, const struct kvpool_seq *copy, uint32_t n_own)
{
	if (!n_own)
		return !has_moved(s);
	return s->attach == copy->link.attach && !seq_is_lost(s);
}

static int fork_into(struct kvpool_seq *copy, struct kvpool_seq *s)
{
	uint32_t n_own = seq_count_own(s, 0);
	int share, err = n_own ? seq_connect(copy) : 0;

	if (err < 0)
		return err;
	seq_read_keys(s);
	share = can_share(s, copy, n_own);
	err = grow_copy(copy, share ? n_own : s->n_blocks);
	if (err < 0)
		return err;
	lay_out(copy, s, share);
	copy_bytes(copy, s);
	if (share)
		share_holds(copy, s);
	copy->n_keys = s->n_keys;
	memcpy(copy->keys, s->keys, s->n_keys * sizeof(s->keys[0]));
	copy->reason = s->reason;
	return 0;
}

int kvpool_seq_fork(struct kvpool_seq *s, struct kvpool_seq **ret)
{
	struct kvpool_seq *copy;
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	if (seq_is_busy(s))
		return seq_say_busy(s);
	err = seq_make(s->ns, s->max_blocks, &copy);
	if (err < 0)
		return err;
	err = fork_into(copy, s);
	if (err < 0)
		kvpool_seq_free(copy);
	else
		*ret = copy;
	return err;
}
