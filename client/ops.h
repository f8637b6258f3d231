/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a handle that were started and not waited for: a part of struct kvpool.
 *
 * Lock order: lock of this, then the handle's, then a connection's, then the port's. Callbacks of
 * the program are called under none.
 */
#ifndef KVP_CLIENT_OPS_H
#define KVP_CLIENT_OPS_H

#include <pthread.h>

#include "base/list.h"
#include "client/due.h"
#include "client/loop.h"
#include "client/rpc.h"

/* Operations of one handle under way at once; one that ended and was not finished is none. */
#define OPS_MAX 4096u

/* Callbacks in one kvpool_dispatch. */
#define OPS_ROUND 256u

struct ops {
	pthread_mutex_t lock;
	struct rpc_port port; /* where their calls end */
	struct loop loop;
	struct due_heap due;
	struct list jobs;   /* all that are under way */
	struct list queue;  /* of those, the ones that wait for room in the socket, in order */
	struct list done;   /* operations that kvpool_dispatch is to hand out, in order */
	struct list handed; /* those that it did, without a callback: for kvpool_next_done */
	size_t n_jobs, n_done;
};

#endif
