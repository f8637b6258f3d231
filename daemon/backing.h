/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's memory, populated and punched in the background, in the worker.
 *
 * One job at a time, and one byte of state a granule, so nothing has to be allocated when the pool
 * asks and nothing can be lost. Punches go first. Populating goes in steps, so that a punch, a
 * probe or a checksum waits for milliseconds.
 */
#ifndef KVP_DAEMON_BACKING_H
#define KVP_DAEMON_BACKING_H

#include "daemon/hostmem.h"
#include "daemon/worker.h"

struct backing;

/*
 * memory: cut into granules; it stays its owner's. punched() is called from the loop for each range
 * that was given to backing_punch or backing_drop, when it is a hole; of huge pages (hugetlb) a
 * punched one is clear, and still there. Returns 0 or -errno.
 */
int backing_new(struct worker *w, const struct hostmem *memory,
		void (*punched)(void *ctx, uint64_t offset, uint64_t bytes), void *ctx,
		struct backing **ret);

/* After worker_free. Accepts NULL, returns NULL. */
struct backing *backing_free(struct backing *b);

/* Whole granules. A punch takes back what is not populated yet of its range. */
void backing_populate(struct backing *b, uint64_t offset, uint64_t bytes);
void backing_punch(struct backing *b, uint64_t offset, uint64_t bytes);
void backing_drop(struct backing *b, uint64_t offset, uint64_t bytes);

/* Bytes that are there, populated by whom ever. */
uint64_t backing_resident(const struct backing *b);

#endif
