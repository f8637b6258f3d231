/* SPDX-License-Identifier: Apache-2.0 */
/* Naming and committing the own blocks of a sequence without waiting. */
#include <errno.h>
#include <stdlib.h>

#include "client/op.h"
#include "client/seq_name.h"
#include "client/seq_slots.h"

struct name_job {
	struct op_job job;
	struct naming n;
	uint32_t end;
	int swap;
};

static int name_prepare(struct op_job *job)
{
	struct name_job *j = (struct name_job *)job;
	int r = seq_name_begin(&j->n, job->seq, j->end);

	return r < 0 ? r : 0;
}

static int name_take(void *arg, const ProtobufCMessage *reply)
{
	struct name_job *j = arg;

	return seq_name_take(&j->n, reply);
}

static const ProtobufCMessage *name_message(struct op_job *job, union op_message *m)
{
	struct name_job *j = (struct name_job *)job;

	job->call.op = OP_COMMIT;
	job->call.take = name_take;
	m->commit = (Kvpool__Commit)KVPOOL__COMMIT__INIT;
	seq_name_message(&j->n, &m->commit);
	return &m->commit.base;
}

static int name_next(struct op_job *job)
{
	return seq_name_next(&((struct name_job *)job)->n);
}

static long name_result(struct op_job *job)
{
	struct name_job *j = (struct name_job *)job;

	job->seq->swap = j->swap;
	return j->n.stored;
}

/*
 * A message that had no answer, or was not even sent: its pins may be those of an earlier one whose
 * fate is unknown, so they stay. A child only frees: its sequence may be gone.
 */
static void name_drop(struct op_job *job, int err, int sent)
{
	struct name_job *j = (struct name_job *)job;

	if (j->n.hold && !handle_is_forked(job->pool))
		seq_name_lost(&j->n);
	else
		hold_unref(j->n.hold);
	free(j);
}

static const struct op_kind name_kind = {
	.what = "commit blocks of a sequence",
	.prepare = name_prepare,
	.message = name_message,
	.next = name_next,
	.result = name_result,
	.drop = name_drop,
};

static int check(struct kvpool_seq *s, unsigned int flags)
{
	int err = seq_name_check(s, flags);

	if (err < 0)
		return err;
	return s->n_blocks && seq_is_lost(s) ? seq_say_lost(s) : 0;
}

/* The keys of the first n blocks are known. */
static int start(struct kvpool_seq *s, uint32_t n, unsigned int flags, const struct op_start *start)
{
	struct name_job *j = calloc(1, sizeof(*j));

	if (!j)
		return handle_error(s->pool, -ENOMEM, "no memory to commit %u blocks", n);
	s->swap = 0;
	/* In the thread of the program, and not in the one that dispatches. */
	seq_name_sum_up(s, n);
	op_job_init(&j->job, &name_kind, s->pool, NULL);
	j->job.seq = s;
	j->end = n;
	j->swap = (flags & KVPOOL_SWAP) != 0;
	/* Own slots are committed on the connection that granted them, or not at all. */
	if (s->link.rpc)
		link_dup(&s->link, &j->job.link);
	return op_start(&j->job, !seq_name_is_due(s, n), start);
}

int kvpool_seq_commit_start(struct kvpool_seq *s, const int32_t *tokens, size_t n_tokens,
			    unsigned flags, unsigned timeout_ms, kvpool_done done, void *arg,
			    struct kvpool_op **ret)
{
	const struct op_start st = { op_deadline(s->pool, timeout_ms), done, arg, ret };
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	err = check(s, flags);
	return err < 0 ? err : start(s, seq_name_tokens(s, tokens, n_tokens), flags, &st);
}

int kvpool_seq_commit_keys_start(struct kvpool_seq *s, const struct kvpool_key *keys, size_t n_keys,
				 unsigned flags, unsigned timeout_ms, kvpool_done done, void *arg,
				 struct kvpool_op **ret)
{
	const struct op_start st = { op_deadline(s->pool, timeout_ms), done, arg, ret };
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	err = check(s, flags);
	return err < 0 ? err : start(s, seq_name_keys(s, keys, n_keys), flags, &st);
}

/* The sequence of one that is done, and whose copies are to be taken out of the table; or NULL. */
static struct kvpool_seq *swaps(struct kvpool_op *op)
{
	struct kvpool_seq *s;

	if (handle_is_forked(op->pool) || op->kind != &name_kind || !kvpool_op_done(op))
		return NULL;
	pthread_mutex_lock(&op->pool->ops.lock);
	s = op->seq && op->seq->swap ? op->seq : NULL;
	if (s)
		s->swap = 0;
	pthread_mutex_unlock(&op->pool->ops.lock);
	return s;
}

int kvpool_seq_commit_finish(struct kvpool_op *op)
{
	struct kvpool_seq *s = swaps(op);
	struct kvpool_write *w = NULL;
	int stored = (int)op_finish(op, &name_kind, NULL);
	int err = s ? seq_name_swap(s, &w) : 0;

	seq_slots_give_back(w);
	return err < 0 ? err : stored;
}
