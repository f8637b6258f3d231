/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/hello.h"
#include "client/link.h"
#include "client/ns.h"
#include "client/sock.h"
#include "proto/kvpool.pb-c.h"

#define BACKOFF_MIN_NS (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (5 * NSEC_PER_SEC)

void link_put(struct kvpool *p, struct link *l)
{
	if (handle_is_forked(p))
		rpc_forget(l->rpc);
	else
		rpc_unref(l->rpc);
	attach_put(l->attach);
	*l = (struct link){ .rpc = NULL };
}

int link_errno(int err)
{
	return err == -ETIMEDOUT || err == -ENOMEM || err == -EPROTO || err == -ESTALE ? err
										       : -ENOTCONN;
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
		return "is this user in group kvpool?";
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

/* Connects to the first socket that answers. Returns it and which one, or the most telling error.
 */
static int dial(struct kvpool *p, uint64_t deadline, const char **ret_path)
{
	char sockets[2 * sizeof(p->address.path[0]) + 8], reason[80];
	int err = -ENOENT;

	for (unsigned int i = 0; i < p->address.count; i++) {
		int sock = sock_connect(p->address.path[i], deadline);

		if (sock >= 0) {
			*ret_path = p->address.path[i];
			return sock;
		}
		if (err == -ENOENT)
			err = sock;
	}
	name_sockets(p, sockets, sizeof(sockets));
	reason_for(err, reason, sizeof(reason));
	return handle_error(p, err, "cannot reach kvpoold at %s: %s (%s)", sockets, reason,
			    hint_for(err));
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

/* From here on lookups find the new one. The caller keeps its references. */
static void publish(struct kvpool *p, const struct link *l, const struct hello *h)
{
	struct attach *old;

	pthread_mutex_lock(&p->lock);
	old = p->current;
	p->max_keys = h->max_keys;
	p->features = h->features;
	memcpy(p->daemon, h->daemon, sizeof(p->daemon));
	p->rpc = rpc_ref(l->rpc);
	p->connects++;
	p->backoff_ns = 0;
	/* Release: pairs with the acquire in lease_attach. */
	store_release(&p->current, l->attach);
	if (old)
		attach_retire(old);
	handle_tidy_locked(p);
	pthread_mutex_unlock(&p->lock);
}

/* Talks to a daemon that was reached. Returns 0 and a complete link, or why there is none. */
static int greet(struct kvpool *p, const char *path, struct rpc *r, uint64_t deadline)
{
	struct link l = { .rpc = r };
	char text[RPC_TEXT_MAX];
	struct hello h;
	int err;

	err = hello_exchange(p, r, deadline, &h, text);
	if (err < 0)
		return handle_error(p, err, "cannot start a session with kvpoold at %s: %s", path,
				    text);
	err = map_offer(p, &h, &l.attach);
	hello_close(&h);
	if (err < 0)
		return err;
	err = ns_register_all(p, &l, deadline);
	if (!err) {
		publish(p, &l, &h);
		handle_debug(p, "connected to kvpoold %s at %s, session %llu", h.daemon, path,
			     (unsigned long long)h.session);
	} else {
		attach_retire(l.attach);
	}
	attach_put(l.attach);
	return err;
}

static int open_link(struct kvpool *p, uint64_t deadline)
{
	const char *path;
	struct rpc *r;
	int sock, err;

	sock = dial(p, deadline, &path);
	if (sock < 0)
		return sock;
	err = rpc_new(sock, stray, NULL, &r);
	if (err < 0)
		return handle_error(p, err, "cannot connect to kvpoold: out of memory");
	err = greet(p, path, r, deadline);
	if (err < 0)
		rpc_close(r, err, "no session was made");
	rpc_unref(r);
	return err;
}

/* Gives up the connection. Under the lock. */
static void hang_up(struct kvpool *p)
{
	struct attach *a = p->current;

	p->requests += rpc_requests(p->rpc);
	p->rpc = rpc_unref(p->rpc);
	p->link_error = -ENOTCONN;
	p->retry_at = 0;
	if (a && (p->closed || attach_is_given_up(a))) {
		store_relaxed(&p->current, NULL);
		attach_retire(a);
	}
	handle_tidy_locked(p);
}

/* Sees whether the connection still stands. Under the lock. */
static void check_link(struct kvpool *p)
{
	const char *why;

	if (!p->rpc)
		return;
	rpc_read(p->rpc);
	if (!rpc_status(p->rpc, &why))
		return;
	handle_error(p, 0, "lost the connection to kvpoold: %s; the next call connects again", why);
	hang_up(p);
}

/* Another thread connects: waits until it is done. Under the lock. */
static int wait_for_link(struct kvpool *p, uint64_t deadline)
{
	uint64_t now = clock_ns();
	struct timespec t;

	if (now >= deadline)
		return handle_error(p, -ETIMEDOUT,
				    "no connection to kvpoold in time: another thread is "
				    "still connecting");
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = deadline - now + (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(now / NSEC_PER_SEC);
	t.tv_nsec = (long)(now % NSEC_PER_SEC);
	pthread_cond_timedwait(&p->link_changed, &p->lock, &t);
	return 0;
}

/* Connects, with the lock, which is given up meanwhile. */
static int connect_now(struct kvpool *p, uint64_t deadline)
{
	int err;

	p->connecting = 1;
	pthread_mutex_unlock(&p->lock);
	err = open_link(p, deadline);
	pthread_mutex_lock(&p->lock);
	p->connecting = 0;
	if (err < 0) {
		p->link_error = err;
		p->backoff_ns =
			p->backoff_ns ? MIN(2 * p->backoff_ns, BACKOFF_MAX_NS) : BACKOFF_MIN_NS;
		p->retry_at = clock_ns() + p->backoff_ns;
	}
	pthread_cond_broadcast(&p->link_changed);
	if (p->closed && p->rpc)
		hang_up(p);
	return err;
}

/* One step towards a connection, under the lock. Returns 0: look again; or why there is none. */
static int step(struct kvpool *p, enum link_effort effort, uint64_t deadline)
{
	if (p->closed)
		return -ENOTCONN;
	if (p->connecting)
		return wait_for_link(p, deadline);
	if (effort == LINK_PATIENT && clock_ns() < p->retry_at)
		return p->link_error;
	return connect_now(p, deadline);
}

static int take_link(struct kvpool *p, enum link_effort effort, uint64_t deadline, struct link *ret)
{
	int err = 0;

	pthread_mutex_lock(&p->lock);
	check_link(p);
	while (!p->rpc && !err)
		err = step(p, effort, deadline);
	if (!err) {
		/* The current one is retired only under the lock. */
		(void)attach_try_get(p->current);
		*ret = (struct link){ rpc_ref(p->rpc), p->current, p->max_keys };
	}
	pthread_mutex_unlock(&p->lock);
	return err;
}

int link_get(struct kvpool *p, enum link_effort effort, uint64_t deadline, struct link *ret)
{
	int err = take_link(p, effort, deadline, ret);

	if (err < 0)
		return err;
	/* A namespace that the daemon does not answer about in time is asked about by the next. */
	err = ns_register_all(p, ret, deadline);
	if (err != -ENOTCONN && err != -EPROTO)
		return 0;
	link_put(p, ret);
	/* It was broken already: as if check_link had seen it. */
	return err == -ENOTCONN ? take_link(p, effort, deadline, ret) : err;
}

int link_call(struct kvpool *p, const struct link *l, const char *what, struct rpc_call *call,
	      const ProtobufCMessage *request, uint64_t deadline)
{
	const char *why;
	int err = rpc_call(l->rpc, call, request, deadline);

	if (!err)
		return 0;
	if (rpc_status(l->rpc, &why)) {
		handle_error(p, err, "cannot %s: the connection to kvpoold is lost: %s", what, why);
		pthread_mutex_lock(&p->lock);
		if (p->rpc == l->rpc)
			hang_up(p);
		pthread_mutex_unlock(&p->lock);
		return err;
	}
	if (err == -ETIMEDOUT)
		return handle_error(p, err,
				    "cannot %s: kvpoold does not answer (is it stopped, or very "
				    "busy?)",
				    what);
	return handle_error(p, err, "cannot %s: kvpoold refuses: %s", what,
			    call->text[0] ? call->text : strerrordesc_np(-err));
}

void link_close(struct kvpool *p)
{
	Kvpool__Bye bye = KVPOOL__BYE__INIT;

	if (handle_is_forked(p)) {
		rpc_forget(p->rpc);
		p->rpc = NULL;
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->closed = 1;
	if (p->rpc) {
		rpc_post(p->rpc, OP_BYE, &bye.base);
		rpc_close(p->rpc, -ENOTCONN, "the pool was closed");
		hang_up(p);
	} else if (p->current) {
		attach_retire(p->current);
		store_relaxed(&p->current, NULL);
		handle_tidy_locked(p);
	}
	pthread_mutex_unlock(&p->lock);
}
