/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/ns_op.h"
#include "client/op.h"
#include "client/seq.h"
#include "client/write_op.h"

uint64_t op_deadline(const struct kvpool *p, unsigned int timeout_ms)
{
	return timeout_ms ? clock_ns() + timeout_ms * NSEC_PER_MSEC : handle_deadline(p);
}

void op_job_init(struct op_job *j, const struct op_kind *kind, struct kvpool *p,
		 struct kvpool_ns *ns)
{
	*j = (struct op_job){ .kind = kind, .pool = p, .ns = ns };
	list_init(&j->in_jobs);
	list_init(&j->in_queue);
	handle_ref(p);
	if (ns)
		ns_ref(ns);
}

/* Frees a job that is in no list. The caller has a reference of the handle. */
static void job_free(struct op_job *j, int err)
{
	struct kvpool *p = j->pool;
	struct kvpool_ns *ns = j->ns;
	struct link l = j->link;

	free(j->question);
	j->kind->drop(j, err, j->sent);
	if (l.rpc)
		link_put(p, &l);
	ns_put(ns);
	handle_unref(p);
}

/*
 * Its operation lets go of it, before anything else ends: a child that another thread forks
 * meanwhile must not find a job that is freed.
 */
static void job_unbind(struct op_job *j)
{
	if (j->op)
		j->op->job = NULL;
	j->op = NULL;
}

/* Takes a job out of all lists, and frees it. */
static void job_end(struct op_job *j, int err)
{
	struct ops *ops = &j->pool->ops;

	job_unbind(j);
	due_remove(&ops->due, &j->due);
	list_del(&j->in_queue);
	list_del(&j->in_jobs);
	ops->n_jobs--;
	job_free(j, err);
}

/* The operation has come to its end: kvpool_dispatch hands it out. */
static void op_complete(struct kvpool_op *op, long result)
{
	struct ops *ops = &op->pool->ops;

	op->result = result;
	op->in_done = 1;
	list_add_tail(&ops->done, &op->link);
	ops->n_done++;
	store_release(&op->is_done, 1);
}

static void job_finish(struct op_job *j, int err)
{
	struct kvpool_op *op = j->op;
	long result = err;

	if (!err && op)
		result = j->kind->result(j);
	job_end(j, op ? err : -ECANCELED);
	if (op)
		op_complete(op, result);
}

/* Nobody waits for it any more. */
static void job_give_up(struct op_job *j, int err)
{
	job_unbind(j);
	due_remove(&j->pool->ops.due, &j->due);
	if (j->question && err == -ETIMEDOUT)
		store_relaxed(&j->ns->unanswered, j->link.attach->serial);
	if (j->sent && !j->question && j->kind->abandon) {
		j->kind->abandon(j);
		return;
	}
	if (j->sent)
		rpc_cancel(j->link.rpc, j->question ? &j->question->call : &j->call);
	job_end(j, err);
}

/* Sends what comes next. Returns 0, -EAGAIN, or why it cannot. */
static int job_send(struct op_job *j)
{
	Kvpool__NsOpen open = KVPOOL__NS_OPEN__INIT;
	const ProtobufCMessage *m = &open.base;
	struct rpc_call *call = &j->call;
	union op_message any;
	int err;

	if (j->question) {
		ns_question_make(j->question, j->ns, &j->pool->ops.port, &open);
		call = &j->question->call;
	} else {
		j->call = (struct rpc_call){ .arg = j, .port = &j->pool->ops.port };
		m = j->kind->message(j, &any);
	}
	call->owner = j;
	err = rpc_try_start(j->link.rpc, call, m);
	j->sent = !err;
	return err;
}

static int job_failed(struct op_job *j, const struct rpc_call *call, int err)
{
	return link_failed(j->pool, j->link.rpc, j->kind->what, call, err);
}

/* As many of those in the queue as the socket takes. */
static void send_queue(struct ops *ops)
{
	while (!list_empty(&ops->queue)) {
		struct op_job *j = list_first(&ops->queue, struct op_job, in_queue);
		int err = job_send(j);

		if (err == -EAGAIN)
			return;
		list_del(&j->in_queue);
		if (err < 0)
			job_finish(j, link_errno(job_failed(j, &j->call, err)));
	}
}

/* A namespace was asked about first. Returns 0 to go on. */
static int end_question(struct op_job *j, int err)
{
	err = ns_question_end(j->ns, j->question, &j->link, err);
	if (!err)
		j->number = j->question->answer.ns;
	free(j->question);
	j->question = NULL;
	return err;
}

static void job_replied(struct op_job *j, struct rpc_call *call)
{
	int r = call->result;

	j->sent = 0;
	if (j->question) {
		r = end_question(j, r);
		r = r < 0 ? r : j->kind->message != NULL;
	} else if (r < 0) {
		/* A refusal changes nothing, as if it had not been sent. */
		j->sent = r == -ENOTCONN || r == -EPROTO;
		r = job_failed(j, call, r);
	} else {
		r = j->op || !j->kind->abandon ? j->kind->next(j) : 0;
	}
	if (r > 0)
		list_add_tail(&j->pool->ops.queue, &j->in_queue);
	else
		job_finish(j, r);
}

static void take_replies(struct ops *ops)
{
	struct rpc_call *call;

	while ((call = rpc_port_take(&ops->port)))
		job_replied(call->owner, call);
}

/* It ends before its time, and with it its operation, if somebody hears of it. */
static void job_fail(struct op_job *j, int err)
{
	struct kvpool_op *op = j->op;

	job_give_up(j, err);
	if (op)
		op_complete(op, err);
}

static void expire(struct ops *ops)
{
	uint64_t now = clock_ns();
	struct due *d;

	while ((d = due_first(&ops->due)) && d->at <= now) {
		struct op_job *j = container_of(d, struct op_job, due);

		handle_error(j->pool, -ETIMEDOUT, "cannot %s: the time for it is over",
			     j->kind->what);
		job_fail(j, -ETIMEDOUT);
	}
}

/* Lets the program's loop know when to come back. */
static void rearm(struct ops *ops, const struct link_view *v)
{
	struct due *d = due_first(&ops->due);

	uint32_t events = v->busy ? 0 : EPOLLIN;

	if (!list_empty(&ops->queue))
		events |= EPOLLOUT;
	loop_watch(&ops->loop, events ? v->rpc : NULL, events);
	loop_arm(&ops->loop, d ? MIN(d->at, v->again) : v->again);
}

/* Everything but callbacks. */
static void work(struct kvpool *p)
{
	struct ops *ops = &p->ops;
	unsigned int ready = loop_look(&ops->loop);
	struct link_view v;

	link_attend(p, &ops->port, ready & (LOOP_SOCKET | LOOP_EVENT), &v);
	take_replies(ops);
	if (v.ns_later)
		ns_op_register(p);
	expire(ops);
	send_queue(ops);
	take_replies(ops);
	rearm(ops, &v);
	rpc_unref(v.rpc);
}

/* Hands one operation out. Under the lock, which it gives up for the callback. */
static void hand_out(struct ops *ops)
{
	struct kvpool_op *op = list_first(&ops->done, struct kvpool_op, link);
	kvpool_done done = op->done;
	void *arg = op->arg;

	list_del(&op->link);
	op->in_done = 0;
	ops->n_done--;
	if (!done) {
		list_add_tail(&ops->handed, &op->link);
		return;
	}
	pthread_mutex_unlock(&ops->lock);
	done(arg, op);
	pthread_mutex_lock(&ops->lock);
}

int kvpool_dispatch(struct kvpool *p)
{
	struct ops *ops = &p->ops;
	size_t n = 0, most;

	if (handle_is_forked(p))
		return -ESTALE;
	/* A callback may close the handle. */
	handle_ref(p);
	rpc_port_attend(&ops->port);
	pthread_mutex_lock(&ops->lock);
	work(p);
	/* Callbacks take their time: another thread that watches the loop hears of what arrives. */
	rpc_port_leave(&ops->port);
	/* Not those that callbacks bring to their end: the program's loop gets its turn. */
	for (most = MIN(ops->n_done, (size_t)OPS_ROUND); n < most && ops->n_done; n++)
		hand_out(ops);
	if (ops->n_done)
		loop_ring(&ops->loop);
	pthread_mutex_unlock(&ops->lock);
	handle_unref(p);
	return (int)n;
}

/* The connection, and a place for one more. Under the lock. */
static int admit(struct op_job *j)
{
	struct kvpool *p = j->pool;

	if (p->ops.n_jobs >= OPS_MAX)
		return handle_error(p, -EAGAIN,
				    "cannot %s: %u operations are under way; finish some, or wait "
				    "until kvpoold answers",
				    j->kind->what, OPS_MAX);
	if (due_prepare(&p->ops.due) < 0)
		return handle_error(p, -ENOMEM, "cannot %s: out of memory", j->kind->what);
	return j->link.rpc ? 0 : link_peek(p, &j->link);
}

/* What can be told at once of the namespace and the pool. Under the lock. */
static int check_rights(struct op_job *j)
{
	if (j->writes && !j->link.attach->writable)
		return handle_error(j->pool, -EROFS,
				    "cannot store blocks of namespace \"%s\": kvpoold lets this "
				    "program only read",
				    j->ns->model);
	if (!j->ns)
		return 0;
	j->number = ns_number(j->ns, j->link.attach);
	if (j->number != NS_NONE && j->kind->message)
		return 0;
	j->question = malloc(sizeof(*j->question));
	return j->question
		       ? 0
		       : handle_error(j->pool, -ENOMEM, "cannot %s: out of memory", j->kind->what);
}

/* Sends the first message, or puts the job where it waits for its turn. Under the lock. */
static int set_out(struct op_job *j)
{
	struct ops *ops = &j->pool->ops;
	int err = list_empty(&ops->queue) ? job_send(j) : -EAGAIN;

	if (err < 0 && err != -EAGAIN)
		return link_errno(job_failed(j, &j->call, err));
	if (err == -EAGAIN) {
		list_add_tail(&ops->queue, &j->in_queue);
		loop_ring(&ops->loop);
	}
	list_add_tail(&ops->jobs, &j->in_jobs);
	ops->n_jobs++;
	return 0;
}

static int prepare(struct op_job *j)
{
	int err = j->kind->prepare ? j->kind->prepare(j) : 0;

	return err == -ENOMEM
		       ? handle_error(j->pool, err, "cannot %s: out of memory", j->kind->what)
		       : err;
}

/* There is nothing to ask. Under the lock. */
static int end_at_once(struct op_job *j)
{
	struct ops *ops = &j->pool->ops;
	int err = prepare(j);

	if (err < 0)
		return err;
	op_complete(j->op, j->kind->result(j));
	loop_ring(&ops->loop);
	job_free(j, 0);
	return 0;
}

/* Under the lock. On failure the job is still the caller's. */
static int begin(struct op_job *j, uint64_t deadline)
{
	struct ops *ops = &j->pool->ops;
	int err = admit(j);

	if (!err)
		err = check_rights(j);
	if (!err)
		err = prepare(j);
	if (!err)
		err = set_out(j);
	if (err < 0)
		return err;
	if (j->op)
		j->op->job = j;
	due_add(&ops->due, &j->due, deadline);
	loop_arm(&ops->loop, deadline);
	return 0;
}

/* From here on the sequence is busy. Under the lock. */
static void bind_seq(struct kvpool_op *op, struct kvpool_seq *s)
{
	op->seq = s;
	if (s)
		store_release(&s->op, op);
}

int op_start(struct op_job *j, int nothing, const struct op_start *s)
{
	struct kvpool *p = j->pool;
	struct kvpool_seq *seq = j->seq;
	struct kvpool_op *op = calloc(1, sizeof(*op));
	int err;

	if (!op) {
		err = handle_error(p, -ENOMEM, "cannot %s: out of memory", j->kind->what);
		job_free(j, err);
		return err;
	}
	op->kind = j->kind;
	op->pool = p;
	op->done = s->done;
	op->arg = s->arg;
	list_init(&op->link);
	handle_ref(p);
	j->op = op;
	pthread_mutex_lock(&p->ops.lock);
	err = nothing ? end_at_once(j) : begin(j, s->deadline);
	if (!err) {
		bind_seq(op, seq);
		/* Before another thread may call done. */
		*s->ret = op;
	} else {
		job_free(j, err);
	}
	pthread_mutex_unlock(&p->ops.lock);
	if (err < 0) {
		free(op);
		handle_unref(p);
	}
	return err;
}

int op_start_unheard(struct op_job *j, uint64_t deadline)
{
	int err = begin(j, deadline);

	if (err < 0)
		job_free(j, err);
	return err;
}

void op_start_detached(struct op_job *j, const struct link *l)
{
	j->link = *l;
	if (set_out(j) < 0)
		job_free(j, -ENOTCONN);
}

void op_cancel_job(struct op_job *j)
{
	struct kvpool *p = j->pool;

	job_fail(j, -ECANCELED);
	loop_ring(&p->ops.loop);
}

void kvpool_op_cancel(struct kvpool_op *op)
{
	struct kvpool *p = op->pool;

	if (handle_is_forked(p))
		return;
	pthread_mutex_lock(&p->ops.lock);
	if (op->job)
		op_cancel_job(op->job);
	pthread_mutex_unlock(&p->ops.lock);
}

void op_unbind_seq(struct kvpool_op *op)
{
	if (op->seq)
		store_release(&op->seq->op, NULL);
	op->seq = NULL;
}

/* Takes it out of where it is, and ends what it does. Under the lock. */
static void op_detach(struct kvpool_op *op)
{
	struct kvpool_write *write = op->write;
	struct ops *ops = &op->pool->ops;

	if (op->job)
		job_give_up(op->job, -ECANCELED);
	op->write = NULL;
	op_unbind_seq(op);
	list_del(&op->link);
	ops->n_done -= (size_t)op->in_done;
	if (write)
		write_op_give_back(write);
}

struct kvpool_op *kvpool_op_free(struct kvpool_op *op)
{
	struct kvpool *p;

	if (!op)
		return NULL;
	p = op->pool;
	if (!handle_is_forked(p)) {
		pthread_mutex_lock(&p->ops.lock);
		op_detach(op);
		pthread_mutex_unlock(&p->ops.lock);
	} else if (op->job) {
		job_free(op->job, -ESTALE);
	} else if (op->write) {
		kvpool_write_free(op->write);
	}
	free(op);
	handle_unref(p);
	return NULL;
}

int kvpool_op_done(const struct kvpool_op *op)
{
	return load_acquire(&op->is_done);
}

void *kvpool_op_arg(const struct kvpool_op *op)
{
	return op->arg;
}

long op_finish(struct kvpool_op *op, const struct op_kind *kind, struct kvpool_write **ret_write)
{
	struct kvpool *p = op->pool;
	long result;

	if (handle_is_forked(p))
		return -ESTALE;
	if (op->kind != kind)
		return handle_error(p, -EINVAL, "this operation was started to %s, not to %s",
				    op->kind->what, kind->what);
	if (!kvpool_op_done(op))
		return -EINPROGRESS;
	pthread_mutex_lock(&p->ops.lock);
	result = op->result;
	if (ret_write && op->write)
		*ret_write = TAKE_PTR(op->write);
	op_detach(op);
	pthread_mutex_unlock(&p->ops.lock);
	free(op);
	handle_unref(p);
	return result;
}

struct kvpool_op *kvpool_next_done(struct kvpool *p)
{
	struct kvpool_op *op = NULL;

	if (handle_is_forked(p))
		return NULL;
	pthread_mutex_lock(&p->ops.lock);
	if (!list_empty(&p->ops.handed)) {
		op = list_first(&p->ops.handed, struct kvpool_op, link);
		list_del(&op->link);
	}
	pthread_mutex_unlock(&p->ops.lock);
	return op;
}

int kvpool_fd(struct kvpool *p)
{
	int r;

	if (handle_is_forked(p))
		return -ESTALE;
	pthread_mutex_lock(&p->ops.lock);
	r = loop_open(&p->ops.loop);
	if (r < 0)
		(void)handle_error(p, r, "cannot make a descriptor to watch: %s",
				   strerrordesc_np(-r));
	else
		r = p->ops.loop.epoll;
	pthread_mutex_unlock(&p->ops.lock);
	/* The first kvpool_dispatch finds out what there is to watch. */
	loop_ring(&p->ops.loop);
	return r;
}

static void ring(void *arg)
{
	loop_ring(arg);
}

void ops_init(struct kvpool *p)
{
	struct ops *ops = &p->ops;

	pthread_mutex_init(&ops->lock, NULL);
	rpc_port_init(&ops->port, ring, &ops->loop);
	loop_init(&ops->loop);
	list_init(&ops->jobs);
	list_init(&ops->queue);
	list_init(&ops->done);
	list_init(&ops->handed);
}

void ops_close(struct kvpool *p)
{
	struct ops *ops = &p->ops;

	pthread_mutex_lock(&ops->lock);
	while (!list_empty(&ops->jobs)) {
		struct op_job *j = list_first(&ops->jobs, struct op_job, in_jobs);
		struct kvpool_op *op = j->op;

		if (j->sent)
			rpc_cancel(j->link.rpc, j->question ? &j->question->call : &j->call);
		job_end(j, -ENOTCONN);
		if (op)
			op_complete(op, -ENOTCONN);
	}
	pthread_mutex_unlock(&ops->lock);
}

void ops_free(struct kvpool *p)
{
	struct ops *ops = &p->ops;
	int forked = handle_is_forked(p);

	loop_close(&ops->loop, forked);
	due_free(&ops->due);
	if (!forked) {
		rpc_port_destroy(&ops->port);
		pthread_mutex_destroy(&ops->lock);
	}
}
