/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"

int fd_memory(const char *name, uint64_t size, int final)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | (final ? F_SEAL_SEAL : 0);
	_cleanup_fd_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/*
	 * A memfd is born with mode 0777: without the fchmod another user reopens it writable
	 * through /proc.
	 */
	if (fd < 0 || fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, seals) < 0)
		return -errno;
	return TAKE_FD(fd);
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
