/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/admin.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "proto/kvpool.pb-c.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/say.h"

const char *admin_path(const struct admin *a)
{
	return a->endpoint.addr.sun_path;
}

/* As say_error, unless nobody wants to hear it. */
static __attribute__((format(printf, 3, 4))) enum ctl_exit
fail(const struct admin *a, enum ctl_exit status, const char *format, ...)
{
	va_list ap;

	if (a->mute)
		return status;
	va_start(ap, format);
	say_verror(status, format, ap);
	va_end(ap);
	return status;
}

static enum ctl_exit no_answer(const struct admin *a)
{
	return fail(
		a, EXIT_FAILED,
		"kvpoold at %s did not answer within %g s (is it stopped? --timeout waits longer)",
		admin_path(a), (double)a->timeout_ns / NSEC_PER_SEC);
}

static enum ctl_exit cannot_connect(const struct admin *a, int error)
{
	const char *path = admin_path(a);

	switch (error) {
	case EAGAIN: /* its queue of connections stayed full */
		return no_answer(a);
	case ENOENT:
		return fail(a, EXIT_NO_DAEMON,
			    "cannot reach kvpoold at %s: there is no such socket (%s)", path,
			    a->endpoint.hint);
	case ECONNREFUSED:
		return fail(a, EXIT_NO_DAEMON,
			    "cannot reach kvpoold at %s: connection refused (%s)", path,
			    a->endpoint.hint);
	case EACCES:
	case EPERM:
		return fail(a, EXIT_DENIED, "cannot reach kvpoold at %s: permission denied (%s)",
			    path, a->endpoint.rights);
	case EPROTOTYPE:
	case ENOTSOCK:
		return fail(a, EXIT_FAILED,
			    "cannot reach kvpoold at %s: that is another program's socket "
			    "(kvpoold --socket says which is its own)",
			    path);
	default:
		return fail(a, EXIT_FAILED, "cannot reach kvpoold at %s: %s (%s)", path,
			    strerror(error), a->endpoint.hint);
	}
}

/* Blocks no longer than the timeout: connect on a Unix socket waits for room in the queue. */
static int connect_socket(struct admin *a)
{
	struct timeval limit = {
		.tv_sec = (time_t)(a->timeout_ns / NSEC_PER_SEC),
		.tv_usec = (suseconds_t)(a->timeout_ns % NSEC_PER_SEC / NSEC_PER_USEC),
	};
	const struct sockaddr *addr = (const struct sockaddr *)&a->endpoint.addr;
	_cleanup_fd_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(sock, addr, sizeof(a->endpoint.addr)))
		return -errno;
	a->sock = TAKE_FD(sock);
	return 0;
}

int admin_connect(const struct endpoint *e, uint64_t timeout_ns, struct admin *ret)
{
	struct admin a = { .sock = -1, .timeout_ns = timeout_ns, .endpoint = *e };
	int r = connect_socket(&a);

	if (r)
		return r;
	a.memory = malloc(FRAME_MAX + CODEC_ARENA_BYTES);
	if (!a.memory) {
		close_fd(a.sock);
		return -ENOMEM;
	}
	a.packet = a.memory + CODEC_ARENA_BYTES;
	*ret = a;
	/* In its place: the arena holds its own address. */
	codec_arena_init(&ret->arena, ret->memory, CODEC_ARENA_BYTES);
	return 0;
}

enum ctl_exit admin_open(const struct options *o, struct admin *ret)
{
	struct admin a = { .timeout_ns = o->timeout_ns };
	enum ctl_exit rc = endpoint_find(o, &a.endpoint);
	int r;

	if (rc)
		return rc;
	r = admin_connect(&a.endpoint, o->timeout_ns, ret);
	return r ? cannot_connect(&a, -r) : EXIT_OK;
}

void admin_close(struct admin *a)
{
	if (!a->memory)
		return;
	a->sock = close_fd(a->sock);
	free(a->memory);
	a->memory = NULL;
}

static enum ctl_exit lost(const struct admin *a, int error)
{
	return fail(a, EXIT_FAILED, "kvpoold at %s went away before it answered: %s (%s)",
		    admin_path(a), error ? strerror(error) : "it closed the connection",
		    a->endpoint.hint);
}

static enum ctl_exit nonsense(const struct admin *a, const char *why)
{
	return fail(a, EXIT_FAILED,
		    "%s answered with what is no protocol %u message: %s (is it a kvpoold of "
		    "this version?)",
		    admin_path(a), PROTOCOL_MAX, why);
}

static enum ctl_exit send_request(struct admin *a, enum proto_op op,
				  const ProtobufCMessage *request)
{
	struct frame_header h = { .magic = FRAME_MAGIC, .op = (uint16_t)op, .id = ++a->id };
	long n = codec_pack(a->packet, &h, request);
	int r;

	if (n < 0)
		return fail(a, EXIT_USAGE, "the request does not fit a packet of %u bytes",
			    FRAME_MAX);
	r = frame_send(a->sock, a->packet, (size_t)n, NULL, 0);
	/* Who was refused finds the connection closed, and the reason in it. */
	return !r || r == -EPIPE || r == -ECONNRESET ? EXIT_OK : lost(a, -r);
}

/* The answer to this request, or a refusal of the whole connection. */
static int is_answer(const struct admin *a, const struct frame_header *h)
{
	return (h->flags & FRAME_REPLY && h->id == a->id) || (h->flags & FRAME_ERROR && !h->id);
}

/* Waits for one packet. A daemon that stops may have told so with a packet of its own before. */
static enum ctl_exit receive(struct admin *a, uint64_t deadline, size_t *ret_n,
			     struct frame_header *ret)
{
	struct pollfd p = { .fd = a->sock, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_ns(), wait;
		unsigned int n_fds;
		const char *why;
		long n;

		if (now >= deadline)
			return no_answer(a);
		wait = MIN((deadline - now) / NSEC_PER_MSEC + 1, 60000);
		if (poll(&p, 1, (int)wait) <= 0)
			continue;
		n = frame_recv(a->sock, a->packet, NULL, 0, &n_fds);
		/* The second is told once, before what came first. */
		if (n == -EAGAIN || n == -ECONNRESET)
			continue;
		if (n <= 0)
			return lost(a, (int)-n);
		why = frame_parse(a->packet, (size_t)n, ret);
		if (why)
			return nonsense(a, why);
		if (is_answer(a, ret)) {
			*ret_n = (size_t)n - FRAME_HEADER_BYTES;
			return EXIT_OK;
		}
	}
}

static enum ctl_exit refused_status(unsigned int code)
{
	switch (code) {
	case ERROR_DENIED:
		return EXIT_DENIED;
	case ERROR_NO_OBJECT:
	case ERROR_AMBIGUOUS:
		return EXIT_NO_OBJECT;
	case ERROR_CONFIG:
		return EXIT_BAD_CONFIG;
	default:
		return EXIT_FAILED;
	}
}

static enum ctl_exit refused(const struct admin *a, const char *op, const Kvpool__Error *e)
{
	_cleanup_free_ char *text = cell_clean(e->text);
	enum ctl_exit status = refused_status(e->code);
	char what[32];

	snprintf(what, sizeof(what), "%s", op);
	for (char *c = what; (c = strchr(c, '_'));)
		*c = ' ';
	if (e->code < 32 && a->expected & 1u << e->code)
		return status;
	return fail(a, status, "kvpoold at %s refused %s%s%s: %s", admin_path(a), what,
		    a->about ? " of " : "", a->about ? a->about : "",
		    text && *text ? text : proto_error_name(e->code));
}

enum ctl_exit admin_call(struct admin *a, enum proto_op op, const ProtobufCMessage *request,
			 const void **ret_reply)
{
	const struct proto_op_info *info = proto_op_find(op);
	const uint8_t *body = a->packet + FRAME_HEADER_BYTES;
	struct frame_header h;
	const void *message;
	enum ctl_exit rc;
	size_t n = 0;

	rc = send_request(a, op, request);
	if (rc)
		return rc;
	rc = receive(a, clock_ns() + a->timeout_ns, &n, &h);
	if (rc)
		return rc;
	a->epoch = h.epoch;
	a->code = ERROR_NONE;
	message = codec_unpack(&a->arena,
			       h.flags & FRAME_ERROR ? &kvpool__error__descriptor : info->reply,
			       body, n);
	if (!message)
		return nonsense(a, "its body does not unpack");
	if (h.flags & FRAME_ERROR) {
		a->code = ((const Kvpool__Error *)message)->code;
		return refused(a, info->name, message);
	}
	*ret_reply = message;
	return EXIT_OK;
}
