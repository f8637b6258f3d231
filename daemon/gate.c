/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/gate.h"
#include "daemon/leases.h"
#include "daemon/log.h"
#include "proto/kvpool.pb-c.h"

#define GATE_ANYBODY ((uid_t)-1)

static int gate_is_client(const struct session *s, uid_t uid)
{
	return s->state != SESSION_ADMIN && (uid == GATE_ANYBODY || s->peer.uid == uid);
}

static uint32_t gate_count_sessions(const struct domain *d, uid_t uid)
{
	const struct session *s;
	uint32_t n = 0;

	list_for_each(s, &d->sessions, link)
		n += gate_is_client(s, uid);
	return n;
}

/*
 * Those that are served, and ended ones that pin something: whoever connects again and again must
 * not be refused for regions that are only waiting to be asked about.
 */
static uint32_t gate_count_clients(const struct domain *d, uid_t uid)
{
	const struct session *s;
	uint32_t n = 0;

	list_for_each(s, &d->sessions, link)
		n += gate_is_client(s, uid) &&
		     (s->state != SESSION_DRAINING || leases_any(&s->region->map));
	return n;
}

/* Whether so many sessions of a user, or of anybody, are too many for one more. */
static int gate_is_full(const struct domain *d, uid_t uid, uint32_t clients)
{
	uint32_t n = gate_count_sessions(d, uid), sessions = DOMAIN_SESSIONS_FACTOR * clients;

	/* Reading everybody's pins takes a while, and mostly it is not needed. */
	return n >= sessions || (n >= clients && gate_count_clients(d, uid) >= clients);
}

/* Whom the sockets' modes let through is checked once more, since modes can be changed. */
static int gate_may(const struct domain *d, const struct peer *peer, int admin)
{
	gid_t group = admin ? d->cfg.admin_group : d->cfg.client_group;

	if (peer->uid == 0 || peer->uid == geteuid())
		return 1;
	if (group != DOMAIN_NO_GROUP)
		return peer_in_group(peer, group);
	return !admin;
}

/* Who may, for who may not. */
static void gate_say_who(const struct domain *d, const struct peer *peer, int admin,
			 char why[GATE_WHY_BYTES])
{
	gid_t group = admin ? d->cfg.admin_group : d->cfg.client_group;

	if (group == DOMAIN_NO_GROUP)
		snprintf(why, GATE_WHY_BYTES,
			 "user %u may not use this socket: be user %u, whom kvpoold runs as, or "
			 "root",
			 peer->uid, geteuid());
	else
		snprintf(why, GATE_WHY_BYTES,
			 "user %u may not use this socket: ask to be added to group %s", peer->uid,
			 admin ? "kvpool-admin" : "kvpool");
}

enum proto_error gate_check(const struct domain *d, const struct peer *peer, int admin,
			    char why[GATE_WHY_BYTES])
{
	const struct config_limits *limits = &d->config->limits;
	struct domain_census census;

	domain_census(d, &census);
	if (!gate_may(d, peer, admin)) {
		gate_say_who(d, peer, admin, why);
		return ERROR_DENIED;
	}
	if (admin && census.admins >= DOMAIN_ADMINS) {
		snprintf(why, GATE_WHY_BYTES,
			 "%u connections on the admin socket, which is all it takes: end some",
			 census.admins);
		return ERROR_LIMIT;
	}
	if (!admin && gate_is_full(d, GATE_ANYBODY, limits->max_clients)) {
		snprintf(why, GATE_WHY_BYTES,
			 "kvpoold has %u clients, %u of them ended ones whose memory somebody still"
			 " maps, which is all it takes: end some (kvpoolctl clients lists them)",
			 census.clients, census.draining);
		return ERROR_LIMIT;
	}
	if (!admin && gate_is_full(d, peer->uid, limits->max_clients_per_user)) {
		snprintf(why, GATE_WHY_BYTES,
			 "user %u has %u clients, ended ones whose memory somebody still maps"
			 " included, which is all that one user may have: end some (kvpoolctl"
			 " clients lists them)",
			 peer->uid, gate_count_sessions(d, peer->uid));
		return ERROR_LIMIT;
	}
	return ERROR_NONE;
}

void gate_refuse(struct domain *d, int sock, struct peer *peer, enum proto_error code,
		 const char *why)
{
	struct frame_header head = {
		.magic = FRAME_MAGIC,
		.flags = FRAME_REPLY | FRAME_ERROR,
		.epoch = pool_epoch(d->pool),
	};
	Kvpool__Error e = KVPOOL__ERROR__INIT;
	long n;

	e.code = code;
	e.text = (char *)why;
	n = codec_pack(d->answer, &head, &e.base);
	if (n > 0)
		(void)frame_send(sock, d->answer, (size_t)n, NULL, 0);
	log_line(LOG_NOTICE, "connection refused", LOG_NUMBER("client_pid", peer->pid),
		 LOG_NUMBER("client_uid", peer->uid), LOG_TEXT("reason", proto_error_name(code)),
		 LOG_TEXT("why", why));
	peer_clear(peer);
	close_fd(sock);
}
