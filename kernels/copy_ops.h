/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy kernels of one kind of processor, as a table.
 *
 * The tables are constants and the choice looks only at flags that the C runtime has read before
 * main(): no lazy initialisation, no lock, no system call, the same answer in every thread and at
 * every call.
 */
#ifndef KVP_KERNELS_COPY_OPS_H
#define KVP_KERNELS_COPY_OPS_H

#include <stddef.h>
#include <stdint.h>

/*
 * dst and src may have any alignment and n any value, 0 too; they must not overlap. The functions
 * that return a checksum load every byte of src once, and return the CRC32C of the bytes that they
 * stored.
 *
 * The stream functions go past the caches on the way to dst: faster when dst is in none of them
 * and will not be read soon, slower otherwise. Their stores are ordered by no release operation:
 * whoever publishes what they wrote calls drain() first.
 */
struct kvp_copy_ops {
	const char *name;
	uint32_t (*crc)(uint32_t crc, const void *data, size_t n); /* as crc32c() */
	uint32_t (*copy_crc)(void *dst, const void *src, size_t n);
	void (*stream)(void *dst, const void *src, size_t n);
	uint32_t (*stream_crc)(void *dst, const void *src, size_t n);
	void (*drain)(void);
};

/* The fastest table that this processor can run. Never NULL. */
const struct kvp_copy_ops *kvp_copy_ops_cpu(void);

/* The i-th table that this processor can run, the fastest first; NULL when there are no more. */
const struct kvp_copy_ops *kvp_copy_ops_nth(unsigned int i);

/*
 * The table of that name, for tests and measurements; NULL when there is none or this processor
 * can't run it.
 */
const struct kvp_copy_ops *kvp_copy_ops_by_name(const char *name);

/* All of them; only the first may be called without having asked what the processor can do. */
extern const struct kvp_copy_ops kvp_copy_ops_portable;
#ifdef __x86_64__
extern const struct kvp_copy_ops kvp_copy_ops_sse42;
extern const struct kvp_copy_ops kvp_copy_ops_avx2;
extern const struct kvp_copy_ops kvp_copy_ops_avx512;
#endif
#ifdef __aarch64__
extern const struct kvp_copy_ops kvp_copy_ops_armv8;
#endif

#endif
