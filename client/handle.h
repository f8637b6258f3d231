/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct kvpool: what a program opens. It ties together the connection (rpc.h, link.h), the memory
 * that lookups read (attach.h) and what was opened on it (ns.h, lease.h, write.h).
 *
 * The hit path reads alive and current, adds to stray, and touches nothing else of it. Everything
 * else is for calls that may block.
 *
 * Locks, in this order: ops.lock, lock, rpc->lock, ops.port.lock; error_lock is taken under any.
 * None is held while anything waits, but for link_changed.
 */
#ifndef KVP_CLIENT_HANDLE_H
#define KVP_CLIENT_HANDLE_H

#include <pthread.h>

#include "base/list.h"
#include "client/address.h"
#include "client/attach.h"
#include "client/fork.h"
#include "client/kvpool.h"
#include "client/ops.h"
#include "client/rpc.h"
#include "proto/check.h"

#define HANDLE_ERROR_MAX  512u
#define HANDLE_LEASES_MAX 16384u

static_assert((int)KVPOOL_UNNAMED == FEATURE_UNNAMED && (int)KVPOOL_HINTS == FEATURE_HINT &&
		      (int)KVPOOL_UNWAIT == FEATURE_UNWAIT,
	      "features of the library and of the protocol are the same bits");
#define HANDLE_FEATURES ((uint64_t)KVPOOL_UNNAMED | KVPOOL_HINTS | KVPOOL_UNWAIT)

/* Namespaces that were opened without waiting. */
enum ns_later {
	NS_LATER_NONE,
	NS_LATER_LOOK,  /* kvpool_dispatch is to look for those that the daemon does not know */
	NS_LATER_ASKED, /* it has asked about one; with the answer it looks again */
};

struct kvpool {
	const uint32_t *alive;  /* fork.h */
	struct attach *current; /* atomic: where lookups look; NULL: nowhere */
	/* Counters of what happened without an attachment, by enum session_counter; atomic. */
	uint64_t stray[COUNTER_MAX];

	uint64_t refs; /* atomic: the program, and each open namespace, lease and write */
	struct kvpool_ns *dead_ns; /* atomic: see ns_put */

	/* Never change. */
	uint32_t *fork_page;
	struct address address;
	uint64_t timeout_ns;
	uint32_t max_leases;
	char name[PROTO_TEXT_MAX + 1];
	int debug;
	int later;      /* KVPOOL_CONNECT_LATER */
	kvpool_log log; /* NULL: none */
	void *log_arg;

	pthread_mutex_t lock; /* all below, but for the error */
	pthread_cond_t link_changed;
	struct rpc *rpc;         /* NULL: disconnected */
	int connecting, closed;  /* a thread connects; the program has let go */
	int link_error;          /* why it is not connected: -errno */
	struct attempt *attempt; /* of kvpool_dispatch to connect; NULL: none */
	uint64_t attempt_until;
	uint64_t retry_at, backoff_ns;
	uint32_t serial;             /* of the last connection that was tried */
	uint64_t connects, requests; /* connections made; requests of those that are gone */
	uint32_t max_keys;           /* in one request; of the last connection, as the next two */
	uint64_t features;
	char daemon[PROTO_TEXT_MAX + 1];
	struct list namespaces;
	enum ns_later ns_later;
	uint64_t *lease_map;          /* a bit for each lease that exists */
	uint64_t folded[COUNTER_MAX]; /* counters of sessions that are unmapped */

	struct ops ops; /* with a lock of its own */

	pthread_mutex_t error_lock;
	char error[HANDLE_ERROR_MAX];

	struct attach attach[ATTACH_MAX];
};

static inline int handle_is_forked(const struct kvpool *p)
{
	return fork_is_child(p->alive);
}

/* Counts for an attachment, or for the handle when there is none. Part of the hit path. */
static inline void handle_count(struct kvpool *p, const struct attach *a, enum session_counter c,
				uint64_t n)
{
	if (a)
		session_count(&a->session, c, n);
	else
		add_relaxed(&p->stray[c], n);
}

void handle_ref(struct kvpool *p);

/* Frees it with the last reference, in a child too. */
void handle_unref(struct kvpool *p);

/* Unmaps attachments that nobody uses any more, and frees what the hit path let go of. */
void handle_tidy(struct kvpool *p);

/* The same with the lock held. */
void handle_tidy_locked(struct kvpool *p);

/* When a call that begins now has to be over. */
uint64_t handle_deadline(const struct kvpool *p);

/*
 * Makes the text of kvpool_error, and prints it when that is asked for. Returns err, so that an
 * error can be told and returned in one statement.
 */
int handle_error(struct kvpool *p, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A line for KVPOOL_DEBUG, and for the program's log. */
void handle_debug(const struct kvpool *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
