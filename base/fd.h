/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors and sealed shared memory. Every descriptor made here is close-on-exec. */
#ifndef KVP_BASE_FD_H
#define KVP_BASE_FD_H

#include <stdint.h>

/*
 * Makes a memfd of size bytes, mode 0600, that can neither shrink nor grow. final: no more seals
 * can be added (a region that F_SEAL_WRITE probes later must be made with final = 0). Returns the
 * descriptor or -errno.
 */
int fd_memory(const char *name, uint64_t size, int final);

/*
 * The same of huge pages of 2 MiB out of those that the kernel holds ready (hugetlb), with all
 * seals. size: whole huge pages. They are not taken yet.
 */
int fd_memory_huge(const char *name, uint64_t size);

/* fallocate, until it is done: 0 populates a range. Returns 0 or -errno. */
int fd_allocate(int fd, int mode, uint64_t offset, uint64_t bytes);

/* Bytes of a file that are there; 0 when that is not to be had. */
uint64_t fd_resident(int fd);

/*
 * Opens the same file once more, O_RDONLY, through /proc/self/fd. Returns the descriptor or -errno.
 */
int fd_reopen_readonly(int fd);

/*
 * Checks that fd is memory that cannot change its size: sealed SHRINK and GROW and exactly size
 * bytes. Returns 0, or -errno: -EPERM without the seals, -EINVAL when it has another size.
 */
int fd_check_sealed(int fd, uint64_t size);

/*
 * Maps size bytes of fd shared, read-only or writable, with MADV_DONTDUMP, so that no core file
 * ever holds cached text. Returns 0 or -errno. fd_unmap accepts NULL and returns NULL.
 */
int fd_map(int fd, uint64_t size, int writable, void **ret_base);
void *fd_unmap(void *base, uint64_t size);

#endif
