/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying blocks, with a checksum in the same pass or without.
 *
 * A copy that is larger than the caches would keep is stored past them (non-temporally); that is
 * decided by the size of the whole batch, so blocks that are copied together belong in one call.
 * When a call returns, a release store or a message of the caller publishes the bytes like those
 * of ordinary stores.
 *
 * No function allocates, locks or makes a system call; all may be called from any thread. dst and
 * src of a copy must not overlap; their alignment is of no matter, and n may be 0.
 */
#ifndef KVP_KERNELS_COPY_H
#define KVP_KERNELS_COPY_H

#include <stddef.h>
#include <stdint.h>

struct copy_run {
	void *dst;
	const void *src;
	size_t n;
	uint32_t crc; /* written by copy_crc_batch() */
};

void copy_plain(void *dst, const void *src, size_t n);

/*
 * Returns the CRC32C of the bytes that are now in dst: src is read once, so that holds even when
 * somebody writes to src meanwhile.
 */
uint32_t copy_crc(void *dst, const void *src, size_t n);

/* As copy_plain() for each run. */
void copy_plain_batch(const struct copy_run *runs, unsigned int count);

/* As copy_crc() for each run, the checksum in runs[i].crc. */
void copy_crc_batch(struct copy_run *runs, unsigned int count);

#endif
