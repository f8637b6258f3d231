/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which memory nodes pages lie: the system calls, without libnuma.
 *
 * A policy that is set on a mapping of a memfd holds for all pages of that range that are made
 * later, by whomever (hugetlb: by this mapping only).
 */
#ifndef KVP_BASE_NUMA_H
#define KVP_BASE_NUMA_H

#include <stdint.h>

#define NUMA_NODES_MAX 1024u

struct numa_nodes {
	unsigned long bits[NUMA_NODES_MAX / (8 * sizeof(unsigned long))];
};

/* The nodes that this process may have memory of. Returns how many, or -errno. */
int numa_allowed(struct numa_nodes *ret);

static inline int numa_has(const struct numa_nodes *n, uint32_t node)
{
	const uint32_t width = 8 * sizeof(n->bits[0]);

	return node < NUMA_NODES_MAX && n->bits[node / width] >> node % width & 1;
}

/* "0-1,3" */
void numa_print(const struct numa_nodes *n, char *out, uint64_t size);

/* Evenly on all of them; on that one only; on that of the processor that is first to need it. */
int numa_interleave(void *base, uint64_t bytes, const struct numa_nodes *nodes);
int numa_bind(void *base, uint64_t bytes, uint32_t node);
int numa_local(void *base, uint64_t bytes);

#endif
