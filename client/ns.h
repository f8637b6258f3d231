/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A namespace that a program opened: its descriptor and seed, and the number that the daemon of
 * each connection knows it by.
 *
 * Leases and writes refer to it, so that they work on after kvpool_ns_close. A lease changes its
 * namespace inside kvpool_acquire, where nothing may be freed: the last ns_put only pushes it on
 * the handle's list of dead ones, and the next handle_tidy frees it.
 */
#ifndef KVP_CLIENT_NS_H
#define KVP_CLIENT_NS_H

#include "client/handle.h"
#include "client/link.h"
#include "proto/kvpool.pb-c.h"
#include "proto/nsdesc.h"

#define NS_VALUE_MAX      128u
#define NS_DIFFERENCE_MAX (NSDESC_TEXT_MAX + 2 * NS_VALUE_MAX + 128u)

struct kvpool_ns {
	struct kvpool *pool;
	uint64_t refs; /* atomic */
	/*
	 * atomic: serial of a connection << 32 | number of the namespace there, NS_NONE when the
	 * daemon refused it; 0 before the first one
	 */
	uint64_t number;
	uint32_t unanswered; /* atomic: serial of the last connection that had no answer in time */
	struct block_key seed;
	uint32_t block_tokens;
	uint64_t block_bytes;
	struct kvpool_ns *next_dead;

	struct list link; /* under the handle's lock, as all below */
	char difference[NS_DIFFERENCE_MAX];

	char model[NSDESC_TEXT_MAX + 1]; /* never changes, as the descriptor */
	size_t desc_bytes;
	uint8_t desc[];
};

/* Its number on the connection of an attachment, or NS_NONE. Part of the hit path. */
static inline uint32_t ns_number(const struct kvpool_ns *ns, const struct attach *a)
{
	uint64_t n = load_relaxed(&ns->number);

	return n >> 32 == a->serial ? (uint32_t)n : NS_NONE;
}

/* Why it has none there. Part of the hit path. */
static inline enum kvpool_reason ns_reason(const struct kvpool_ns *ns, const struct attach *a)
{
	if (load_relaxed(&ns->number) >> 32 == a->serial)
		return KVPOOL_NAMESPACE;
	return load_relaxed(&ns->unanswered) == a->serial ? KVPOOL_TIMEOUT : KVPOOL_NO_DAEMON;
}

static inline void ns_ref(struct kvpool_ns *ns)
{
	add_relaxed(&ns->refs, 1);
}

/* Part of the hit path. NULL is ignored. */
void ns_put(struct kvpool_ns *ns);

/*
 * Frees the dead ones, and tells the daemon. With the handle's lock, or when nobody else uses the
 * handle.
 */
void ns_bury(struct kvpool *p);

/*
 * Makes sure that the daemon of this connection knows it: asks where it does not, or refused.
 * Returns 0 and its number; -ENOENT when it refuses, or as link_call.
 */
int ns_register(struct kvpool_ns *ns, const struct link *l, uint64_t deadline,
		uint32_t *ret_number);

/* What the daemon said to NS_OPEN, copied out of its reply. */
struct ns_answer {
	uint32_t ns;
	char field[64], here[NS_VALUE_MAX], there[NS_VALUE_MAX];
};

/* NS_OPEN on its way. */
struct ns_question {
	struct kvpool_ns *ns;
	struct ns_answer answer;
	struct rpc_call call;
};

/* The call and its message, of which the caller made the defaults. port: as in struct rpc_call. */
void ns_question_make(struct ns_question *q, struct kvpool_ns *ns, struct rpc_port *port,
		      Kvpool__NsOpen *m);

/* The call ended with err: notes what that says about the namespace. Returns as ns_register. */
int ns_question_end(struct kvpool_ns *ns, const struct ns_question *q, const struct link *l,
		    int err);

/*
 * One that is alive and that the daemon has not answered about on this connection, with a
 * reference; or NULL.
 */
struct kvpool_ns *ns_find_unregistered(struct kvpool *p, const struct attach *a);

/*
 * Opens all namespaces of the handle that the daemon has not answered about on this connection. One
 * that is refused counts as done. Returns 0, or as link_call: the rest was not tried.
 */
int ns_register_all(struct kvpool *p, const struct link *l, uint64_t deadline);

#endif
