/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/keys_job.h"
#include "client/prompt.h"

/* What one WAIT said. */
struct waited {
	uint32_t n_keys, present;
	int timed_out;
};

static int waited_take(void *arg, const ProtobufCMessage *reply)
{
	const Kvpool__WaitReply *m = (const Kvpool__WaitReply *)reply;
	struct waited *w = arg;

	if (m->present > w->n_keys)
		return -EPROTO;
	w->present = m->present;
	w->timed_out = m->timed_out;
	return 0;
}

/* The time that is left, for the daemon. */
static uint32_t left_ms(uint64_t until)
{
	uint64_t now = clock_ns();

	return now < until ? (uint32_t)MIN((until - now) / NSEC_PER_MSEC, (uint64_t)UINT32_MAX) : 0;
}

static int still_written(struct kvpool *p)
{
	return handle_error(p, -ETIMEDOUT,
			    "blocks are still being written by another program: the time to wait "
			    "for them is over");
}

static int wait_part(struct kvpool *p, const struct link *l, Kvpool__Wait *m, uint64_t deadline,
		     struct waited *ret)
{
	struct rpc_call call = { .op = OP_WAIT, .take = waited_take, .arg = ret };
	int err = link_call(p, l, "wait for blocks", &call, &m->base, deadline);

	if (err == -ETIMEDOUT || (!err && ret->timed_out))
		return still_written(p);
	return err;
}

/* Waits for the keys of a chain, as many as fit a message at once. Returns how many are cached. */
static long wait_chain(struct kvpool_ns *ns, const struct link *l, const struct chain *c,
		       uint64_t until, uint64_t deadline)
{
	Kvpool__Wait m = KVPOOL__WAIT__INIT;
	uint64_t began = clock_ns();
	struct waited w = { 0 };
	size_t at = 0;
	int err;

	err = ns_register(ns, l, deadline, &m.ns);
	for (; !err && at < c->n && w.present == w.n_keys; at += w.present) {
		w.n_keys = (uint32_t)MIN(c->n - at, (size_t)l->max_keys);
		m.keys = (ProtobufCBinaryData){ w.n_keys * sizeof(c->keys[0]),
						(uint8_t *)c->keys[at].w };
		m.timeout_ms = left_ms(until);
		err = wait_part(ns->pool, l, &m, deadline, &w);
	}
	handle_count(ns->pool, l->attach, COUNTER_WAITS, 1);
	handle_count(ns->pool, l->attach, COUNTER_WAITED_NS, clock_ns() - began);
	return err < 0 ? err : (long)at;
}

/* Returns how many tokens of the prompt are cached then. */
static long wait_run(struct kvpool_ns *ns, const struct chain *c, unsigned timeout_ms)
{
	struct kvpool *p = ns->pool;
	uint64_t until = clock_ns() + timeout_ms * NSEC_PER_MSEC;
	/* An answer that is due at once takes a moment, too. */
	uint64_t deadline = timeout_ms ? until : handle_deadline(p);
	struct link l;
	long n = 0;
	int err;

	if (c->n) {
		err = link_get(p, LINK_PATIENT, deadline, &l);
		if (err < 0)
			return link_errno(err);
		n = wait_chain(ns, &l, c, until, deadline);
		link_put(p, &l);
	}
	return n < 0 ? n : (long)((c->first + (size_t)n) * ns->block_tokens);
}

long kvpool_wait(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, size_t first_block,
		 unsigned timeout_ms)
{
	struct chain c;
	long n;

	n = chain_open(&c, ns, tokens, n_tokens, first_block, CHAIN_ALL);
	if (n < 0)
		return n;
	n = wait_run(ns, &c, timeout_ms);
	chain_close(&c);
	return n;
}

long kvpool_wait_chain(const struct kvpool_chain *chain, size_t first_block, unsigned timeout_ms)
{
	struct chain c;
	int err;

	err = prompt_run(chain, first_block, &c);
	return err < 0 ? err : wait_run(chain->ns, &c, timeout_ms);
}

/*
 * Without blocking.
 */

static int job_take(void *arg, const ProtobufCMessage *reply)
{
	struct keys_job *j = arg;
	struct waited w = { .n_keys = j->asked };
	int err = waited_take(&w, reply);

	j->good = w.present;
	j->timed_out = w.timed_out;
	return err;
}

static const ProtobufCMessage *job_message(struct op_job *job, union op_message *m)
{
	struct keys_job *j = (struct keys_job *)job;

	job->call.op = OP_WAIT;
	job->call.take = job_take;
	m->wait = (Kvpool__Wait)KVPOOL__WAIT__INIT;
	m->wait.ns = job->number;
	m->wait.keys = keys_job_part(j);
	m->wait.timeout_ms = left_ms(j->until);
	return &m->wait.base;
}

static int job_next(struct op_job *job)
{
	const struct keys_job *j = (const struct keys_job *)job;

	return j->timed_out ? still_written(job->pool) : keys_job_next(job);
}

static long job_result(struct op_job *job)
{
	const struct keys_job *j = (const struct keys_job *)job;

	return (long)((j->c.first + j->at) * job->ns->block_tokens);
}

/*
 * A wait that nobody waits for any more is ended at the daemon, since it takes only so many of one
 * client. It answers both requests; what it says does not matter.
 */
struct unwait_job {
	struct op_job job;
	uint64_t id;
};

static const ProtobufCMessage *unwait_message(struct op_job *job, union op_message *m)
{
	job->call.op = OP_UNWAIT;
	m->unwait = (Kvpool__Unwait)KVPOOL__UNWAIT__INIT;
	m->unwait.id = ((struct unwait_job *)job)->id;
	return &m->unwait.base;
}

static int unwait_next(struct op_job *job)
{
	return 0;
}

static void unwait_drop(struct op_job *job, int err, int sent)
{
	free(job);
}

static const struct op_kind unwait_kind = {
	.what = "end a wait",
	.message = unwait_message,
	.next = unwait_next,
	.drop = unwait_drop,
};

static void unwait(const struct op_job *wait)
{
	struct unwait_job *j;
	const char *why;
	struct link l;

	if (!wait->call.id || rpc_status(wait->link.rpc, &why) ||
	    !(kvpool_features(wait->pool) & KVPOOL_UNWAIT))
		return;
	j = calloc(1, sizeof(*j));
	if (!j) /* it ends when its time is over */
		return;
	op_job_init(&j->job, &unwait_kind, wait->pool, NULL);
	j->id = wait->call.id;
	link_dup(&wait->link, &l);
	op_start_detached(&j->job, &l);
}

static void job_drop(struct op_job *job, int err, int sent)
{
	const struct keys_job *j = (const struct keys_job *)job;

	/* A child has no such memory. */
	if (job->link.attach && !handle_is_forked(job->pool)) {
		handle_count(job->pool, job->link.attach, COUNTER_WAITS, 1);
		handle_count(job->pool, job->link.attach, COUNTER_WAITED_NS, clock_ns() - j->began);
	}
	if (err == -ECANCELED && sent)
		unwait(job);
	keys_job_drop(job, err, sent);
}

static const struct op_kind wait_kind = {
	.what = "wait for blocks",
	.message = job_message,
	.next = job_next,
	.result = job_result,
	.drop = job_drop,
};

/* Takes the keys of c over. */
static int wait_start(struct kvpool_ns *ns, struct chain *c, unsigned int timeout_ms,
		      const struct op_start *s)
{
	struct keys_job *j = keys_job_new(&wait_kind, ns, c);

	if (!j)
		return -ENOMEM;
	j->until = j->began + timeout_ms * NSEC_PER_MSEC;
	return op_start(&j->job, !j->c.n, s);
}

int kvpool_wait_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		      size_t first_block, unsigned timeout_ms, kvpool_done done, void *arg,
		      struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(ns->pool, timeout_ms), done, arg, ret };
	struct chain c;
	int err;

	err = chain_open(&c, ns, tokens, n_tokens, first_block, CHAIN_ALL);
	return err < 0 ? err : wait_start(ns, &c, timeout_ms, &s);
}

int kvpool_wait_chain_start(const struct kvpool_chain *chain, size_t first_block,
			    unsigned timeout_ms, kvpool_done done, void *arg,
			    struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(chain->ns->pool, timeout_ms), done, arg, ret };
	struct chain c;
	int err;

	err = prompt_copy(chain, first_block, &c);
	return err < 0 ? err : wait_start(chain->ns, &c, timeout_ms, &s);
}

long kvpool_wait_finish(struct kvpool_op *op)
{
	return op_finish(op, &wait_kind, NULL);
}
