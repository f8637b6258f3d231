/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* 2 MiB, in the flags of memfd_create: log2 from bit 26 on. */
#define FD_HUGE_2MB (21u << 26)

static int make_memory(const char *name, uint64_t size, int final, unsigned int flags)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | (final ? F_SEAL_SEAL : 0);
	_cleanup_fd_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	/*
	 * A memfd is born with mode 0777: without the fchmod another user reopens it writable
	 * through /proc.
	 */
	if (fd < 0 || fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, seals) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int fd_memory(const char *name, uint64_t size, int final)
{
	return make_memory(name, size, final, 0);
}

int fd_memory_huge(const char *name, uint64_t size)
{
	return make_memory(name, size, 1, MFD_HUGETLB | FD_HUGE_2MB);
}

int fd_allocate(int fd, int mode, uint64_t offset, uint64_t bytes)
{
	int r;

	do
		r = fallocate(fd, mode, (off_t)offset, (off_t)bytes);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

uint64_t fd_resident(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

int fd_reopen_readonly(int fd)
{
	char path[64];
	int ro;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? -errno : ro;
}

int fd_check_sealed(int fd, uint64_t size)
{
	int want = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((seals & want) != want)
		return -EPERM;
	return (uint64_t)st.st_size == size ? 0 : -EINVAL;
}

int fd_map(int fd, uint64_t size, int writable, void **ret_base)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *base = mmap(NULL, size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	if (madvise(base, size, MADV_DONTDUMP) < 0) {
		int r = -errno;

		munmap(base, size);
		return r;
	}
	*ret_base = base;
	return 0;
}

void *fd_unmap(void *base, uint64_t size)
{
	if (base)
		munmap(base, size);
	return NULL;
}
