/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/rpc.h"
#include "client/sock.h"
#include "proto/kvpool.pb-c.h"
#include "proto/text.h"

struct rpc {
	uint64_t refs; /* atomic */
	int sock;
	rpc_stray stray;
	void *stray_arg;

	pthread_mutex_t lock;
	struct list calls; /* under way */
	uint64_t next_id, requests;
	int dead; /* 0, or why */
	const char *why;
	char said[RPC_TEXT_MAX]; /* why, where the daemon said it */
	int reading;             /* a thread reads: packet_in and arena are its */
	struct rpc_port *wanted; /* of a loop that would read when that thread is done */
	uint8_t *packet_out;

	uint8_t *packet_in;
	struct codec_arena arena;
};

/* A packet that came, unpacked. */
struct rpc_packet {
	struct frame_header head;
	const struct proto_op_info *op;
	const ProtobufCMessage *message;
	int fds[RPC_FDS_MAX];
	unsigned int n_fds;
};

int rpc_new(int sock, rpc_stray stray, void *arg, struct rpc **ret)
{
	struct rpc *r = calloc(1, sizeof(*r));
	uint8_t *memory = malloc(2 * FRAME_MAX + CODEC_ARENA_BYTES);

	if (!r || !memory) {
		free(r);
		free(memory);
		close_fd(sock);
		return -ENOMEM;
	}
	r->refs = 1;
	r->sock = sock;
	r->stray = stray;
	r->stray_arg = arg;
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->calls);
	r->packet_out = memory;
	r->packet_in = memory + FRAME_MAX;
	codec_arena_init(&r->arena, memory + 2 * FRAME_MAX, CODEC_ARENA_BYTES);
	*ret = r;
	return 0;
}

static void rpc_free(struct rpc *r)
{
	close_fd(r->sock);
	free(r->packet_out);
	free(r);
}

struct rpc *rpc_ref(struct rpc *r)
{
	add_relaxed(&r->refs, 1);
	return r;
}

struct rpc *rpc_unref(struct rpc *r)
{
	if (r && add_acq_rel(&r->refs, (uint64_t)-1) == 1) {
		pthread_mutex_destroy(&r->lock);
		rpc_free(r);
	}
	return NULL;
}

void rpc_forget(struct rpc *r)
{
	/* Another thread of the parent may have held the lock: it is not touched, not even
	 * destroyed. */
	if (r && add_acq_rel(&r->refs, (uint64_t)-1) == 1)
		rpc_free(r);
}

/* The error that stands for what a daemon refused with. */
static int refusal_errno(enum proto_error e)
{
	static const int table[] = {
		[ERROR_NONE] = EPROTO,
		[ERROR_BAD_FRAME] = EPROTO,
		[ERROR_BAD_MESSAGE] = EPROTO,
		[ERROR_BAD_FIELD] = EINVAL,
		[ERROR_UNKNOWN_OP] = EOPNOTSUPP,
		[ERROR_BAD_STATE] = EPROTO,
		[ERROR_VERSION] = EPROTONOSUPPORT,
		[ERROR_DENIED] = EACCES,
		[ERROR_LIMIT] = ENOSPC,
		[ERROR_NO_NAMESPACE] = ENOENT,
		[ERROR_FDS] = EPROTO,
		[ERROR_INTERNAL] = EIO,
		[ERROR_NO_OBJECT] = ENOENT,
		[ERROR_AMBIGUOUS] = EINVAL,
		[ERROR_CONFIG] = EINVAL,
	};

	return (unsigned int)e < ARRAY_SIZE(table) ? -table[e] : -EIO;
}

void rpc_text(char *out, size_t size, const char *text)
{
	size_t n = strlen(text);

	if (n >= size)
		n = text_cut(text, size - 1);
	if (text_check(text, n) < 0)
		n = 0;
	memcpy(out, text, n);
	out[n] = '\0';
}

/* Under the port's lock. */
static void port_ring(struct rpc_port *port)
{
	if (!port->attended && port->ring)
		port->ring(port->arg);
}

static void port_put(struct rpc_port *port, struct rpc_call *call)
{
	pthread_mutex_lock(&port->lock);
	list_add_tail(&port->finished, &call->link);
	port_ring(port);
	pthread_mutex_unlock(&port->lock);
}

/* Ends a call. Under the lock. */
static void finish(struct rpc_call *call, int result)
{
	list_del(&call->link);
	call->result = result;
	call->done = 1;
	if (call->port)
		port_put(call->port, call);
	else
		pthread_cond_signal(&call->cond);
}

/* Under the lock. */
static void die(struct rpc *r, int err, const char *why)
{
	struct rpc_call *call, *next;

	if (r->dead)
		return;
	r->dead = err;
	r->why = why;
	/* Whoever waits for the socket wakes up. It is closed with the last reference. */
	shutdown(r->sock, SHUT_RDWR);
	list_for_each_safe(call, next, &r->calls, link) finish(call, -ENOTCONN);
}

void rpc_close(struct rpc *r, int err, const char *why)
{
	pthread_mutex_lock(&r->lock);
	die(r, err, why);
	pthread_mutex_unlock(&r->lock);
}

int rpc_status(struct rpc *r, const char **ret_why)
{
	int dead;

	pthread_mutex_lock(&r->lock);
	dead = r->dead;
	*ret_why = r->why;
	pthread_mutex_unlock(&r->lock);
	return dead;
}

uint64_t rpc_requests(struct rpc *r)
{
	uint64_t n;

	pthread_mutex_lock(&r->lock);
	n = r->requests;
	pthread_mutex_unlock(&r->lock);
	return n;
}

/* What a packet of n bytes is. Returns NULL, or what is wrong with it. */
static const char *parse_packet(struct rpc *r, size_t n, struct rpc_packet *p)
{
	const ProtobufCMessageDescriptor *type;
	const char *why = frame_parse(r->packet_in, n, &p->head);

	if (why)
		return why;
	p->op = proto_op_find(p->head.op);
	if (!(p->head.flags & FRAME_REPLY)) {
		if (p->head.op != OP_STOPPING)
			return NULL; /* something that a newer daemon says unasked */
		type = p->op->request;
	} else if (p->head.flags & FRAME_ERROR) {
		type = &kvpool__error__descriptor;
	} else {
		type = p->op ? p->op->reply : NULL;
	}
	if (!type)
		return "is a reply to what has none";
	p->message = codec_unpack(&r->arena, type, r->packet_in + FRAME_HEADER_BYTES,
				  n - FRAME_HEADER_BYTES);
	return p->message ? NULL : "does not unpack";
}

/* 0 when this process can open as many descriptors as one packet brings. */
static int probe_fds(int sock)
{
	int fds[RPC_FDS_MAX], err = 0;
	unsigned int n = 0;

	while (n < RPC_FDS_MAX && !err) {
		fds[n] = fcntl(sock, F_DUPFD_CLOEXEC, 0);
		if (fds[n] < 0)
			err = -errno;
		else
			n++;
	}
	while (n)
		close_fd(fds[--n]);
	return err;
}

/* Why a packet could not be received, in words too. */
static int explain_packet(int sock, long n, const char **ret_why)
{
	if (n != -EMSGSIZE && n != -EPROTO)
		return (int)n;
	*ret_why = "the daemon sent a packet that was cut, or too many descriptors";
	/* The kernel cuts what does not fit under the limit. */
	if (n == -EMSGSIZE || probe_fds(sock) == 0)
		return (int)n;
	*ret_why = "this process has too many files open for what the daemon sends; close some, or "
		   "raise the limit with ulimit -n";
	return -EMFILE;
}

/* Receives one packet, by the thread that reads, without the lock. */
static int receive(struct rpc *r, uint64_t deadline, struct rpc_packet *p, const char **ret_why)
{
	int err = deadline ? sock_wait(r->sock, POLLIN, deadline) : 0;
	long n;

	p->message = NULL;
	p->n_fds = 0;
	if (err < 0)
		return err;
	n = frame_recv(r->sock, r->packet_in, p->fds, RPC_FDS_MAX, &p->n_fds);
	/* The kernel tells once of a reset, and then what the daemon said before it. */
	if (n == -ECONNRESET)
		n = frame_recv(r->sock, r->packet_in, p->fds, RPC_FDS_MAX, &p->n_fds);
	*ret_why = "the daemon closed it";
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return explain_packet(r->sock, n, ret_why);
	*ret_why = parse_packet(r, (size_t)n, p);
	return *ret_why ? -EPROTO : 0;
}

static void drop_fds(struct rpc_packet *p)
{
	while (p->n_fds)
		close_fd(p->fds[--p->n_fds]);
}

/* Those of a reply that was refused. */
static void drop_call_fds(struct rpc_call *call)
{
	while (call->n_fds)
		close_fd(call->fds[--call->n_fds]);
}

static struct rpc_call *find_call(struct rpc *r, uint64_t id)
{
	struct rpc_call *call;

	list_for_each(call, &r->calls, link) if (call->id == id) return call;
	return NULL;
}

static int refused(struct rpc_call *call, const ProtobufCMessage *m)
{
	const Kvpool__Error *e = (const Kvpool__Error *)m;

	rpc_text(call->text, sizeof(call->text), e->text);
	return refusal_errno((enum proto_error)e->code);
}

static int accept_reply(struct rpc_call *call, struct rpc_packet *p)
{
	if (p->n_fds != p->op->reply_fds)
		return -EPROTO;
	memcpy(call->fds, p->fds, p->n_fds * sizeof(p->fds[0]));
	call->n_fds = p->n_fds;
	p->n_fds = 0;
	return call->take ? call->take(call->arg, p->message) : 0;
}

/* Hands a reply to its call, under the lock. False when nobody waits for it any more. */
static int deliver(struct rpc *r, struct rpc_packet *p)
{
	struct rpc_call *call = p->head.flags & FRAME_REPLY ? find_call(r, p->head.id) : NULL;
	int result;

	if (!call)
		return 0;
	if (p->head.op != (uint16_t)call->op)
		result = -EPROTO;
	else if (p->head.flags & FRAME_ERROR)
		result = refused(call, p->message);
	else
		result = accept_reply(call, p);
	finish(call, result);
	if (result == -EPROTO)
		die(r, -EPROTO, "the daemon sent a reply that makes no sense");
	return 1;
}

/* What an error is about that answers no request: the whole connection. Under the lock. */
static void take_farewell(struct rpc *r, const ProtobufCMessage *m)
{
	const Kvpool__Error *e = (const Kvpool__Error *)m;

	if (r->dead)
		return;
	rpc_text(r->said, sizeof(r->said), e->text);
	die(r, refusal_errno((enum proto_error)e->code),
	    r->said[0] ? r->said : "the daemon does not say why");
}

/*
 * Reads one packet until the deadline (0: what is there), with the lock, which it gives up
 * meanwhile. Nobody else may be reading. Returns 0 when there was one.
 */
static int read_one(struct rpc *r, uint64_t deadline)
{
	struct rpc_packet p;
	const char *why = NULL;
	int err;

	r->reading = 1;
	pthread_mutex_unlock(&r->lock);
	err = receive(r, deadline, &p, &why);
	pthread_mutex_lock(&r->lock);
	if (err == -ETIMEDOUT || err == -EAGAIN) {
		r->reading = 0;
		return err;
	}
	if (err < 0) {
		die(r, err, why);
	} else if ((p.head.flags & FRAME_ERROR) && !p.head.id) {
		take_farewell(r, p.message);
	} else if (!deliver(r, &p) && p.message && !(p.head.flags & FRAME_ERROR)) {
		/* The message lies in the arena: so this thread still counts as the reader. */
		pthread_mutex_unlock(&r->lock);
		r->stray(r->stray_arg, r, (enum proto_op)p.head.op, p.message);
		pthread_mutex_lock(&r->lock);
	}
	drop_fds(&p);
	r->reading = 0;
	return err;
}

/* What is there, under the lock. */
static void read_some(struct rpc *r)
{
	for (unsigned int n = 0; n < RPC_READ_MAX; n++)
		if (r->dead || r->reading || read_one(r, 0) < 0)
			return;
}

/* Packs and sends, under the lock. -EAGAIN: the socket is full. */
static int send_request(struct rpc *r, enum proto_op op, uint64_t id, const ProtobufCMessage *m)
{
	struct frame_header h = { .magic = FRAME_MAGIC, .op = (uint16_t)op, .id = id };
	long n = codec_pack(r->packet_out, &h, m);
	int err = n < 0 ? (int)n : frame_send(r->sock, r->packet_out, (size_t)n, NULL, 0);

	if (!err)
		r->requests++;
	return err;
}

/* The daemon has hung up: what it said before that tells why. Under the lock. */
static void hear_out(struct rpc *r)
{
	read_some(r);
	die(r, -ECONNRESET, "the daemon closed it");
}

/* One try of a start, under the lock. -EAGAIN: the socket is full. */
static int try_start(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request)
{
	int err = r->dead ? -ENOTCONN : send_request(r, call->op, call->id, request);

	if (err == -EPIPE || err == -ECONNRESET) {
		hear_out(r);
		return -ENOTCONN;
	}
	if (!err)
		list_add_tail(&r->calls, &call->link);
	return err;
}

static void init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int rpc_try_start(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request)
{
	int err;

	call->done = 0;
	call->waits = 0;
	call->n_fds = 0;
	call->text[0] = '\0';
	pthread_mutex_lock(&r->lock);
	call->id = ++r->next_id;
	err = try_start(r, call, request);
	pthread_mutex_unlock(&r->lock);
	return err;
}

void rpc_cancel(struct rpc *r, struct rpc_call *call)
{
	pthread_mutex_lock(&r->lock);
	pthread_mutex_lock(&call->port->lock);
	list_del(&call->link);
	call->done = 1;
	pthread_mutex_unlock(&call->port->lock);
	pthread_mutex_unlock(&r->lock);
}

/* Sends a request. Returns 0: wait_reply must follow. Or -errno: nothing is under way then. */
static int start(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request,
		 uint64_t deadline)
{
	int err;

	init_cond(&call->cond);
	for (;;) {
		err = rpc_try_start(r, call, request);
		if (err != -EAGAIN)
			break;
		err = sock_wait(r->sock, POLLOUT, deadline);
		if (err < 0)
			break;
	}
	if (err < 0)
		pthread_cond_destroy(&call->cond);
	return err;
}

void rpc_post(struct rpc *r, enum proto_op op, const ProtobufCMessage *request)
{
	pthread_mutex_lock(&r->lock);
	if (!r->dead)
		(void)send_request(r, op, ++r->next_id, request);
	pthread_mutex_unlock(&r->lock);
}

/* Under the lock: one of those that wait for another thread to read must do it now. */
static void pass_on(struct rpc *r)
{
	struct rpc_call *call;

	if (r->reading)
		return;
	list_for_each(call, &r->calls, link) if (call->waits)
	{
		pthread_cond_signal(&call->cond);
		return;
	}
	if (!r->wanted)
		return;
	pthread_mutex_lock(&r->wanted->lock);
	r->wanted->turn = 1;
	port_ring(r->wanted);
	pthread_mutex_unlock(&r->wanted->lock);
	r->wanted = NULL;
}

/* Waits until the call is done, or somebody must read, or the deadline. Under the lock. */
static void wait_turn(struct rpc *r, struct rpc_call *call, uint64_t left)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	left += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(left / NSEC_PER_SEC);
	t.tv_nsec = (long)(left % NSEC_PER_SEC);
	call->waits = 1;
	pthread_cond_timedwait(&call->cond, &r->lock, &t);
	call->waits = 0;
}

static int wait_reply(struct rpc *r, struct rpc_call *call, uint64_t deadline)
{
	int result;

	pthread_mutex_lock(&r->lock);
	while (!call->done) {
		uint64_t now = clock_ns();

		if (now >= deadline) {
			finish(call, -ETIMEDOUT);
			break;
		}
		if (r->reading)
			wait_turn(r, call, deadline - now);
		else
			(void)read_one(r, deadline);
	}
	pass_on(r);
	result = call->result;
	pthread_mutex_unlock(&r->lock);
	pthread_cond_destroy(&call->cond);
	if (result < 0)
		drop_call_fds(call);
	return result;
}

int rpc_call(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request,
	     uint64_t deadline)
{
	int err = start(r, call, request, deadline);

	return err < 0 ? err : wait_reply(r, call, deadline);
}

int rpc_attend(struct rpc *r, struct rpc_port *port)
{
	int busy;

	pthread_mutex_lock(&r->lock);
	read_some(r);
	pass_on(r);
	busy = r->reading && !r->dead;
	if (busy)
		r->wanted = port;
	pthread_mutex_unlock(&r->lock);
	return busy ? -EBUSY : 0;
}

int rpc_sock(const struct rpc *r)
{
	return r->sock;
}

void rpc_port_init(struct rpc_port *port, void (*ring)(void *arg), void *arg)
{
	*port = (struct rpc_port){ .ring = ring, .arg = arg };
	pthread_mutex_init(&port->lock, NULL);
	list_init(&port->finished);
}

void rpc_port_destroy(struct rpc_port *port)
{
	pthread_mutex_destroy(&port->lock);
}

void rpc_port_attend(struct rpc_port *port)
{
	pthread_mutex_lock(&port->lock);
	port->attended++;
	port->turn = 0;
	pthread_mutex_unlock(&port->lock);
}

void rpc_port_leave(struct rpc_port *port)
{
	pthread_mutex_lock(&port->lock);
	port->attended--;
	if (port->turn || !list_empty(&port->finished))
		port_ring(port);
	pthread_mutex_unlock(&port->lock);
}

struct rpc_call *rpc_port_take(struct rpc_port *port)
{
	struct rpc_call *call = NULL;

	pthread_mutex_lock(&port->lock);
	if (!list_empty(&port->finished)) {
		call = list_first(&port->finished, struct rpc_call, link);
		list_del(&call->link);
	}
	pthread_mutex_unlock(&port->lock);
	if (call && call->result < 0)
		drop_call_fds(call);
	return call;
}

void rpc_read(struct rpc *r)
{
	pthread_mutex_lock(&r->lock);
	read_some(r);
	pass_on(r);
	pthread_mutex_unlock(&r->lock);
}
