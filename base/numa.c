/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/numa.h"

int numa_allowed(struct numa_nodes *ret)
{
	struct numa_nodes n = { .bits = { 0 } };
	int count = 0;

	/* The kernel takes the number of bits, and one more. */
	if (syscall(SYS_get_mempolicy, NULL, n.bits, NUMA_NODES_MAX + 1, NULL,
		    MPOL_F_MEMS_ALLOWED) < 0)
		return -errno;
	for (uint32_t node = 0; node < NUMA_NODES_MAX; node++)
		count += numa_has(&n, node);
	*ret = n;
	return count;
}

void numa_print(const struct numa_nodes *n, char *out, uint64_t size)
{
	uint64_t used = 0;

	*out = '\0';
	for (uint32_t a = 0; a < NUMA_NODES_MAX && used < size; a++) {
		uint32_t b = a;

		if (!numa_has(n, a))
			continue;
		while (numa_has(n, b + 1))
			b++;
		used += (uint64_t)snprintf(out + used, size - used, a == b ? "%s%u" : "%s%u-%u",
					   used ? "," : "", a, b);
		a = b;
	}
}

static int set_policy(void *base, uint64_t bytes, int mode, const struct numa_nodes *nodes)
{
	long r = syscall(SYS_mbind, base, bytes, mode, nodes ? nodes->bits : NULL,
			 nodes ? NUMA_NODES_MAX + 1 : 0, 0);

	return r < 0 ? -errno : 0;
}

int numa_interleave(void *base, uint64_t bytes, const struct numa_nodes *nodes)
{
	return set_policy(base, bytes, MPOL_INTERLEAVE, nodes);
}

int numa_bind(void *base, uint64_t bytes, uint32_t node)
{
	struct numa_nodes n = { .bits = { 0 } };
	const uint32_t width = 8 * sizeof(n.bits[0]);

	if (node >= NUMA_NODES_MAX)
		return -EINVAL;
	n.bits[node / width] = 1ul << node % width;
	return set_policy(base, bytes, MPOL_BIND, &n);
}

int numa_local(void *base, uint64_t bytes)
{
	return set_policy(base, bytes, MPOL_LOCAL, NULL);
}
