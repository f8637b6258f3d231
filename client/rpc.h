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
 * rpc_start, rpc_wait and rpc_read are separate, so that an engine that must not block can be given
 * start and finish forms: the caller's own loop then polls rpc_sock and calls rpc_read.
 *
 * Locks: rpc->lock is taken for short times only, never while anything waits. No other lock is
 * taken under it, but callers may hold the handle's.
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

/* One call. Belongs to the thread that makes it, but is written by the one that reads. */
struct rpc_call {
	enum proto_op op;
	rpc_take take; /* NULL: that there is a reply is all */
	void *arg;

	/* The rest is rpc.c's. */
	struct list link;
	uint64_t id;
	pthread_cond_t cond;
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

/* Takes the connected socket. Returns 0 and one reference, or -ENOMEM; the socket is closed then.
 */
int rpc_new(int sock, rpc_stray stray, void *arg, struct rpc **ret);

struct rpc *rpc_ref(struct rpc *r);
struct rpc *rpc_unref(struct rpc *r);

/*
 * Sends a request. Returns 0: rpc_wait must follow. Or -ENOTCONN, or -ETIMEDOUT when the socket
 * stays full; nothing is under way then.
 */
int rpc_start(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request,
	      uint64_t deadline);

/*
 * Waits for the reply. Returns 0 after take did, or -errno: -ENOTCONN, -ETIMEDOUT, or what the
 * daemon refused with, in words in call->text. The call is over in any case.
 */
int rpc_wait(struct rpc *r, struct rpc_call *call, uint64_t deadline);

/* Both. */
int rpc_call(struct rpc *r, struct rpc_call *call, const ProtobufCMessage *request,
	     uint64_t deadline);

/* Sends a request whose reply nobody waits for, if the socket has room. */
void rpc_post(struct rpc *r, enum proto_op op, const ProtobufCMessage *request);

/*
 * Deals with what has arrived, unless another thread does already. Never waits, and leaves what is
 * more than RPC_READ_MAX packets for the next one: a caller may hold a lock.
 */
void rpc_read(struct rpc *r);

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

/* The error that stands for what a daemon refused with. */
int rpc_errno(enum proto_error e);

#endif
