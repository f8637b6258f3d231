/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a pool: how large, of which pages, on which nodes.
 *
 * Three kinds of pages:
 *
 *   hugetlb   2 MiB, out of those that the kernel holds ready (vm.nr_hugepages). All of them are
 *             taken before anybody is served, since whoever touches one that is not there and not
 *             to be had is killed. So such a pool does not grow, and what it gave back is gone.
 *   thp       transparent ones, where the kernel lets shared memory have them. They come as the
 *             daemon populates extents through its own mapping.
 *   4k        small ones.
 */
#ifndef KVP_DAEMON_HOSTMEM_H
#define KVP_DAEMON_HOSTMEM_H

#include "daemon/config.h"

enum hostmem_pages {
	HOSTMEM_4K,
	HOSTMEM_THP,
	HOSTMEM_HUGETLB,
};

struct hostmem {
	int fd;              /* of max_bytes, sealed */
	void *base;          /* read-only, and with the policy of the nodes */
	uint64_t pool_bytes; /* whole granules of what was asked for */
	uint64_t max_bytes;  /* how far the pool may grow */
	uint32_t granule_shift;
	enum hostmem_pages pages;
	/* Pages are made through base: by fallocate they would be of another size. */
	int populate_mapped;
	char numa[16]; /* "interleave", "node:1" */
};

struct hostmem_config {
	uint64_t pool_bytes, machine_bytes;
	enum config_huge_pages huge_pages;
	struct config_numa numa;
};

/*
 * Returns 0 or -errno. Where it is pages or nodes that are not to be had as they were asked for, it
 * was logged, in words, what is missing and where to get it.
 */
int hostmem_new(const struct hostmem_config *cfg, struct hostmem **ret);

/* Accepts NULL, returns NULL. */
struct hostmem *hostmem_free(struct hostmem *m);

/* "hugetlb", "thp" or "4k". */
const char *hostmem_pages_name(enum hostmem_pages p);

/*
 * Makes the pages of a range, if it can, and clears or gives back pages that are there. From any
 * thread. Return 0 or -errno.
 */
int hostmem_populate(const struct hostmem *m, uint64_t offset, uint64_t bytes);
int hostmem_clear(const struct hostmem *m, uint64_t offset, uint64_t bytes);
int hostmem_punch(const struct hostmem *m, uint64_t offset, uint64_t bytes);

#endif
