/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scoped cleanup: a variable declared with one of these gives its resource back when it leaves
 * scope.
 */
#ifndef KVP_BASE_CLEANUP_H
#define KVP_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Takes the value out of a variable, so that its scoped cleanup finds nothing to do. */
#define TAKE_PTR(p)                       \
	({                                \
		__typeof__(p) *pp_ = &(p); \
		__typeof__(p) v_ = *pp_;   \
		*pp_ = NULL;              \
		v_;                       \
	})

#define TAKE_FD(fd)             \
	({                      \
		int *fp_ = &(fd); \
		int v_ = *fp_;  \
		*fp_ = -1;      \
		v_;             \
	})

/* Closes fd when it is one, keeps errno, returns -1: fd = close_fd(fd). */
static inline int close_fd(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

static inline void close_fdp(int *fd)
{
	*fd = close_fd(*fd);
}

static inline void free_ptr(void *p)
{
	free(*(void **)p);
}

#define _cleanup_fd_   _cleanup_(close_fdp)
#define _cleanup_free_ _cleanup_(free_ptr)

#endif
