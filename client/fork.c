/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>

#include "client/fork.h"

/* The kernel rounds up to whole pages, whatever their size. */
#define FORK_PAGE_BYTES 4096u

int fork_page_new(uint32_t **ret_page)
{
	uint32_t *page = mmap(NULL, FORK_PAGE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, FORK_PAGE_BYTES, MADV_WIPEONFORK) < 0) {
		munmap(page, FORK_PAGE_BYTES);
		return -ENOTSUP;
	}
	store_relaxed(page, 1);
	*ret_page = page;
	return 0;
}

uint32_t *fork_page_free(uint32_t *page)
{
	if (page)
		munmap(page, FORK_PAGE_BYTES);
	return NULL;
}
