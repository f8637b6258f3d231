/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client: its connection, its region, and all that it holds in the pool.
 *
 *   NEW ---hello---> READY ---end---> DRAINING ---nobody can write to its region---> freed
 *    '------end, or refused---> freed
 *   ADMIN ---end---> freed			(a connection of the admin socket)
 *
 * The end comes in two steps. Step one is for its requests: reservations, waits, open namespaces,
 * queued answers and the socket go at once, on hang-up, BYE, a protocol error, a full outbox, the
 * death of the process that connected, whichever comes first; all of them lead to session_end(),
 * which does it once. Step two is for its pins: the hazard words of its region count until the
 * region cannot be written to any more (daemon/region.h), since another thread may still be
 * reading.
 *
 * Whose it is was settled at accept (daemon/peer.h). That process may give the socket away or leave
 * it to a child; the session ends with the process.
 *
 * Whatever finds out that a session must end says so with session_doom(), from anywhere, callbacks
 * of the pool included; the domain calls session_end() at the end of the round, when nobody stands
 * in the middle of something.
 */
#ifndef KVP_DAEMON_SESSION_H
#define KVP_DAEMON_SESSION_H

#include "daemon/conn.h"
#include "daemon/peer.h"
#include "daemon/pool.h"
#include "daemon/region.h"
#include "daemon/requests.h"
#include "daemon/usage.h"
#include "proto/check.h"

struct domain;
struct flusher;
struct finder;

enum session_state {
	SESSION_NEW = 1,
	SESSION_READY = 2,
	SESSION_ADMIN = 4,
	SESSION_DRAINING = 8,
};

enum session_reason {
	REASON_NONE,
	REASON_CLEAN,    /* said BYE */
	REASON_CRASH,    /* hung up without it, or its process died */
	REASON_KICKED,   /* the daemon stops, or lacks memory for it */
	REASON_PROTOCOL,
	REASON_SLOW,     /* does not read its answers */
	REASON_REFUSED,  /* never became a session */
	REASON_MAX,
};

#define SESSION_NAMESPACES 64u
#define SESSION_WAITS      64u
#define SESSION_WAIT_KEYS  8192u /* of all its waits, 256 KiB */
#define SESSION_REPORTS    4u

struct session {
	struct list link;   /* domain->sessions, in the order of their numbers */
	struct list doomed; /* domain->doomed */
	struct domain *domain;
	uint64_t number;
	enum session_state state;
	enum session_reason reason;
	const char *detail; /* of the reason, for the log; a constant or NULL */

	struct conn conn;
	struct peer peer;
	sd_event_source *peer_source;
	int peer_gone;

	char name[PROTO_TEXT_MAX + 1], library[PROTO_TEXT_MAX + 1];
	uint64_t connected, active; /* when */

	struct region *region; /* from HELLO on */
	struct account account;
	int unsettled; /* records were lost: what they said is to be booked */
	struct request_ring *requests;
	struct pool_owner owner;
	uint32_t ns[SESSION_NAMESPACES]; /* open, the last one opened at the end */
	uint32_t n_ns;
	struct list waits;
	uint32_t n_waits, n_wait_keys;
	uint32_t n_reports;
	/* Of an admin connection: what takes several rounds. */
	struct flusher *flush;
	struct finder *finder;
};

/*
 * A session for a socket that was accepted and whose peer is known; both are its own from then on,
 * also when it fails. Returns 0, and the session is in the domain's list, or -errno.
 */
int session_new(struct domain *d, int sock, struct peer *peer, int admin, struct session **ret);

/* Without any step of an end: the daemon exits. */
struct session *session_free(struct session *s);

/*
 * Marks it to be ended at the end of this round. The first reason counts. Nothing is dispatched for
 * it any more.
 */
void session_doom(struct session *s, enum session_reason reason, const char *detail);

/* Step one, and step two when there is nothing to wait for: s may be gone then. */
void session_end(struct session *s, uint64_t now);

/* Ends it when it takes too long: to say HELLO, or to read what it asked for. */
void session_check_time(struct session *s, uint64_t now);

/* NEW -> READY, with its region. */
void session_ready(struct session *s, struct region *region);

/* Sends a message; to a session that is closed, none. id 0: nobody asked for it. */
void session_send(struct session *s, enum proto_op op, uint16_t flags, uint64_t id,
		  const ProtobufCMessage *m, const int *fds, unsigned int n_fds);
void session_reply(struct session *s, enum proto_op op, uint64_t id, const ProtobufCMessage *m);

/* An Error as the answer to id. field may be NULL. */
void session_error(struct session *s, enum proto_op op, uint64_t id, enum proto_error code,
		   const char *field, const char *text);

/* Whether it has opened that namespace. */
int session_has_ns(const struct session *s, uint32_t ns);

#endif
