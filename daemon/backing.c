/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/backing.h"
#include "daemon/log.h"

/* A step of populating: some 2 ms where pages have to be cleared. */
#define BACKING_STEP MIB(4)

enum granule_work {
	WORK_NONE = 0,
	WORK_POPULATE,
	WORK_PUNCH,      /* the first granule of a range */
	WORK_PUNCH_MORE, /* the others of it */
	WORK_PUNCHING,   /* the first one of the range that the worker has */
};

struct backing {
	struct worker *worker;
	int fd;
	unsigned int shift;
	uint32_t n_granules;
	unsigned char *work; /* for each granule, enum granule_work */
	uint32_t n_populate, n_punch; /* granules in WORK_POPULATE, ranges in WORK_PUNCH */
	uint32_t granule; /* that is being populated, n_granules: none */
	uint64_t filled;  /* how far */

	struct job job;
	int busy;
	/* What the worker does. It reads these, and writes error. */
	int mode; /* of fallocate */
	uint64_t offset, bytes;
	int error;

	void (*punched)(void *ctx, uint64_t offset, uint64_t bytes);
	void *ctx;
};

static void backing_run(struct job *j)
{
	struct backing *b = container_of(j, struct backing, job);
	int r;

	do
		r = fallocate(b->fd, b->mode, (off_t)b->offset, (off_t)b->bytes);
	while (r < 0 && errno == EINTR);
	b->error = r < 0 ? -errno : 0;
}

static void backing_submit(struct backing *b, int mode, uint64_t offset, uint64_t bytes)
{
	b->mode = mode;
	b->offset = offset;
	b->bytes = bytes;
	b->busy = 1;
	worker_submit(b->worker, &b->job);
}

static uint32_t backing_first(const struct backing *b, enum granule_work work)
{
	const unsigned char *at = memchr(b->work, work, b->n_granules);

	return at ? (uint32_t)(at - b->work) : b->n_granules;
}

static void backing_submit_punch(struct backing *b)
{
	uint32_t first = backing_first(b, WORK_PUNCH);
	uint32_t end = first + 1;

	while (end < b->n_granules && b->work[end] == WORK_PUNCH_MORE)
		end++;
	b->work[first] = WORK_PUNCHING;
	b->n_punch--;
	backing_submit(b, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (uint64_t)first << b->shift,
		       (uint64_t)(end - first) << b->shift);
}

static void backing_submit_populate(struct backing *b)
{
	uint64_t size = UINT64_C(1) << b->shift;

	if (b->granule == b->n_granules) {
		b->granule = backing_first(b, WORK_POPULATE);
		b->filled = 0;
	}
	backing_submit(b, 0, ((uint64_t)b->granule << b->shift) + b->filled,
		       MIN(BACKING_STEP, size - b->filled));
}

static void backing_next(struct backing *b)
{
	if (b->busy)
		return;
	if (b->n_punch)
		backing_submit_punch(b);
	else if (b->n_populate)
		backing_submit_populate(b);
}

static void backing_punch_done(struct backing *b)
{
	uint32_t first = (uint32_t)(b->offset >> b->shift);

	if (b->error < 0) {
		/* Never seen. Its bytes are not scrubbed, so it must not be handed out again. */
		log_line(LOG_ERR,
			 "cannot give memory of the pool back: this much of it stays unused",
			 LOG_NUMBER("bytes", b->bytes), LOG_ERRNO(b->error));
		return;
	}
	memset(b->work + first, WORK_NONE, b->bytes >> b->shift);
	b->punched(b->ctx, b->offset, b->bytes);
}

static void backing_populate_done(struct backing *b)
{
	/* It was given back meanwhile. */
	if (b->granule == b->n_granules)
		return;
	b->filled += b->bytes;
	if (b->error < 0)
		log_line(LOG_WARNING,
			 "cannot populate memory of the pool ahead: is it larger than the"
			 " memory limit of this service?",
			 LOG_NUMBER("offset", b->offset), LOG_ERRNO(b->error));
	if (b->error == 0 && b->filled < UINT64_C(1) << b->shift)
		return;
	b->work[b->granule] = WORK_NONE;
	b->granule = b->n_granules;
	b->n_populate--;
}

static void backing_done(struct job *j)
{
	struct backing *b = container_of(j, struct backing, job);

	b->busy = 0;
	if (b->mode)
		backing_punch_done(b);
	else
		backing_populate_done(b);
	backing_next(b);
}

int backing_new(struct worker *w, int fd, uint64_t bytes, unsigned int granule_shift,
		void (*punched)(void *ctx, uint64_t offset, uint64_t bytes), void *ctx,
		struct backing **ret)
{
	struct backing *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->worker = w;
	b->fd = fd;
	b->shift = granule_shift;
	b->n_granules = (uint32_t)(bytes >> granule_shift);
	b->granule = b->n_granules;
	b->job.run = backing_run;
	b->job.done = backing_done;
	b->punched = punched;
	b->ctx = ctx;
	b->work = calloc(b->n_granules, 1);
	if (!b->work) {
		backing_free(b);
		return -ENOMEM;
	}
	*ret = b;
	return 0;
}

struct backing *backing_free(struct backing *b)
{
	if (b)
		free(b->work);
	free(b);
	return NULL;
}

void backing_populate(struct backing *b, uint64_t offset, uint64_t bytes)
{
	for (uint64_t g = offset >> b->shift; g < (offset + bytes) >> b->shift; g++) {
		b->n_populate += b->work[g] == WORK_NONE;
		b->work[g] = WORK_POPULATE;
	}
	backing_next(b);
}

void backing_punch(struct backing *b, uint64_t offset, uint64_t bytes)
{
	uint64_t first = offset >> b->shift;

	for (uint64_t g = first; g < (offset + bytes) >> b->shift; g++) {
		b->n_populate -= b->work[g] == WORK_POPULATE;
		if (b->granule == g)
			b->granule = b->n_granules;
		b->work[g] = g == first ? WORK_PUNCH : WORK_PUNCH_MORE;
	}
	b->n_punch++;
	backing_next(b);
}

uint64_t backing_resident(const struct backing *b)
{
	struct stat st;

	return fstat(b->fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}
