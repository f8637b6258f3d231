/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/dispatch.h"
#include "daemon/domain.h"
#include "daemon/finder.h"
#include "daemon/flusher.h"
#include "daemon/log.h"
#include "daemon/touches.h"
#include "daemon/wait.h"
#include "proto/kvpool.pb-c.h"

/* From accept to HELLO. */
#define SESSION_HELLO_NS (10 * NSEC_PER_SEC)
/* Without taking one packet of those that wait for it. */
#define SESSION_STUCK_NS (30 * NSEC_PER_SEC)

static const char *reason_name(enum session_reason r)
{
	static const char *const names[REASON_MAX] = {
		[REASON_NONE] = "none",         [REASON_CLEAN] = "clean",
		[REASON_CRASH] = "crash",       [REASON_KICKED] = "kicked",
		[REASON_PROTOCOL] = "protocol", [REASON_SLOW] = "slow",
		[REASON_REFUSED] = "refused",
	};

	return names[r];
}

/* The transitions of the picture in session.h; anything else is a mistake of this program. */
static void session_change_state(struct session *s, enum session_state to)
{
	switch (to) {
	case SESSION_NEW:
	case SESSION_ADMIN:
		assert(!s->state);
		break;
	case SESSION_READY:
		assert(s->state == SESSION_NEW);
		break;
	case SESSION_DRAINING:
		assert(s->state == SESSION_NEW || s->state == SESSION_READY ||
		       s->state == SESSION_ADMIN);
		break;
	}
	s->state = to;
}

void session_doom(struct session *s, enum session_reason reason, const char *detail)
{
	if (s->state == SESSION_DRAINING || s->reason)
		return;
	/* Who did not get as far as HELLO never was a session. */
	s->reason = s->state == SESSION_NEW ? REASON_REFUSED : reason;
	s->detail = detail;
	list_add_tail(&s->domain->doomed, &s->doomed);
}

static int session_on_packet(void *ctx, const void *packet, size_t n)
{
	struct session *s = ctx;

	if (!s->reason)
		dispatch_packet(s, packet, n);
	return s->reason != REASON_NONE;
}

static void session_on_broken(void *ctx, enum conn_problem problem)
{
	struct session *s = ctx;

	switch (problem) {
	case CONN_HUNG_UP:
		session_doom(s, REASON_CRASH, "hung up");
		break;
	case CONN_CUT:
		session_error(s, 0, 0, ERROR_BAD_FRAME, NULL,
			      "the packet is longer than 65536 bytes: the connection ends");
		session_doom(s, REASON_PROTOCOL, "packet too long");
		break;
	case CONN_DESCRIPTORS:
		session_error(s, 0, 0, ERROR_FDS, NULL,
			      "the packet carried file descriptors, and clients must not send any: "
			      "the connection ends");
		session_doom(s, REASON_PROTOCOL, "sent file descriptors");
		break;
	case CONN_SLOW:
		session_doom(s, REASON_SLOW, "outbox full");
		break;
	case CONN_NO_MEMORY:
		session_doom(s, REASON_KICKED, "out of memory");
		break;
	}
}

static const struct conn_ops session_conn_ops = {
	.packet = session_on_packet,
	.broken = session_on_broken,
};

/* The process that connected is gone, whoever still holds its socket. */
static int session_on_peer_gone(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct session *s = ctx;

	s->peer_gone = 1;
	s->peer_source = sd_event_source_disable_unref(s->peer_source);
	if (s->state == SESSION_DRAINING) {
		pool_owner_gone(s->domain->pool, &s->owner, clock_ns());
		s->domain->changed = 1;
		region_hurry(s->region);
	} else {
		/*
		 * A process may say BYE and exit before this round of the loop: then it was no
		 * crash.
		 */
		conn_read_rest(&s->conn);
		session_doom(s, REASON_CRASH, "process gone");
	}
	return 0;
}

static int session_watch(struct session *s, int sock)
{
	struct domain *d = s->domain;
	int r = conn_open(&s->conn, d->event, sock, d->packet, &session_conn_ops, s);

	if (r < 0)
		return r;
	return sd_event_add_io(d->event, &s->peer_source, s->peer.pidfd, EPOLLIN,
			       session_on_peer_gone, s);
}

int session_new(struct domain *d, int sock, struct peer *peer, int admin, struct session **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		peer_clear(peer);
		close_fd(sock);
		return -ENOMEM;
	}
	s->domain = d;
	s->conn.sock = -1;
	list_init(&s->link);
	list_init(&s->doomed);
	list_init(&s->waits);
	s->peer = *peer;
	s->connected = s->active = clock_ns();
	session_change_state(s, admin ? SESSION_ADMIN : SESSION_NEW);
	r = session_watch(s, sock);
	if (r < 0) {
		if (s->conn.sock < 0)
			close_fd(sock);
		session_free(s);
		return r;
	}
	domain_add(d, s);
	pool_owner_init(&s->owner, s->number);
	*ret = s;
	return 0;
}

struct session *session_free(struct session *s)
{
	if (!s)
		return NULL;
	wait_end_all(s);
	s->flush = flusher_free(s->flush);
	s->finder = finder_free(s->finder);
	conn_close(&s->conn, clock_ns());
	sd_event_source_disable_unref(s->peer_source);
	peer_clear(&s->peer);
	region_free(s->region);
	list_del(&s->doomed);
	list_del(&s->link);
	free(s);
	return NULL;
}

void session_ready(struct session *s, struct region *region)
{
	s->region = region;
	session_change_state(s, SESSION_READY);
}

/* Step two. */
static void session_gone(struct session *s)
{
	struct domain *d = s->domain;

	pool_owner_gone(d->pool, &s->owner, clock_ns());
	d->changed = 1;
	domain_remove(d, s);
	session_free(s);
}

static void session_on_released(void *ctx)
{
	struct session *s = ctx;

	log_line(LOG_DEBUG, "nobody reads for this client any more",
		 LOG_NUMBER("session", s->number));
	session_gone(s);
}

static void session_log_end(const struct session *s)
{
	if (s->state == SESSION_ADMIN && s->reason <= REASON_CRASH)
		return;
	log_line(s->reason == REASON_CLEAN ? LOG_INFO : LOG_NOTICE, "client ended",
		 LOG_NUMBER("session", s->number), LOG_TEXT("client", *s->name ? s->name : NULL),
		 LOG_NUMBER("client_pid", s->peer.pid), LOG_NUMBER("client_uid", s->peer.uid),
		 LOG_TEXT("domain", s->domain->cfg.name),
		 LOG_TEXT("reason", reason_name(s->reason)), LOG_TEXT("detail", s->detail));
}

static void session_end_requests(struct session *s, uint64_t now)
{
	struct domain *d = s->domain;

	if (s->region) {
		touches_drain(s, now);
		touches_settle(s);
	}
	wait_end_all(s);
	s->flush = flusher_free(s->flush);
	s->finder = finder_free(s->finder);
	while (s->n_ns)
		pool_ns_drop(d->pool, s->ns[--s->n_ns]);
	pool_owner_end(d->pool, &s->owner, now);
	conn_close(&s->conn, now);
	d->changed = 1;
}

void session_end(struct session *s, uint64_t now)
{
	struct domain *d = s->domain;

	if (s->state == SESSION_DRAINING)
		return;
	list_del(&s->doomed);
	session_end_requests(s, now);
	session_log_end(s);
	if (s->state != SESSION_ADMIN)
		d->counts.ended[s->reason]++;
	session_change_state(s, SESSION_DRAINING);
	if (!s->region) {
		session_gone(s);
		return;
	}
	if (s->peer_gone)
		pool_owner_gone(d->pool, &s->owner, now);
	region_drain(s->region, d->worker, session_on_released, s);
}

void session_check_time(struct session *s, uint64_t now)
{
	uint64_t stuck = conn_stuck(&s->conn);

	if (s->state == SESSION_NEW && now - s->connected > SESSION_HELLO_NS)
		session_doom(s, REASON_REFUSED, "said no hello in time");
	if (stuck && now - stuck > SESSION_STUCK_NS)
		session_doom(s, REASON_SLOW, "does not read its answers");
}

void session_send(struct session *s, enum proto_op op, uint16_t flags, uint64_t id,
		  const ProtobufCMessage *m, const int *fds, unsigned int n_fds)
{
	struct domain *d = s->domain;
	struct frame_header head = {
		.magic = FRAME_MAGIC,
		.op = (uint16_t)op,
		.flags = flags,
		.id = id,
		.epoch = pool_epoch(d->pool),
	};
	long n = codec_pack(d->answer, &head, m);

	/* Each list is bounded where it is made, so that it fits. */
	if (n < 0) {
		log_line(LOG_ERR, "an answer does not fit a packet", LOG_NUMBER("operation", op));
		session_error(s, op, id, ERROR_INTERNAL, NULL, "the answer does not fit a packet");
		return;
	}
	conn_send(&s->conn, d->answer, (size_t)n, fds, n_fds, clock_ns());
}

void session_reply(struct session *s, enum proto_op op, uint64_t id, const ProtobufCMessage *m)
{
	session_send(s, op, FRAME_REPLY, id, m, NULL, 0);
}

/* What the other side got wrong, as opposed to what it cannot have now. */
static int error_is_protocol(enum proto_error code)
{
	switch (code) {
	case ERROR_BAD_FRAME:
	case ERROR_BAD_MESSAGE:
	case ERROR_BAD_FIELD:
	case ERROR_UNKNOWN_OP:
	case ERROR_BAD_STATE:
	case ERROR_VERSION:
	case ERROR_FDS:
		return 1;
	default:
		return 0; /* sound, and refused all the same */
	}
}

void session_error(struct session *s, enum proto_op op, uint64_t id, enum proto_error code,
		   const char *field, const char *text)
{
	Kvpool__Error e = KVPOOL__ERROR__INIT;

	e.code = code;
	e.text = (char *)text;
	if (field)
		e.field = (char *)field;
	if (error_is_protocol(code))
		s->domain->counts.protocol_errors++;
	log_line(LOG_DEBUG, "refused a request", LOG_NUMBER("session", s->number),
		 LOG_TEXT("code", proto_error_name(code)), LOG_TEXT("why", text));
	session_send(s, op, FRAME_REPLY | FRAME_ERROR, id, &e.base, NULL, 0);
}

int session_has_ns(const struct session *s, uint32_t ns)
{
	for (uint32_t i = 0; i < s->n_ns; i++)
		if (s->ns[i] == ns)
			return 1;
	return 0;
}
