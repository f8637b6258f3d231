/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this machine, or the control group that the daemon runs in, lets it have. */
#ifndef KVP_DAEMON_MEMORY_H
#define KVP_DAEMON_MEMORY_H

#include <stdint.h>

/*
 * The smallest of the machine's memory and the limits of the process's control groups, from its own
 * up to the root (memory.max and memory.high of version 2, memory.limit_in_bytes of version 1).
 * root is put before each path that is read: "" but in tests. 0 when not even the machine's memory
 * can be read.
 */
uint64_t memory_available(const char *root);

/* All memory of the machine; 0 when it can't be read. */
uint64_t memory_machine(const char *root);

/* The size of a pool that nobody gave a size: a quarter of available, at most 8 GiB. */
uint64_t memory_pool_default(uint64_t available);

#endif
