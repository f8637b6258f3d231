/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "daemon/backing.h"
#include "daemon/log.h"

/* A step of populating: some 2 ms where pages have to be cleared. */
#define BACKING_STEP MIB(4)

enum granule_work {
	WORK_NONE = 0,
	WORK_POPULATE,
	WORK_PUNCH,      /* the first granule of a range */
	WORK_DROP,       /* the same of one that does not come back */
	WORK_PUNCH_MORE, /* the others of it */
	WORK_PUNCHING,   /* the first one of the range that the worker has */
};

struct backing {
	struct worker *worker;
	const struct hostmem *memory;
	unsigned int shift;
	uint32_t n_granules;
	unsigned char *work; /* for each granule, enum granule_work */
	uint32_t n_populate, n_punch, n_drop; /* granules in WORK_POPULATE, ranges in the others */
	uint32_t granule; /* that is being populated, n_granules: none */
	uint64_t filled;  /* how far */

	struct job job;
	int busy;
	/* What the worker does. It reads these, and writes error. */
	enum granule_work doing; /* POPULATE, PUNCH or DROP */
	uint64_t offset, bytes;
	int error;

	void (*punched)(void *ctx, uint64_t offset, uint64_t bytes);
	void *ctx;
};

static int backing_do(const struct backing *b)
{
	if (b->doing == WORK_POPULATE)
		return hostmem_populate(b->memory, b->offset, b->bytes);
	if (b->doing == WORK_PUNCH && b->memory->pages == HOSTMEM_HUGETLB)
		return hostmem_clear(b->memory, b->offset, b->bytes);
	return hostmem_punch(b->memory, b->offset, b->bytes);
}

static void backing_run(struct job *j)
{
	struct backing *b = container_of(j, struct backing, job);

	b->error = backing_do(b);
}

static void backing_submit(struct backing *b, enum granule_work what, uint64_t offset,
			   uint64_t bytes)
{
	b->doing = what;
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

static void backing_submit_punch(struct backing *b, enum granule_work what)
{
	uint32_t first = backing_first(b, what);
	uint32_t end = first + 1;

	while (end < b->n_granules && b->work[end] == WORK_PUNCH_MORE)
		end++;
	b->work[first] = WORK_PUNCHING;
	backing_submit(b, what, (uint64_t)first << b->shift, (uint64_t)(end - first) << b->shift);
}

static void backing_submit_populate(struct backing *b)
{
	uint64_t size = UINT64_C(1) << b->shift;

	if (b->granule == b->n_granules) {
		b->granule = backing_first(b, WORK_POPULATE);
		b->filled = 0;
	}
	backing_submit(b, WORK_POPULATE, ((uint64_t)b->granule << b->shift) + b->filled,
		       MIN(BACKING_STEP, size - b->filled));
}

static void backing_next(struct backing *b)
{
	if (b->busy)
		return;
	if (b->n_punch) {
		b->n_punch--;
		backing_submit_punch(b, WORK_PUNCH);
	} else if (b->n_drop) {
		b->n_drop--;
		backing_submit_punch(b, WORK_DROP);
	} else if (b->n_populate) {
		backing_submit_populate(b);
	}
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
	if (b->doing != WORK_POPULATE)
		backing_punch_done(b);
	else
		backing_populate_done(b);
	backing_next(b);
}

int backing_new(struct worker *w, const struct hostmem *memory,
		void (*punched)(void *ctx, uint64_t offset, uint64_t bytes), void *ctx,
		struct backing **ret)
{
	struct backing *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->worker = w;
	b->memory = memory;
	b->shift = memory->granule_shift;
	b->n_granules = (uint32_t)(memory->max_bytes >> b->shift);
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

static void backing_queue(struct backing *b, uint64_t offset, uint64_t bytes,
			  enum granule_work what)
{
	uint64_t first = offset >> b->shift;

	for (uint64_t g = first; g < (offset + bytes) >> b->shift; g++) {
		b->n_populate -= b->work[g] == WORK_POPULATE;
		if (b->granule == g)
			b->granule = b->n_granules;
		b->work[g] = g == first ? what : WORK_PUNCH_MORE;
	}
	b->n_punch += what == WORK_PUNCH;
	b->n_drop += what == WORK_DROP;
	backing_next(b);
}

void backing_punch(struct backing *b, uint64_t offset, uint64_t bytes)
{
	backing_queue(b, offset, bytes, WORK_PUNCH);
}

void backing_drop(struct backing *b, uint64_t offset, uint64_t bytes)
{
	backing_queue(b, offset, bytes, WORK_DROP);
}

uint64_t backing_resident(const struct backing *b)
{
	return fd_resident(b->memory->fd);
}
