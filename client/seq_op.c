/* SPDX-License-Identifier: Apache-2.0 */
/* Growing a sequence without waiting; what all operations of a sequence share. */
#include <errno.h>
#include <stdlib.h>

#include "client/op.h"
#include "client/seq.h"
#include "client/write_op.h"

struct grow_job {
	struct op_job job;
	struct kvpool_seq *s; /* the program's: not looked at once the operation is given up */
	uint32_t n_blocks;
	struct reserving r; /* its write keeps the slots until result moves them; without keys */
};

static int grow_prepare(struct op_job *job)
{
	struct grow_job *j = (struct grow_job *)job;
	struct kvpool_seq *s = j->s;
	struct link l = { .rpc = NULL };

	if (job->link.rpc) {
		int err = seq_check_link(s, &job->link);

		if (err < 0)
			return err;
		link_dup(&job->link, &l);
	}
	j->r.w = write_new(job->ns, j->n_blocks > s->n_blocks ? j->n_blocks - s->n_blocks : 0, &l);
	if (j->r.w)
		return 0;
	if (l.rpc)
		link_put(job->pool, &l);
	return -ENOMEM;
}

static int grow_take(void *arg, const ProtobufCMessage *reply)
{
	struct grow_job *j = arg;

	return reserving_take(&j->r, reply);
}

static const ProtobufCMessage *grow_message(struct op_job *job, union op_message *m)
{
	struct grow_job *j = (struct grow_job *)job;
	struct reserving *r = &j->r;

	job->call.op = OP_RESERVE;
	job->call.take = grow_take;
	r->n = MIN(r->w->message.max, r->w->n_blocks - r->at);
	m->reserve = (Kvpool__Reserve)KVPOOL__RESERVE__INIT;
	m->reserve.ns = job->number;
	m->reserve.unnamed = (uint32_t)r->n;
	return &m->reserve.base;
}

static int grow_next(struct op_job *job)
{
	struct grow_job *j = (struct grow_job *)job;

	return reserving_next(&j->r);
}

/* Moves what was granted to the end of the table. */
static void take_slots(struct kvpool_seq *s, struct kvpool_write *w)
{
	for (size_t i = 0; i < w->n_blocks && w->blocks[i].verdict == KVPOOL_GRANTED; i++) {
		struct write_block *b = &w->blocks[i];

		s->blocks[s->n_blocks++] = (struct seq_block){
			.desc = b->desc,
			.gen = b->gen,
			.slot = b->slot,
			.own = 1,
			.verdict = KVPOOL_GRANTED,
		};
		b->held = 0;
		s->attach = s->link.attach;
	}
}

static long grow_result(struct op_job *job)
{
	struct grow_job *j = (struct grow_job *)job;
	struct kvpool_seq *s = j->s;

	if (!s->link.rpc && job->link.rpc) {
		link_dup(&job->link, &s->link);
		s->ns_number = job->number;
	}
	take_slots(s, j->r.w);
	if (j->r.w->full)
		(void)seq_say_full(s, j->n_blocks, j->r.w->full);
	return (long)s->n_blocks;
}

static void grow_drop(struct op_job *job, int err, int sent)
{
	struct grow_job *j = (struct grow_job *)job;
	struct kvpool_write *w = j->r.w;

	free(j);
	if (w && handle_is_forked(w->pool))
		write_drop(w);
	else if (w)
		write_op_give_back(w);
}

/* The reply has to be taken: what it grants goes back. Nothing of the job is needless for that. */
static void grow_abandon(struct op_job *job)
{
	((struct grow_job *)job)->s = NULL;
}

static const struct op_kind grow_kind = {
	.what = "reserve slots",
	.prepare = grow_prepare,
	.message = grow_message,
	.next = grow_next,
	.result = grow_result,
	.drop = grow_drop,
	.abandon = grow_abandon,
};

int kvpool_seq_grow_start(struct kvpool_seq *s, size_t n_blocks, unsigned timeout_ms,
			  kvpool_done done, void *arg, struct kvpool_op **ret)
{
	const struct op_start start = { op_deadline(s->pool, timeout_ms), done, arg, ret };
	struct grow_job *j;
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	err = seq_check_grow(s, n_blocks);
	if (err < 0)
		return err;
	j = calloc(1, sizeof(*j));
	if (!j)
		return handle_error(s->pool, -ENOMEM, "no memory to grow a sequence");
	op_job_init(&j->job, &grow_kind, s->pool, s->ns);
	j->job.writes = 1;
	j->job.seq = j->s = s;
	j->n_blocks = (uint32_t)n_blocks;
	/* On the connection of the slots that it has. */
	if (s->link.rpc)
		link_dup(&s->link, &j->job.link);
	return op_start(&j->job, n_blocks <= s->n_blocks, &start);
}

long kvpool_seq_grow_finish(struct kvpool_op *op)
{
	return op_finish(op, &grow_kind, NULL);
}

void seq_op_let_go(struct kvpool_seq *s)
{
	struct kvpool *p = s->pool;

	pthread_mutex_lock(&p->ops.lock);
	if (s->op && s->op->job)
		op_cancel_job(s->op->job);
	if (s->op)
		op_unbind_seq(s->op);
	pthread_mutex_unlock(&p->ops.lock);
}
