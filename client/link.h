/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of a handle to its daemon: made, found broken, made again.
 *
 * 	disconnected --link_get after the back-off, kvpool_reconnect--> connecting
 * 	connecting   --hello, regions mapped, namespaces open--> connected
 * 	connecting   --anything fails--> disconnected, with a longer back-off
 * 	connected    --hang-up, STOPPING, nonsense: seen by the next call--> disconnected
 * 	disconnected --kvpool_dispatch after the back-off--> disconnected, with an attempt that each
 * 		       kvpool_dispatch takes a step further; a call that connects drops it
 * 	any	     --kvpool_close--> closed
 *
 * One thread connects; others that come meanwhile wait for it within their own deadlines. The old
 * attachment stays current, and lookups go on in it, until the new one is complete or the daemon
 * has given the memory up.
 */
#ifndef KVP_CLIENT_LINK_H
#define KVP_CLIENT_LINK_H

#include "client/handle.h"

/* A connection and the attachment that came with it, each with a reference. */
struct link {
	struct rpc *rpc;
	struct attach *attach;
	uint32_t max_keys; /* in one request */
};

enum link_effort {
	LINK_PATIENT, /* not before the back-off is over */
	LINK_NOW,
};

/*
 * Gets the connection, and connects where there is none. Asks the daemon about the namespaces that
 * it has not answered about on this connection: so each call outside the hit path makes up for an
 * answer that was missed. Returns 0, or -errno: why it could not be had, with the text of
 * kvpool_error made.
 */
int link_get(struct kvpool *p, enum link_effort effort, uint64_t deadline, struct link *ret);

/* More references of it. */
void link_dup(const struct link *l, struct link *ret);

/* Gets the connection that there is. -ENOTCONN: there is none, and nothing is done about it. */
int link_peek(struct kvpool *p, struct link *ret);

/* What a loop has to watch for the connection. */
struct link_view {
	struct rpc *rpc; /* with a reference; NULL: none */
	int ns_later;    /* a namespace may be unknown there: ns_op_register */
	int busy;        /* another thread reads it, and rings when it no longer does */
	uint64_t again;  /* come back then; UINT64_MAX: only for what arrives */
};

/*
 * For kvpool_dispatch: reads what arrived, if anything may have, sees whether the connection
 * stands, and makes a new one, step by step and with the back-off, where it does not. Never waits.
 */
void link_attend(struct kvpool *p, struct rpc_port *port, int arrived, struct link_view *ret);

/* Gives the references back; in a child too. */
void link_put(struct kvpool *p, struct link *l);

/*
 * Makes one call on it: rpc_call(), and the text of kvpool_error where it fails. what names the
 * request for people ("reserve blocks").
 */
int link_call(struct kvpool *p, const struct link *l, const char *what, struct rpc_call *call,
	      const ProtobufCMessage *request, uint64_t deadline);

/*
 * What link_call does about a call that ended with err. Returns err, with the text of kvpool_error
 * made; gives the connection up when it is dead.
 */
int link_failed(struct kvpool *p, struct rpc *r, const char *what, const struct rpc_call *call,
		int err);

/* From here on lookups, and calls, find the new one. The caller keeps its references. */
struct hello;
void link_publish(struct kvpool *p, const struct link *l, const struct hello *h);

/* What calls that ask the daemon return when link_get failed with err. */
int link_errno(int err);

/* Says goodbye and disconnects for good. Does not wait. */
void link_close(struct kvpool *p);

#endif
