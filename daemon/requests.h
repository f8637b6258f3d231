/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lookups of each client, for who asks why its prompts were no hits. What is kept of one
 * are numbers and the id of a block: nothing that could be turned back into text.
 *
 * A client gets a ring of REQUESTS_RING entries with its first lookup, 18 KiB. When there are
 * REQUESTS_RINGS of them, the client that looked something up longest ago loses its own. The ring
 * of a session that ended stays until then, or for REQUESTS_KEEP_NS: who was killed is asked about
 * most.
 */
#ifndef KVP_DAEMON_REQUESTS_H
#define KVP_DAEMON_REQUESTS_H

#include "base/clock.h"
#include "base/list.h"
#include "proto/check.h"
#include "proto/reason.h"

#define REQUESTS_RING    256u
#define REQUESTS_RINGS   128u /* 2.3 MiB in all */
#define REQUESTS_KEEP_NS (600 * NSEC_PER_SEC)

struct past_lookup {
	uint64_t number; /* counts up over all clients; 0: an empty entry */
	uint64_t when;   /* it was heard of */
	uint64_t gone;   /* when what it missed went; 0: not known */
	uint64_t gen;
	uint8_t id[8]; /* the beginning of the key of the block it ended at, all 0 for none */
	uint32_t desc, ns;
	uint32_t mark; /* of its namespace, whose number may be used again */
	uint32_t asked, hit, from, tail;
	enum miss_reason why;
};

struct request_ring {
	struct list link;           /* of all, that of the latest lookup first */
	struct request_ring **user; /* the session's, until it ends */
	uint64_t session;
	uint64_t ended; /* when */
	char client[PROTO_TEXT_MAX + 1];
	struct past_lookup entry[REQUESTS_RING];
	uint32_t next;
};

struct requests {
	struct list rings;
	uint32_t n;
	uint64_t last; /* number */
};

void requests_init(struct requests *r);
void requests_fini(struct requests *r);

/*
 * Notes a lookup; its number is set here. *ring is the session's, NULL before the first one: it
 * must stay where it is until requests_end. Without memory nothing is kept.
 */
void requests_add(struct requests *r, struct request_ring **ring, uint64_t session,
		  const char *client, const struct past_lookup *p);

/* The session ends. *ring is NULL afterwards; it may have been before. */
void requests_end(struct request_ring **ring, uint64_t now);

/* Frees the rings of sessions that ended long ago. */
void requests_tidy(struct requests *r, uint64_t now);

/* Which ones are asked for. */
struct requests_query {
	uint64_t session;   /* 0: of all */
	const char *client; /* "": of all */
	int misses;         /* only those that missed what could have been a hit */
	uint64_t before;    /* only numbers below; 0: all */
};

/* The newest of them, and whose it is. Returns NULL when there is none. */
const struct past_lookup *requests_newest(const struct requests *r, const struct requests_query *q,
					  const struct request_ring **ret_ring);

/* Whether there is a ring that the query asks about at all. */
int requests_knows(const struct requests *r, const struct requests_query *q);

#endif
