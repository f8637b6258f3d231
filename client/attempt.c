/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/attempt.h"
#include "client/sock.h"
#include "proto/kvpool.pb-c.h"

void attempt_begin(struct attempt *a, struct kvpool *p)
{
	*a = (struct attempt){ .pool = p, .state = ATTEMPT_REACH };
	hello_init(&a->hello);
	rpc_port_init(&a->port, NULL, NULL);
}

void attempt_end(struct attempt *a)
{
	struct kvpool *p = a->pool;

	if (a->question.ns) {
		if (!handle_is_forked(p))
			rpc_cancel(a->link.rpc, &a->question.call);
		ns_put(a->question.ns);
	}
	hello_close(&a->hello);
	if (a->link.attach)
		link_put(p, &a->link);
	else if (a->link.rpc && handle_is_forked(p))
		rpc_forget(a->link.rpc);
	else
		rpc_unref(a->link.rpc);
	if (!handle_is_forked(p))
		rpc_port_destroy(&a->port);
}

struct rpc *attempt_rpc(const struct attempt *a)
{
	return a->link.rpc;
}

/* The sockets that were tried, for people. */
static void name_sockets(const struct kvpool *p, char *out, size_t n)
{
	snprintf(out, n, "%s%s%s", p->address.path[0], p->address.count > 1 ? " or " : "",
		 p->address.count > 1 ? p->address.path[1] : "");
}

/* What to do about a socket that cannot be connected to. */
static const char *hint_for(int err)
{
	switch (err) {
	case -ENOENT:
		return "is kvpoold running?";
	case -ECONNREFUSED:
		return "kvpoold does not run any more; start it";
	case -EACCES:
	case -EPERM:
		return "may this user write to it? the system's is for group kvpool";
	case -ETIMEDOUT:
		return "is it stopped, or very busy?";
	case -EMFILE:
	case -ENFILE:
		return "raise the limit with ulimit -n";
	case -EPROTOTYPE:
	case -ENOTSOCK:
		return "is this the socket of kvpoold?";
	default:
		return "see its log";
	}
}

/* "No such file or directory" begins like a sentence; here it is the middle of one. */
static void reason_for(int err, char *out, size_t n)
{
	snprintf(out, n, "%s", strerrordesc_np(-err));
	if (out[0] >= 'A' && out[0] <= 'Z' && out[1] >= 'a' && out[1] <= 'z')
		out[0] = (char)(out[0] - 'A' + 'a');
}

static int not_reached(struct kvpool *p, int err)
{
	char sockets[2 * sizeof(p->address.path[0]) + 8], reason[80];

	name_sockets(p, sockets, sizeof(sockets));
	reason_for(err, reason, sizeof(reason));
	return handle_error(p, err, "cannot reach kvpoold at %s: %s (%s)", sockets, reason,
			    hint_for(err));
}

/* Connects to the first socket that answers. Returns it, or the most telling error. */
static int reach(struct attempt *a)
{
	struct kvpool *p = a->pool;
	int err = -ENOENT;

	for (unsigned int i = 0; i < p->address.count; i++) {
		int sock = sock_connect(p->address.path[i]);

		a->path = p->address.path[i];
		/* Somebody is there, with a full backlog. */
		if (sock >= 0 || sock == -EAGAIN)
			return sock;
		if (err == -ENOENT)
			err = sock;
	}
	return not_reached(p, err);
}

/* In the thread that reads: STOPPING, and grants that came after their deadline. */
static void stray(void *arg, struct rpc *r, enum proto_op op, const ProtobufCMessage *m)
{
	const Kvpool__ReserveReply *late = (const Kvpool__ReserveReply *)m;
	Kvpool__Abort abort = KVPOOL__ABORT__INIT;

	if (op == OP_STOPPING) /* not a reply, as all others are (rpc.h) */
		rpc_close(r, -ESHUTDOWN, "the daemon stops");
	if (op != OP_RESERVE || !late->n_desc || late->n_desc != late->n_gen)
		return;
	/* Nobody writes to these slots, and nobody else gets them while they are reserved. */
	abort.n_desc = late->n_desc;
	abort.desc = late->desc;
	abort.n_gen = late->n_gen;
	abort.gen = late->gen;
	rpc_post(r, OP_ABORT, &abort.base);
}

static int hello_failed(struct attempt *a, int err)
{
	char text[RPC_TEXT_MAX];

	err = hello_explain(a->link.rpc, &a->call, err, text);
	return handle_error(a->pool, err, "cannot start a session with kvpoold at %s: %s", a->path,
			    text);
}

static int begin_hello(struct attempt *a)
{
	Kvpool__Hello m = KVPOOL__HELLO__INIT;
	int sock = reach(a), err;

	if (sock == -EAGAIN)
		return -EINPROGRESS;
	if (sock < 0)
		return sock;
	err = rpc_new(sock, stray, NULL, &a->link.rpc);
	if (err < 0)
		return handle_error(a->pool, err, "cannot connect to kvpoold: out of memory");
	hello_ask(a->pool, &a->hello, &a->call, &m);
	a->call.port = &a->port;
	err = rpc_try_start(a->link.rpc, &a->call, &m.base);
	if (err < 0)
		return hello_failed(a, err);
	a->state = ATTEMPT_HELLO;
	return -EINPROGRESS;
}

static struct attach *find_place(struct kvpool *p)
{
	for (unsigned int i = 0; i < ATTACH_MAX; i++)
		if (!attach_is_mapped(&p->attach[i]))
			return &p->attach[i];
	return NULL;
}

/* Maps what the daemon offers. Returns 0 and the attachment with a count, not current yet. */
static int map_offer(struct kvpool *p, const struct hello *h, struct attach **ret)
{
	const char *why = NULL;
	struct attach *a;
	int err;

	pthread_mutex_lock(&p->lock);
	handle_tidy_locked(p);
	a = find_place(p);
	err = a ? attach_map(a, &h->offer, ++p->serial, &why) : -EBUSY;
	if (!err)
		(void)attach_try_get(a);
	pthread_mutex_unlock(&p->lock);
	if (err == -EBUSY)
		return handle_error(p, err,
				    "cannot connect to kvpoold: leases or writes of %u lost "
				    "connections are still held; release them",
				    ATTACH_MAX);
	if (err < 0)
		return handle_error(p, err, "cannot use the memory that kvpoold offers: %s", why);
	*ret = a;
	return 0;
}

/* Returns the call that is over, or NULL while there is none. */
static struct rpc_call *take_reply(struct attempt *a)
{
	rpc_read(a->link.rpc);
	return rpc_port_take(&a->port);
}

static int end_hello(struct attempt *a)
{
	int err;

	if (!take_reply(a))
		return -EINPROGRESS;
	if (a->call.result < 0)
		return hello_failed(a, a->call.result);
	hello_take_fds(&a->hello, &a->call);
	err = map_offer(a->pool, &a->hello, &a->link.attach);
	a->link.max_keys = a->hello.max_keys;
	a->state = ATTEMPT_NAMESPACES;
	return err;
}

/* Asks about the next namespace. Returns 0 when there is none. */
static int begin_question(struct attempt *a)
{
	struct kvpool_ns *ns = ns_find_unregistered(a->pool, a->link.attach);
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT;
	int err;

	if (!ns)
		return 0;
	ns_question_make(&a->question, ns, &a->port, &m);
	err = rpc_try_start(a->link.rpc, &a->question.call, &m.base);
	if (!err)
		return -EINPROGRESS;
	a->question.ns = NULL;
	err = ns_question_end(ns, &a->question, &a->link, err);
	ns_put(ns);
	return err;
}

/* Returns 0 to go on with the next one. */
static int end_question(struct attempt *a)
{
	struct kvpool_ns *ns = a->question.ns;
	int err;

	if (!take_reply(a))
		return -EINPROGRESS;
	a->question.ns = NULL;
	err = ns_question_end(ns, &a->question, &a->link, a->question.call.result);
	ns_put(ns);
	return err == -ENOENT ? 0 : err;
}

/* A connection that is of no use: nobody else has seen it. */
static void discard(struct attempt *a, int err)
{
	if (a->link.rpc)
		rpc_close(a->link.rpc, err, "no session was made");
	if (a->link.attach)
		attach_retire(a->link.attach);
}

/* One step, without what follows from it. */
static int advance(struct attempt *a)
{
	int err;

	if (a->state == ATTEMPT_REACH)
		return begin_hello(a);
	err = a->state == ATTEMPT_HELLO ? end_hello(a) : end_question(a);
	return err < 0 ? err : begin_question(a);
}

int attempt_step(struct attempt *a)
{
	int err = advance(a);

	if (err == -EINPROGRESS)
		return err;
	if (err < 0) {
		discard(a, err);
		return err;
	}
	link_publish(a->pool, &a->link, &a->hello);
	handle_debug(a->pool, "connected to kvpoold %s at %s, session %llu", a->hello.daemon,
		     a->path, (unsigned long long)a->hello.session);
	return 0;
}

int attempt_time_out(struct attempt *a)
{
	struct kvpool_ns *ns = a->question.ns;

	if (a->state == ATTEMPT_REACH) {
		(void)not_reached(a->pool, -ETIMEDOUT);
	} else if (a->state == ATTEMPT_HELLO) {
		rpc_cancel(a->link.rpc, &a->call);
		(void)hello_failed(a, -ETIMEDOUT);
	} else {
		rpc_cancel(a->link.rpc, &a->question.call);
		a->question.ns = NULL;
		(void)ns_question_end(ns, &a->question, &a->link, -ETIMEDOUT);
		ns_put(ns);
	}
	discard(a, -ETIMEDOUT);
	return -ETIMEDOUT;
}

int attempt_sleep(const struct attempt *a, uint64_t deadline)
{
	uint64_t now = clock_ns();

	if (a->link.rpc)
		return sock_wait(rpc_sock(a->link.rpc), POLLIN, deadline);
	if (now >= deadline)
		return -ETIMEDOUT;
	(void)sock_wait(-1, 0, MIN(deadline, now + ATTEMPT_RETRY_NS));
	return 0;
}
