/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies over one connection, from any number of threads.
 *
 * Replies are told apart by their id, so many calls can be under way. Whoever waits for a reply
 * while nobody reads the socket becomes the one that does, and hands what is for others to them;
 * when its own reply is there or its time is over, it wakes another one to go on. So no thread of
 * the library's own is needed, and a call that waits for long blocks no other.
 *
 * A connection that breaks (hang-up, a packet that makes no sense) is dead from then on: all of its
 * calls fail with -ENOTCONN, later ones too. rpc_close is the same from this side. The socket is
 * closed when the last reference is gone, so nobody polls a number that is something else by then.
 *
 * A call can also be made that no thread waits for: rpc_try_start with a port. Whoever reads its
 * reply puts it into the port and rings, and whoever attends to the port takes it out. The
 * program's own loop then watches rpc_sock and calls rpc_attend, which never waits.
 *
 * Locks: rpc->lock is taken for short times only, never while anything waits. A port's lock is
 * taken under it, and no other; callers may hold the handle's.
 */
#ifndef KVP_CLIENT_RPC_H
#define KVP_CLIENT_RPC_H

#include <pthread.h>

#include "base/list.h"
#include "proto/codec.h"
#include "proto/ops.h"

#define RPC_FDS_MAX  3u
#define RPC_TEXT_MAX 200u
#define RPC_READ_MAX 64u

struct rpc;

/*
 * Takes what it needs out of a reply, which is gone afterwards. Returns 0, or -EPROTO when the
 * reply makes no sense: the connection is dead then. Runs in whatever thread reads, under
 * rpc->lock: it only copies.
 */
typedef int (*rpc_take)(void *arg, const ProtobufCMessage *reply);

/*
 * Where calls end that no thread waits for. ring is called, under locks, when there is something to
 * do for whoever attends to it and nobody does at the moment: it only wakes somebody up.
 */
struct rpc_port {
	pthread_mutex_t lock;
	struct list finished;
	unsigned int attended; /* how many threads do */
	int turn;              /* nobody reads a socket any more that rpc_attend found being read */
	void (*ring)(void *arg);
	void *arg;
};

/* One call. Belongs to the thread that makes it, but is written by the one that reads. */
struct rpc_call {
	enum proto_op op;
	rpc_take take; /* NULL: that there is a reply is all */
	void *arg;
	struct rpc_port *port; /* NULL: for rpc_call */
	void *owner;           /* for whoever takes it out of the port */

	/* The rest is rpc.c's. */
	struct list link; /* of those under way, or the port's */
	uint64_t id;
	pthread_cond_t cond; /* without a port */
	int done, waits, result;
	int fds[RPC_FDS_MAX]; /* of a HELLO; whoever made the call closes them */
	unsigned int n_fds;
	char text[RPC_TEXT_MAX]; /* what the daemon said where it refused */
};

/*
 * What was not asked for, or no longer: STOPPING, which is the only message of the daemon's own, or
 * a reply to op that came too late. Runs in the thread that reads, without rpc->lock; it may call
 * rpc_post.
 */
typedef void (*rpc_stray)(void *arg, struct rpc *r, enum proto_op op, const ProtobufCMessage *m);

/* Takes the connected socket. Returns 0 and one reference, or -ENOMEM with the socket closed. */
int rpc_new(int sock, rpc_stray stray, void *arg, struct rpc **ret);

struct rpc *rpc_ref(struct rpc *r);
struct rpc *rpc_unref(struct rpc *r);

/*
 * Sends a request and waits for the reply. Returns 0 after take did, or -errno: -ENOTCONN,
 * -ETIMEDOUT (also when the socket stays full), or what the daemon refused with, in words in
 * call->text. The call is over in any case.
 */
int rpc_call(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request,
	     uint64_t deadline);

/*
 * Sends the request of a call with a port. Returns 0: it ends in the port, with its result, unless
 * rpc_cancel takes it back. -EAGAIN: the socket is full. -ENOTCONN.
 */
int rpc_try_start(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request);

/* Takes a call with a port back, wherever it is. A reply that comes later is a stray. */
void rpc_cancel(struct rpc *r, struct rpc_call *call);

/* ring may be NULL. */
void rpc_port_init(struct rpc_port *port, void (*ring)(void *arg), void *arg);
void rpc_port_destroy(struct rpc_port *port);

/* Between these two nobody is rung for. rpc_port_leave does it when something was left behind. */
void rpc_port_attend(struct rpc_port *port);
void rpc_port_leave(struct rpc_port *port);

/* The call that ended first; NULL: none. */
struct rpc_call *rpc_port_take(struct rpc_port *port);

/* Sends a request whose reply nobody waits for, if the socket has room. */
void rpc_post(struct rpc *r, enum proto_op op, const ProtobufCMessage *request);

/*
 * Deals with what has arrived, unless another thread does already. Never waits, and leaves what is
 * more than RPC_READ_MAX packets for the next one: a caller may hold a lock.
 */
void rpc_read(struct rpc *r);

/*
 * The same for a loop that watches the socket. -EBUSY: another thread reads, and wakes up for what
 * arrives; the port is rung when it no longer does. Until then there is nothing to watch.
 */
int rpc_attend(struct rpc *r, struct rpc_port *port);

/* The socket, open as long as the reference. */
int rpc_sock(const struct rpc *r);

/*
 * 0, or why it is dead: -errno, and in words, which stay as long as the reference. -ECONNRESET: the
 * daemon hung up without a word.
 */
int rpc_status(struct rpc *r, const char **ret_why);

/* Makes it dead. why is a constant. Harmless when it is. */
void rpc_close(struct rpc *r, int err, const char *why);

/* In a child: frees the memory and the child's descriptor, without a word to the daemon. */
void rpc_forget(struct rpc *r);

/* Requests sent so far. */
uint64_t rpc_requests(struct rpc *r);

/* Copies text of the daemon's, cut to size; "" when it is not fit to show (proto/text.h). */
void rpc_text(char *out, size_t size, const char *text);

#endif
