/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "daemon/log.h"
#include "daemon/region.h"

#define REGION_PAUSE_MIN_NS (5 * NSEC_PER_MSEC)
#define REGION_PAUSE_MAX_NS NSEC_PER_SEC

/*
 * A probe that blocked is followed by a pause of that many times what it took, so that regions
 * whose pages somebody holds on purpose do not fill the worker.
 */
#define REGION_PAUSE_RATIO 64u

static int region_open_writable(int fd)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDWR | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

/* Through a writable mapping that is gone before anybody else has the descriptor. */
static int region_format(const struct region *r, uint64_t session, uint32_t hazards)
{
	void *base;
	int e = fd_map(r->fd, r->size, 1, &base);

	if (e < 0)
		return e;
	session_format(base, session, hazards, REGION_TOUCHES);
	fd_unmap(base, r->size);
	return 0;
}

static int region_open(struct region *r, uint32_t hazards)
{
	int e;

	r->fd = fd_memory("kvpool-session", r->size, 0);
	if (r->fd < 0)
		return r->fd;
	r->client_fd = region_open_writable(r->fd);
	if (r->client_fd < 0)
		return r->client_fd;
	r->read_fd = fd_reopen_readonly(r->fd);
	if (r->read_fd < 0)
		return r->read_fd;
	e = region_format(r, r->session, hazards);
	if (e < 0)
		return e;
	e = fd_map(r->read_fd, r->size, 0, &r->base);
	if (e < 0)
		return e;
	session_map_trusted(r->base, hazards, REGION_TOUCHES, &r->map);
	return 0;
}

static int region_on_timer(sd_event_source *s, uint64_t usec, void *ctx);

/* Made here, since later there is nobody to tell that it could not be made. */
static int region_add_timer(struct region *r, sd_event *event)
{
	int e = sd_event_add_time(event, &r->timer, CLOCK_BOOTTIME, 0, 1000, region_on_timer, r);

	return e < 0 ? e : sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
}

int region_new(sd_event *event, uint64_t session, uint32_t hazards, struct region **ret)
{
	struct region *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->fd = r->client_fd = r->read_fd = -1;
	list_init(&r->probe.link);
	r->session = session;
	r->size = session_size(hazards, REGION_TOUCHES);
	e = region_open(r, hazards);
	if (e == 0)
		e = region_add_timer(r, event);
	if (e < 0) {
		region_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

struct region *region_free(struct region *r)
{
	if (!r)
		return NULL;
	sd_event_source_disable_unref(r->timer);
	fd_unmap(r->base, r->size);
	close_fd(r->fd);
	close_fd(r->client_fd);
	close_fd(r->read_fd);
	free(r);
	return NULL;
}

/* 0 when no descriptor or mapping is left that was opened for writing, else 1 or -errno. */
static int region_try_lease(const struct region *r)
{
	if (fcntl(r->read_fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN ? 1 : -errno;
	/* Only the answer was wanted. Nobody is left who could open it for writing again. */
	(void)fcntl(r->read_fd, F_SETLEASE, F_UNLCK);
	return 0;
}

int region_try_seal(const struct region *r)
{
	int lease = region_try_lease(r);

	/* Cheap, and the usual end: the seal waits for pages that the kernel still has at hand. */
	if (lease == 0 || fcntl(r->fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
		return 0;
	if (errno == EBUSY)
		return 1;
	return errno == EPERM ? lease : -errno;
}

static void region_probe_run(struct job *j)
{
	struct region *r = container_of(j, struct region, probe);
	uint64_t begin = clock_ns();

	r->verdict = region_try_seal(r);
	r->took_ns = clock_ns() - begin;
}

static void region_probe(struct region *r)
{
	sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	r->hurry = 0;
	r->probing = 1;
	worker_submit(r->worker, &r->probe);
}

static int region_on_timer(sd_event_source *s, uint64_t usec, void *ctx)
{
	region_probe(ctx);
	return 0;
}

static void region_pause(struct region *r)
{
	uint64_t pause = MAX(r->pause_ns, r->took_ns * REGION_PAUSE_RATIO);

	r->pause_ns = MIN(r->pause_ns * 2, REGION_PAUSE_MAX_NS);
	(void)sd_event_source_set_time_relative(r->timer, pause / NSEC_PER_USEC);
	(void)sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static void region_tell(struct region *r)
{
	if (r->verdict < 0 && !r->told)
		log_line(LOG_WARNING,
			 "cannot tell whether anybody still reads: the pins of this session stay",
			 LOG_NUMBER("session", r->session), LOG_ERRNO(r->verdict));
	r->told = r->verdict < 0;
}

static void region_probe_done(struct job *j)
{
	struct region *r = container_of(j, struct region, probe);

	r->probing = 0;
	region_tell(r);
	if (r->verdict == 0)
		r->released(r->ctx); /* the region may be gone */
	else if (r->hurry)
		region_probe(r);
	else
		region_pause(r);
}

void region_drain(struct region *r, struct worker *worker, void (*released)(void *ctx), void *ctx)
{
	r->worker = worker;
	r->released = released;
	r->ctx = ctx;
	r->pause_ns = REGION_PAUSE_MIN_NS;
	r->probe.run = region_probe_run;
	r->probe.done = region_probe_done;
	r->client_fd = close_fd(r->client_fd);
	region_probe(r);
}

void region_hurry(struct region *r)
{
	r->pause_ns = REGION_PAUSE_MIN_NS;
	if (r->probing)
		r->hurry = 1; /* the one that runs may have looked too early */
	else
		region_probe(r);
}
