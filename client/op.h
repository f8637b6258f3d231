/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and finish forms. A program holds a struct kvpool_op; the work behind it is a job, which
 * sends one message after the other and belongs to the library:
 *
 * 	queued	--the socket took the message--> sent
 * 	sent	--reply; there is more to send--> queued
 * 	sent	--reply; that was all, or it failed--> gone, the operation is done
 * 	any	--cancelled, freed, too late--> gone, or, where the reply brings something that must
 * be given back, kept without an operation until it came
 *
 * Only kvpool_dispatch makes a job go on, in the thread that calls it. When other threads read the
 * reply, they leave it in the port (rpc.h).
 *
 * Each kind of operation is a struct op_kind, in the file of what it is about. A new one needs a
 * struct that begins with struct op_job, the hooks, and a start function that ends with op_start.
 */
#ifndef KVP_CLIENT_OP_H
#define KVP_CLIENT_OP_H

#include "client/chain.h"
#include "client/handle.h"
#include "client/link.h"
#include "client/ns.h"

struct op_job;

/* Room for the message of any kind. */
union op_message {
	Kvpool__Reserve reserve;
	Kvpool__Commit commit;
	Kvpool__Abort abort;
	Kvpool__Wait wait;
	Kvpool__Locate locate;
	Kvpool__Hint hint;
	Kvpool__Unwait unwait;
};

/* What every start function passes on. */
struct op_start {
	uint64_t deadline;
	kvpool_done done;
	void *arg;
	struct kvpool_op **ret;
};

/* The hooks are called under the lock of the operations, but for take (see rpc_take). */
struct op_kind {
	const char *what; /* "reserve blocks", for people */

	/*
	 * Before the first message, with the connection in job->link. 0, -ENOMEM, or -errno with
	 * the text made. NULL: nothing is to be done.
	 */
	int (*prepare)(struct op_job *job);
	/*
	 * Makes the next message in m, and sets op and take of job->call; its arg is the job. NULL:
	 * it was all about its namespace.
	 */
	const ProtobufCMessage *(*message)(struct op_job *job, union op_message *m);
	/* A reply was taken. Returns 1: there is more to send; 0: that was all; or -errno. */
	int (*next)(struct op_job *job);
	/* It went well: what the finish form returns. */
	long (*result)(struct op_job *job);
	/*
	 * Frees what the job has, after result too. err: why it ended, 0 when it went well. sent:
	 * the last message went out, and had no reply.
	 */
	void (*drop)(struct op_job *job, int err, int sent);
	/* Not NULL: after it was given up the reply must still be taken. Frees what that needs not.
	 */
	void (*abandon)(struct op_job *job);
};

struct op_job {
	const struct op_kind *kind;
	struct kvpool *pool;
	struct kvpool_ns *ns;   /* with a reference; NULL: it needs none */
	uint32_t number;        /* of ns, on this connection */
	int writes;             /* into the pool */
	struct kvpool_seq *seq; /* busy until the operation is finished; NULL: none */

	/* The rest is op.c's. */
	struct kvpool_op *op; /* NULL: given up */
	struct link
		link; /* of this connection; unless it is set before op_start, the current one */
	struct list in_jobs, in_queue;
	struct due due;
	struct ns_question *question; /* to be answered first; NULL: the number is known */
	struct rpc_call call;
	int sent;
};

struct kvpool_op {
	const struct op_kind *kind;
	struct kvpool *pool;
	kvpool_done done;
	void *arg;
	struct op_job *job; /* NULL: it is done */
	struct list link;   /* ops->done or ops->handed */
	int in_done;
	int is_done; /* atomic */
	long result;
	struct kvpool_write *write; /* of a reserve that went well */
	struct kvpool_seq *seq;     /* that it is about; NULL: none, or it let go of it */
};

/* Initialises the common part of a job. ns may be NULL. */
void op_job_init(struct op_job *job, const struct op_kind *kind, struct kvpool *p,
		 struct kvpool_ns *ns);

/*
 * Starts it. The job belongs to op.c from here on, also when that fails. nothing: there is nothing
 * to ask, so it is done at once. Returns 0, or as kvpool_reserve_start(), with the text made.
 */
int op_start(struct op_job *job, int nothing, const struct op_start *s);

/*
 * The same for a job of the library's own, on the connection of l, which it takes over: no
 * operation, no deadline, nothing to be told. Under the lock of the operations.
 */
void op_start_detached(struct op_job *job, const struct link *l);

/*
 * The same for a job that nobody hears of again: no operation. It ends by the deadline. Returns 0,
 * or as op_start. Under the lock of the operations; the caller has a reference of the handle.
 */
int op_start_unheard(struct op_job *job, uint64_t deadline);

/*
 * What the finish forms share: checks that it is done and of that kind, frees it and returns what
 * came of it. *ret_write: as in struct kvpool_op; NULL is allowed.
 */
long op_finish(struct kvpool_op *op, const struct op_kind *kind, struct kvpool_write **ret_write);

/* When an operation that begins now has to be over; timeout_ms 0: what the handle says. */
uint64_t op_deadline(const struct kvpool *p, unsigned int timeout_ms);

/* Ends the operation of a job, as kvpool_op_cancel. Under the lock of the operations. */
void op_cancel_job(struct op_job *job);

/* It is no longer about a sequence, which is free for others. Under the lock of the operations. */
void op_unbind_seq(struct kvpool_op *op);

void ops_init(struct kvpool *p);

/* All of them end with -ENOTCONN. The connection is closed already. */
void ops_close(struct kvpool *p);

/* With the last reference of the handle. */
void ops_free(struct kvpool *p);

#endif
