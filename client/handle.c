/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "client/handle.h"
#include "client/link.h"
#include "client/ns.h"
#include "client/op.h"
#include "proto/kvpool.pb-c.h"
#include "proto/text.h"

#define TIMEOUT_MS_DEFAULT 2000u
#define LEASES_DEFAULT     256u
/* Of earlier versions of struct kvpool_options, that ended before these. */
#define OPTIONS_SIZE_FIRST offsetof(struct kvpool_options, log)
#define OPTIONS_SIZE_LOG   offsetof(struct kvpool_options, flags)
#define LEASE_MAP_BITS     64u

uint64_t handle_deadline(const struct kvpool *p)
{
	return clock_ns() + p->timeout_ns;
}

/* One write, so that lines of several threads do not mix. */
static void tell_line(const struct kvpool *p, enum kvpool_log_level level, const char *text)
{
	int saved = errno;

	if (p->debug)
		dprintf(STDERR_FILENO, "kvpool: %s\n", text);
	if (p->log)
		p->log(p->log_arg, level, text);
	errno = saved;
}

int handle_error(struct kvpool *p, int err, const char *format, ...)
{
	char text[HANDLE_ERROR_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	pthread_mutex_lock(&p->error_lock);
	memcpy(p->error, text, sizeof(p->error));
	pthread_mutex_unlock(&p->error_lock);
	tell_line(p, KVPOOL_LOG_ERROR, text);
	return err;
}

void handle_debug(const struct kvpool *p, const char *format, ...)
{
	char text[HANDLE_ERROR_MAX];
	va_list ap;

	if (!p->debug && !p->log)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tell_line(p, KVPOOL_LOG_INFO, text);
}

/* Keeps the counters of a session whose region goes. */
static void fold_counters(struct kvpool *p, const struct attach *a)
{
	for (unsigned int c = 0; c < COUNTER_MAX; c++)
		p->folded[c] += load_relaxed(&a->session.head->counter[c]);
}

void handle_tidy_locked(struct kvpool *p)
{
	for (unsigned int i = 0; i < ATTACH_MAX; i++)
		if (attach_is_idle(&p->attach[i])) {
			fold_counters(p, &p->attach[i]);
			attach_unmap(&p->attach[i]);
		}
	ns_bury(p);
}

void handle_tidy(struct kvpool *p)
{
	if (handle_is_forked(p))
		return;
	pthread_mutex_lock(&p->lock);
	handle_tidy_locked(p);
	pthread_mutex_unlock(&p->lock);
}

void handle_ref(struct kvpool *p)
{
	add_relaxed(&p->refs, 1);
}

static void free_memory(struct kvpool *p)
{
	fork_page_free(p->fork_page);
	free(p->lease_map);
	free(p);
}

void handle_unref(struct kvpool *p)
{
	int forked = handle_is_forked(p);

	if (add_acq_rel(&p->refs, (uint64_t)-1) != 1)
		return;
	ns_bury(p);
	ops_free(p);
	if (!forked) {
		handle_tidy_locked(p);
		pthread_cond_destroy(&p->link_changed);
		pthread_mutex_destroy(&p->error_lock);
		pthread_mutex_destroy(&p->lock);
	}
	free_memory(p);
}

static void init_locks(struct kvpool *p)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->error_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->link_changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* What the daemon would refuse is left out: a name is for people only. */
static void set_name(struct kvpool *p, const char *name)
{
	size_t n;

	if (!name)
		name = program_invocation_short_name;
	n = strlen(name);
	if (n > PROTO_TEXT_MAX)
		n = text_cut(name, PROTO_TEXT_MAX);
	if (text_check(name, n) == 0)
		memcpy(p->name, name, n);
}

/* Options of this version out of those of this one or an earlier one; NULL: the defaults. */
static int options_read(const struct kvpool_options *given, struct kvpool_options *ret)
{
	struct kvpool_options o = { .size = sizeof(o) };

	if (given && given->size != OPTIONS_SIZE_FIRST && given->size != OPTIONS_SIZE_LOG &&
	    given->size != sizeof(o))
		return -EINVAL;
	if (given)
		memcpy(&o, given, given->size);
	if (o.max_leases > HANDLE_LEASES_MAX || o.flags & ~(unsigned int)KVPOOL_CONNECT_LATER)
		return -EINVAL;
	*ret = o;
	return 0;
}

static int handle_new(const struct kvpool_options *o, struct kvpool **ret)
{
	struct kvpool *p = aligned_alloc(64, ALIGN_UP(sizeof(*p), 64));
	const char *debug = secure_getenv("KVPOOL_DEBUG");
	int err = -ENOMEM;

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	p->max_leases = o->max_leases ? o->max_leases : LEASES_DEFAULT;
	p->timeout_ns = (o->timeout_ms ? o->timeout_ms : TIMEOUT_MS_DEFAULT) * NSEC_PER_MSEC;
	p->lease_map =
		calloc(ALIGN_UP(p->max_leases, LEASE_MAP_BITS) / LEASE_MAP_BITS, sizeof(uint64_t));
	if (p->lease_map)
		err = fork_page_new(&p->fork_page);
	if (!err && address_choose(o->socket, secure_getenv("KVPOOL_SOCKET"),
				   secure_getenv("XDG_RUNTIME_DIR"), &p->address) < 0)
		err = -EINVAL;
	if (err < 0) {
		free_memory(p);
		return err;
	}
	p->alive = p->fork_page;
	p->refs = 1;
	p->debug = debug && !strcmp(debug, "1");
	p->log = o->log;
	p->log_arg = o->log_arg;
	p->later = (o->flags & KVPOOL_CONNECT_LATER) != 0;
	p->link_error = -ENOTCONN;
	set_name(p, o->name);
	list_init(&p->namespaces);
	for (unsigned int i = 0; i < ATTACH_MAX; i++)
		attach_init(&p->attach[i]);
	init_locks(p);
	ops_init(p);
	*ret = p;
	return 0;
}

int kvpool_connect(const struct kvpool_options *options, struct kvpool **ret)
{
	struct kvpool_options o;
	struct kvpool *p;
	struct link l;
	int err = options_read(options, &o);

	if (!err)
		err = handle_new(&o, &p);
	if (err < 0)
		return err;
	if (!p->later && link_get(p, LINK_NOW, handle_deadline(p), &l) == 0)
		link_put(p, &l);
	*ret = p;
	return 0;
}

struct kvpool *kvpool_close(struct kvpool *p)
{
	if (!p)
		return NULL;
	link_close(p);
	if (!handle_is_forked(p))
		ops_close(p);
	handle_unref(p);
	return NULL;
}

enum kvpool_state kvpool_state(const struct kvpool *pool)
{
	struct kvpool *p = (struct kvpool *)pool;
	enum kvpool_state state;

	if (handle_is_forked(p))
		return KVPOOL_STALE_FORK;
	pthread_mutex_lock(&p->lock);
	state = p->rpc ? KVPOOL_CONNECTED : KVPOOL_DISCONNECTED;
	pthread_mutex_unlock(&p->lock);
	return state;
}

uint64_t kvpool_features(const struct kvpool *pool)
{
	struct kvpool *p = (struct kvpool *)pool;
	uint64_t features;

	if (handle_is_forked(p))
		return 0;
	pthread_mutex_lock(&p->lock);
	features = p->features;
	pthread_mutex_unlock(&p->lock);
	return features;
}

size_t kvpool_daemon_version(const struct kvpool *pool, char *buf, size_t n)
{
	struct kvpool *p = (struct kvpool *)pool;
	int length;

	if (handle_is_forked(p))
		return (size_t)snprintf(buf, n, "%s", "");
	pthread_mutex_lock(&p->lock);
	length = snprintf(buf, n, "%s", p->daemon);
	pthread_mutex_unlock(&p->lock);
	return (size_t)length;
}

int kvpool_reconnect(struct kvpool *p)
{
	struct link l;
	int err;

	if (handle_is_forked(p))
		return -ESTALE;
	err = link_get(p, LINK_NOW, handle_deadline(p), &l);
	if (!err)
		link_put(p, &l);
	return err;
}

int kvpool_ping(struct kvpool *p)
{
	Kvpool__Ping m = KVPOOL__PING__INIT;
	struct rpc_call call = { .op = OP_PING };
	uint64_t deadline;
	struct link l;
	int err;

	if (handle_is_forked(p))
		return -ESTALE;
	deadline = handle_deadline(p);
	err = link_get(p, LINK_PATIENT, deadline, &l);
	if (err < 0)
		return err;
	err = link_call(p, &l, "ping it", &call, &m.base, deadline);
	link_put(p, &l);
	return err;
}

size_t kvpool_error(const struct kvpool *pool, char *buf, size_t n)
{
	struct kvpool *p = (struct kvpool *)pool;
	int length;

	if (handle_is_forked(p))
		return (size_t)snprintf(
			buf, n, "%s",
			"this pool was opened by the parent process; open one of the "
			"child's own with kvpool_connect()");
	pthread_mutex_lock(&p->error_lock);
	length = snprintf(buf, n, "%s", p->error);
	pthread_mutex_unlock(&p->error_lock);
	return (size_t)length;
}
