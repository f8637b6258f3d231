/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "client/op.h"
#include "client/seq_slots.h"
#include "client/write_op.h"

struct kvpool_write *seq_slots_new(const struct kvpool_seq *s, uint32_t n)
{
	struct kvpool_write *w;
	struct link l;

	link_dup(&s->link, &l);
	w = write_new(s->ns, n, &l);
	if (w)
		w->n_blocks = 0;
	else
		link_put(s->pool, &l);
	return w;
}

void seq_slots_add(struct kvpool_write *w, const struct seq_block *b)
{
	w->blocks[w->n_blocks++] = (struct write_block){
		.desc = b->desc,
		.gen = b->gen,
		.slot = b->slot,
		.verdict = KVPOOL_GRANTED,
		.held = 1,
	};
}

void seq_slots_give_back(struct kvpool_write *w)
{
	struct kvpool *p;

	if (!w)
		return;
	p = w->pool;
	handle_ref(p);
	pthread_mutex_lock(&p->ops.lock);
	write_op_give_back(w);
	pthread_mutex_unlock(&p->ops.lock);
	handle_unref(p);
}

/* Own slots from block number from on leave the sequence, without waiting. Returns 0 or -ENOMEM. */
static int give_back_from(struct kvpool_seq *s, uint32_t from)
{
	uint32_t n = seq_is_lost(s) ? 0 : seq_count_own(s, from);
	struct kvpool_write *w = n ? seq_slots_new(s, n) : NULL;

	if (n && !w)
		return handle_error(s->pool, -ENOMEM, "no memory to give %u slots back", n);
	for (uint32_t i = from; n && i < s->n_blocks; i++)
		if (s->blocks[i].own)
			seq_slots_add(w, &s->blocks[i]);
	seq_slots_give_back(w);
	return 0;
}

int kvpool_seq_truncate_start(struct kvpool_seq *s, size_t n_blocks)
{
	int err = seq_check_truncate(s, n_blocks);

	if (!err)
		err = give_back_from(s, (uint32_t)n_blocks);
	if (!err)
		seq_cut(s, (uint32_t)n_blocks);
	return err;
}

struct kvpool_seq *kvpool_seq_free_start(struct kvpool_seq *s)
{
	if (!s || handle_is_forked(s->pool))
		return kvpool_seq_free(s);
	seq_op_let_go(s);
	/* Without memory the daemon has them back with the session. */
	(void)give_back_from(s, 0);
	seq_destroy(s);
	return NULL;
}
