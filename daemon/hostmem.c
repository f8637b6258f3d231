/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "base/numa.h"
#include "base/parse.h"
#include "daemon/hostmem.h"
#include "daemon/log.h"
#include "daemon/pool.h"
#include "shm/granule.h"

#define HUGE_SHIFT 21u
#define HUGE_BYTES MIB(2)

#define HUGETLB_FOLDER "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define SHMEM_ENABLED  "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

/* Huge pages are taken in steps, and the service manager is told that it goes on. */
#define TAKE_STEP     GIB(1)
#define TAKE_PATIENCE (60 * USEC_PER_SEC)

#define USEC_PER_SEC UINT64_C(1000000)

const char *hostmem_pages_name(enum hostmem_pages p)
{
	static const char *const names[] = {
		[HOSTMEM_4K] = "4k",
		[HOSTMEM_THP] = "thp",
		[HOSTMEM_HUGETLB] = "hugetlb",
	};

	return names[p];
}

static int populate_mapped(const struct hostmem *m, uint64_t offset, uint64_t bytes)
{
	int r;

	do
		r = madvise((char *)m->base + offset, bytes, MADV_POPULATE_READ);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : 0;
}

int hostmem_populate(const struct hostmem *m, uint64_t offset, uint64_t bytes)
{
	int r = m->populate_mapped ? populate_mapped(m, offset, bytes) : -EINVAL;

	/* Before Linux 5.14 there is no such advice. */
	return r == -EINVAL ? fd_allocate(m->fd, 0, offset, bytes) : r;
}

int hostmem_punch(const struct hostmem *m, uint64_t offset, uint64_t bytes)
{
	return fd_allocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

int hostmem_clear(const struct hostmem *m, uint64_t offset, uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	memset(at, 0, bytes);
	munmap(at, bytes);
	return 0;
}

/* The daemon's mapping, through a descriptor that cannot write. reserve: with all its pages. */
static int map_memory(struct hostmem *m, int reserve)
{
	_cleanup_fd_ int fd = fd_reopen_readonly(m->fd);
	void *base;

	if (fd < 0)
		return fd;
	base = mmap(NULL, m->max_bytes, PROT_READ, MAP_SHARED | (reserve ? 0 : MAP_NORESERVE), fd,
		    0);
	if (base == MAP_FAILED)
		return -errno;
	m->base = base;
	return madvise(base, m->max_bytes, MADV_DONTDUMP) < 0 ? -errno : 0;
}

/* Nodes. */

static int no_node(const struct config_numa *n, int r)
{
	struct numa_nodes nodes;
	char list[128];

	if (numa_allowed(&nodes) < 0) {
		log_line(LOG_ERR, "host.numa: cannot ask for the memory nodes of this machine",
			 LOG_ERRNO(r));
		return r;
	}
	numa_print(&nodes, list, sizeof(list));
	log_line(LOG_ERR, "host.numa: cannot have memory of that node: take one of the others",
		 LOG_NUMBER("node", n->node), LOG_TEXT("nodes", list), LOG_ERRNO(r));
	return r;
}

static int place_on_node(struct hostmem *m, const struct config_numa *n)
{
	struct numa_nodes nodes;
	int r = numa_allowed(&nodes);

	if (r >= 0)
		r = numa_has(&nodes, n->node) ? numa_bind(m->base, m->max_bytes, n->node) : -ENODEV;
	if (r < 0)
		return no_node(n, r);
	snprintf(m->numa, sizeof(m->numa), "node:%u", n->node);
	return 0;
}

/* These two only make it faster: where they are not to be had, the kernel decides. */
static int try_policy(struct hostmem *m, const struct config_numa *n)
{
	struct numa_nodes nodes;
	int r = numa_allowed(&nodes);

	if (r > 1 && n->policy == CONFIG_NUMA_INTERLEAVE)
		r = numa_interleave(m->base, m->max_bytes, &nodes);
	else if (r > 1)
		r = numa_local(m->base, m->max_bytes);
	return r;
}

static int place(struct hostmem *m, const struct config_numa *n)
{
	const char *name = n->policy == CONFIG_NUMA_INTERLEAVE ? "interleave" : "local";
	int r;

	strcpy(m->numa, "off");
	if (n->policy == CONFIG_NUMA_OFF)
		return 0;
	if (n->policy == CONFIG_NUMA_NODE)
		return place_on_node(m, n);
	r = try_policy(m, n);
	if (r >= 0) {
		strcpy(m->numa, name);
		return 0;
	}
	log_line(LOG_WARNING, "host.numa: cannot tell the kernel on which nodes the pool shall lie",
		 LOG_TEXT("policy", name), LOG_ERRNO(r));
	return 0;
}

/* Pages that the kernel holds ready. */

static uint64_t read_number(const char *path)
{
	char text[32];
	const char *why;
	uint64_t n;
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return parse_count(text, 0, UINT64_MAX, &n, &why) < 0 ? 0 : n;
}

/* Not promised to anybody. */
static uint64_t huge_pages_free(void)
{
	uint64_t n_free = read_number(HUGETLB_FOLDER "free_hugepages");
	uint64_t promised = read_number(HUGETLB_FOLDER "resv_hugepages");

	return n_free > promised ? n_free - promised : 0;
}

static int take_pages(struct hostmem *m)
{
	for (uint64_t at = 0; at < m->max_bytes; at += TAKE_STEP) {
		int r = populate_mapped(m, at, MIN(TAKE_STEP, m->max_bytes - at));

		if (r < 0)
			return r;
		(void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, TAKE_PATIENCE);
	}
	return 0;
}

static void forget(struct hostmem *m)
{
	fd_unmap(m->base, m->max_bytes);
	m->base = NULL;
	close_fd(m->fd);
	m->fd = -1;
}

static int make_huge(struct hostmem *m, const struct hostmem_config *cfg)
{
	int r;

	m->pages = HOSTMEM_HUGETLB;
	m->populate_mapped = 1;
	m->fd = fd_memory_huge("kvpool-memory", m->max_bytes);
	if (m->fd < 0)
		return m->fd;
	r = map_memory(m, 1);
	if (r == 0)
		r = place(m, &cfg->numa);
	return r == 0 ? take_pages(m) : r;
}

static void say_too_few(uint64_t need, uint64_t n_free, int r)
{
	uint64_t all = read_number(HUGETLB_FOLDER "nr_hugepages");
	char text[256];

	snprintf(text, sizeof(text),
		 "host.huge_pages = always: the pool needs %" PRIu64
		 " huge pages of 2 MiB and %" PRIu64 " are free: write %" PRIu64
		 " into /proc/sys/vm/nr_hugepages (sysctl vm.nr_hugepages), "
		 "or set huge_pages to auto",
		 need, n_free, all + need - MIN(need, n_free));
	log_line(LOG_ERR, text, LOG_ERRNO(r));
}

/* 1: it is made. 0: it is not to be had, and need not. */
static int try_huge(struct hostmem *m, const struct hostmem_config *cfg)
{
	uint64_t need, n_free = huge_pages_free();
	int r = -ENOMEM;

	m->granule_shift = MAX(granule_shift_of(cfg->pool_bytes), HUGE_SHIFT);
	m->pool_bytes = cfg->pool_bytes >> m->granule_shift << m->granule_shift;
	m->max_bytes = m->pool_bytes;
	need = m->max_bytes / HUGE_BYTES;
	if (need && n_free >= need)
		r = make_huge(m, cfg);
	if (need && r == 0)
		return 1;
	forget(m);
	if (cfg->huge_pages == CONFIG_HUGE_ALWAYS) {
		say_too_few(MAX(need, UINT64_C(1)), n_free, r);
		return -ENODEV;
	}
	if (n_free)
		log_line(LOG_NOTICE,
			 "there are too few huge pages for the whole pool: none is used",
			 LOG_NUMBER("needed", need), LOG_NUMBER("free", n_free));
	return 0;
}

/* Others. */

/*
 * What the kernel makes of one touch of shared memory with that advice: the truth, where its
 * switches in /sys are many and have come and gone.
 */
static int touch_is_huge(int advice)
{
	_cleanup_fd_ int fd = fd_memory("kvpool-probe", 2 * HUGE_BYTES, 1);
	uint64_t resident;
	void *base;

	if (fd < 0 || fd_map(fd, 2 * HUGE_BYTES, 0, &base) < 0)
		return 0;
	if (advice)
		(void)madvise(base, 2 * HUGE_BYTES, advice);
	(void)*(volatile char *)ALIGN_UP((uintptr_t)base, HUGE_BYTES);
	resident = fd_resident(fd);
	fd_unmap(base, 2 * HUGE_BYTES);
	return resident >= HUGE_BYTES;
}

/* "always within_size advise [never] deny force": the one that is chosen. */
static void shmem_enabled(char out[32])
{
	char text[128] = "", *from, *end;
	_cleanup_fd_ int fd = open(SHMEM_ENABLED, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[MAX(got, 0)] = '\0';
	from = strchr(text, '[');
	end = from ? strchr(from, ']') : NULL;
	snprintf(out, 32, "%.*s", end ? (int)(end - from - 1) : 7, end ? from + 1 : "unknown");
}

static void choose_pages(struct hostmem *m, enum config_huge_pages wanted)
{
	char enabled[32];

	m->pages = HOSTMEM_4K;
	m->populate_mapped = 0;
	/* With smaller granules a page would reach into what is somebody else's, or nobody's. */
	if (wanted == CONFIG_HUGE_NEVER || m->granule_shift < HUGE_SHIFT) {
		m->populate_mapped = touch_is_huge(0);
		return;
	}
	if (touch_is_huge(MADV_HUGEPAGE)) {
		m->pages = HOSTMEM_THP;
		m->populate_mapped = 1;
		return;
	}
	shmem_enabled(enabled);
	log_line(LOG_INFO,
		 "the pool has pages of 4 KiB: for huge ones write advise into " SHMEM_ENABLED,
		 LOG_TEXT("now", enabled));
}

static int make_plain(struct hostmem *m, const struct hostmem_config *cfg)
{
	int r;

	m->granule_shift = granule_shift_of(cfg->pool_bytes);
	m->pool_bytes = cfg->pool_bytes >> m->granule_shift << m->granule_shift;
	m->max_bytes = pool_max_bytes(m->pool_bytes, m->granule_shift, cfg->machine_bytes);
	if (!m->pool_bytes)
		return -EINVAL;
	m->fd = fd_memory("kvpool-memory", m->max_bytes, 1);
	if (m->fd < 0)
		return m->fd;
	r = map_memory(m, 0);
	if (r < 0)
		return r;
	choose_pages(m, cfg->huge_pages);
	if (m->populate_mapped)
		(void)madvise(m->base, m->max_bytes,
			      m->pages == HOSTMEM_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return place(m, &cfg->numa);
}

int hostmem_new(const struct hostmem_config *cfg, struct hostmem **ret)
{
	struct hostmem *m = calloc(1, sizeof(*m));
	int r = 0;

	if (!m)
		return -ENOMEM;
	m->fd = -1;
	if (cfg->huge_pages != CONFIG_HUGE_NEVER)
		r = try_huge(m, cfg);
	if (r == 0)
		r = make_plain(m, cfg);
	if (r < 0) {
		hostmem_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct hostmem *hostmem_free(struct hostmem *m)
{
	if (!m)
		return NULL;
	forget(m);
	free(m);
	return NULL;
}
