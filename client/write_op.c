/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/op.h"
#include "client/prompt.h"
#include "client/write_op.h"
#include "kernels/crc32c.h"

#define CRC_OF_COMMIT 2 /* write_block.has_crc */

/*
 * Reserve.
 */

struct reserve_job {
	struct op_job job;
	struct reserving r; /* its write is this one's until result hands it over */
	struct block_key parent;
	int has_parent;
	size_t n;
	struct block_key *keys;
};

static int reserve_prepare(struct op_job *job)
{
	struct reserve_job *j = (struct reserve_job *)job;
	struct link l = { .rpc = NULL };

	if (job->link.rpc)
		link_dup(&job->link, &l);
	j->r.w = write_new(job->ns, j->n, &l);
	if (!j->r.w) {
		if (l.rpc)
			link_put(job->pool, &l);
		return -ENOMEM;
	}
	j->r.w->cold = 1;
	j->r.parent = j->has_parent ? &j->parent : NULL;
	j->r.keys = j->keys;
	return 0;
}

static int reserve_take(void *arg, const ProtobufCMessage *reply)
{
	struct reserve_job *j = arg;

	return reserving_take(&j->r, reply);
}

static const ProtobufCMessage *reserve_message(struct op_job *job, union op_message *m)
{
	struct reserve_job *j = (struct reserve_job *)job;

	job->call.op = OP_RESERVE;
	job->call.take = reserve_take;
	m->reserve = (Kvpool__Reserve)KVPOOL__RESERVE__INIT;
	reserving_message(&j->r, job->number, &m->reserve);
	return &m->reserve.base;
}

static int reserve_next(struct op_job *job)
{
	struct reserve_job *j = (struct reserve_job *)job;

	return reserving_next(&j->r);
}

static long reserve_result(struct op_job *job)
{
	struct reserve_job *j = (struct reserve_job *)job;
	struct kvpool_write *w = j->r.w;
	long granted = 0;

	for (size_t i = 0; i < w->n_blocks; i++)
		granted += w->blocks[i].verdict == KVPOOL_GRANTED;
	job->op->write = w;
	j->r.w = NULL;
	return granted;
}

static void reserve_drop(struct op_job *job, int err, int sent)
{
	struct reserve_job *j = (struct reserve_job *)job;
	struct kvpool_write *w = j->r.w;

	free(j->keys);
	free(j);
	if (w && handle_is_forked(w->pool))
		write_drop(w);
	else if (w)
		write_op_give_back(w);
}

/* What the reply grants must be given back; what it was about no longer matters. */
static void reserve_abandon(struct op_job *job)
{
	struct reserve_job *j = (struct reserve_job *)job;

	free(j->keys);
	j->keys = NULL;
}

static const struct op_kind reserve_kind = {
	.what = "reserve blocks",
	.prepare = reserve_prepare,
	.message = reserve_message,
	.next = reserve_next,
	.result = reserve_result,
	.drop = reserve_drop,
	.abandon = reserve_abandon,
};

/* Takes keys over, which are allocated. */
static int reserve_start(struct kvpool_ns *ns, const struct block_key *parent,
			 struct block_key *keys, size_t n, const struct op_start *s)
{
	struct reserve_job *j = calloc(1, sizeof(*j));

	if (!j) {
		free(keys);
		return handle_error(ns->pool, -ENOMEM, "no memory to write %zu blocks", n);
	}
	op_job_init(&j->job, &reserve_kind, ns->pool, ns);
	j->job.writes = 1;
	j->keys = keys;
	j->n = n;
	if (parent) {
		j->parent = *parent;
		j->has_parent = 1;
	}
	return op_start(&j->job, !n, s);
}

int kvpool_reserve_keys_start(struct kvpool_ns *ns, const struct kvpool_key *parent,
			      const struct kvpool_key *keys, size_t n_keys, unsigned timeout_ms,
			      kvpool_done done, void *arg, struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(ns->pool, timeout_ms), done, arg, ret };
	struct block_key *copy;

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	if (n_keys > CHAIN_BLOCKS_MAX)
		return handle_error(ns->pool, -EINVAL, "a write of %zu blocks: %u are the most",
				    n_keys, CHAIN_BLOCKS_MAX);
	copy = malloc(MAX(n_keys, (size_t)1) * sizeof(*copy));
	if (!copy)
		return handle_error(ns->pool, -ENOMEM, "no memory for the keys of %zu blocks",
				    n_keys);
	if (n_keys)
		memcpy(copy, keys, n_keys * sizeof(*copy));
	return reserve_start(ns, (const struct block_key *)parent, copy, n_keys, &s);
}

int kvpool_reserve_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
			 size_t first_block, unsigned timeout_ms, kvpool_done done, void *arg,
			 struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(ns->pool, timeout_ms), done, arg, ret };
	struct chain c;
	int err;

	err = chain_open(&c, ns, tokens, n_tokens, first_block, CHAIN_ALL);
	return err < 0 ? err : reserve_start(ns, chain_parent(&c, 0), c.keys, c.n, &s);
}

int kvpool_reserve_chain_start(const struct kvpool_chain *chain, size_t first_block,
			       unsigned timeout_ms, kvpool_done done, void *arg,
			       struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(chain->ns->pool, timeout_ms), done, arg, ret };
	struct chain c;
	int err;

	err = prompt_copy(chain, first_block, &c);
	return err < 0 ? err : reserve_start(chain->ns, chain_parent(&c, 0), c.keys, c.n, &s);
}

int kvpool_reserve_finish(struct kvpool_op *op, struct kvpool_write **ret)
{
	return (int)op_finish(op, &reserve_kind, ret);
}

/*
 * Commit.
 */

struct commit_job {
	struct op_job job;
	struct committing c; /* the write is the program's; NULL: freed, in a child */
};

static int commit_take(void *arg, const ProtobufCMessage *reply)
{
	struct commit_job *j = arg;

	return committing_take(&j->c, reply);
}

static const ProtobufCMessage *commit_message(struct op_job *job, union op_message *m)
{
	struct commit_job *j = (struct commit_job *)job;

	job->call.op = OP_COMMIT;
	job->call.take = commit_take;
	m->commit = (Kvpool__Commit)KVPOOL__COMMIT__INIT;
	(void)committing_message(&j->c, &m->commit);
	return &m->commit.base;
}

/* True when a granted block is left to commit. */
static int is_left(const struct committing *c)
{
	for (size_t i = c->at; i < c->n; i++)
		if (c->w->blocks[i].verdict == KVPOOL_GRANTED)
			return 1;
	return 0;
}

static int commit_next(struct op_job *job)
{
	struct commit_job *j = (struct commit_job *)job;

	j->c.at = j->c.end;
	return is_left(&j->c);
}

static long commit_result(struct op_job *job)
{
	struct commit_job *j = (struct commit_job *)job;

	return j->c.stored;
}

/* What was sent and not answered: nothing is known of it. The rest can be committed later. */
static void make_stale(const struct committing *c)
{
	for (size_t i = c->at; i < c->end; i++)
		if (c->w->blocks[i].verdict == KVPOOL_GRANTED)
			c->w->blocks[i].verdict = KVPOOL_STALE;
}

static void commit_drop(struct op_job *job, int err, int sent)
{
	struct commit_job *j = (struct commit_job *)job;
	struct kvpool_write *w = j->c.w;

	if (!w) {
		free(j);
		return;
	}
	if (err < 0 && sent)
		make_stale(&j->c);
	for (size_t i = 0; i < j->c.n; i++)
		if (w->blocks[i].has_crc == CRC_OF_COMMIT)
			w->blocks[i].has_crc = 0;
	if (j->c.stored && !handle_is_forked(w->pool))
		write_count_stored(w, (size_t)j->c.stored);
	w->job = NULL;
	free(j);
}

static int commit_prepare(struct op_job *job)
{
	((struct commit_job *)job)->c.w->job = job;
	return 0;
}

static const struct op_kind commit_kind = {
	.what = "commit blocks",
	.prepare = commit_prepare,
	.message = commit_message,
	.next = commit_next,
	.result = commit_result,
	.drop = commit_drop,
};

/* Checksums now, in the thread of the program, and not in the one that dispatches. */
static void sum_up(struct kvpool_write *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct write_block *b = &w->blocks[i];

		if (b->verdict != KVPOOL_GRANTED || b->has_crc)
			continue;
		b->crc = crc32c(0, write_slot(w, b), w->ns->block_bytes);
		b->has_crc = CRC_OF_COMMIT;
	}
}

int kvpool_commit_start(struct kvpool_write *w, size_t n, unsigned timeout_ms, kvpool_done done,
			void *arg, struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(w->pool, timeout_ms), done, arg, ret };
	struct commit_job *j;
	int err;

	if (handle_is_forked(w->pool))
		return -ESTALE;
	err = write_check_commit(w, n);
	if (err < 0)
		return err;
	j = calloc(1, sizeof(*j));
	if (!j)
		return handle_error(w->pool, -ENOMEM, "no memory to commit %zu blocks", n);
	sum_up(w, n);
	op_job_init(&j->job, &commit_kind, w->pool, NULL);
	j->c = (struct committing){ .w = w, .n = n };
	/* On the connection that granted them, or not at all. */
	if (w->link.rpc)
		link_dup(&w->link, &j->job.link);
	return op_start(&j->job, !is_left(&j->c), &s);
}

int kvpool_commit_finish(struct kvpool_op *op)
{
	return (int)op_finish(op, &commit_kind, NULL);
}

int write_op_is_under_way(const struct kvpool_write *w)
{
	int r;

	pthread_mutex_lock(&w->pool->ops.lock);
	r = w->job != NULL;
	pthread_mutex_unlock(&w->pool->ops.lock);
	return r;
}

void write_op_forget(struct kvpool_write *w)
{
	if (w->job)
		((struct commit_job *)w->job)->c.w = NULL;
}

void write_op_cancel(struct kvpool_write *w)
{
	pthread_mutex_lock(&w->pool->ops.lock);
	if (w->job)
		op_cancel_job(w->job);
	pthread_mutex_unlock(&w->pool->ops.lock);
}

/*
 * Giving back.
 */

struct give_back_job {
	struct op_job job;
	struct giving_back g; /* the write is this one's */
};

static const ProtobufCMessage *give_back_message(struct op_job *job, union op_message *m)
{
	struct give_back_job *j = (struct give_back_job *)job;

	job->call.op = OP_ABORT;
	m->abort = (Kvpool__Abort)KVPOOL__ABORT__INIT;
	(void)giving_back_message(&j->g, &m->abort);
	return &m->abort.base;
}

/* True when the daemon may keep something that no message was about yet. */
static int is_held(const struct giving_back *g)
{
	for (size_t i = 0; i < g->at; i++)
		if (g->w->blocks[i].held)
			return 1;
	return 0;
}

static int give_back_next(struct op_job *job)
{
	struct give_back_job *j = (struct give_back_job *)job;

	j->g.at = j->g.end;
	return is_held(&j->g);
}

static void give_back_drop(struct op_job *job, int err, int sent)
{
	struct give_back_job *j = (struct give_back_job *)job;

	write_drop(j->g.w);
	free(j);
}

static const struct op_kind give_back_kind = {
	.what = "give blocks back",
	.message = give_back_message,
	.next = give_back_next,
	.drop = give_back_drop,
};

/*
 * Without memory for a job: as far as the socket has room. What is left the daemon takes back
 * itself, when the grant has lasted for long enough.
 */
static void post(struct giving_back *g)
{
	Kvpool__Abort m = KVPOOL__ABORT__INIT;

	for (; giving_back_message(g, &m); g->at = g->end)
		rpc_post(g->w->link.rpc, OP_ABORT, &m.base);
}

void write_op_give_back(struct kvpool_write *w)
{
	struct giving_back g = { .w = w, .at = w->n_blocks };
	struct give_back_job *j;
	struct link l;

	if (!w->link.rpc || write_is_stale(w) || !is_held(&g)) {
		write_drop(w);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		post(&g);
		write_drop(w);
		return;
	}
	op_job_init(&j->job, &give_back_kind, w->pool, NULL);
	j->g = g;
	link_dup(&w->link, &l);
	op_start_detached(&j->job, &l);
}

struct kvpool_write *kvpool_write_free_start(struct kvpool_write *w)
{
	struct kvpool *p;

	if (!w)
		return NULL;
	p = w->pool;
	if (handle_is_forked(p))
		return kvpool_write_free(w);
	/* The write may have the last reference. */
	handle_ref(p);
	pthread_mutex_lock(&p->ops.lock);
	if (w->job)
		op_cancel_job(w->job);
	write_op_give_back(w);
	pthread_mutex_unlock(&p->ops.lock);
	handle_unref(p);
	return NULL;
}
