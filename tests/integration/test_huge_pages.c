/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of huge pages, on a machine that gives them: needs root, and puts back what it changes,
 * also when it fails.
 *
 *	test_huge_pages hugetlb | too_few | transparent
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"

#define NR_HUGEPAGES  "/proc/sys/vm/nr_hugepages"
#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

#define SKIP  77
#define PAGES 40ul /* 32 for the pool */
#define POOL  MIB(64)
#define BLOCK 65536u
#define DEPTH 24u

static int read_text(const char *path, char *out, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, out, n - 1);

	close(fd);
	out[got > 0 ? got : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return got > 0 ? 0 : -1;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	close(fd);
	return r;
}

static unsigned long meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long n = 0, value;
	char key[64];

	assert(f);
	while (fscanf(f, "%63s %lu%*[^\n]", key, &value) == 2)
		if (!strncmp(key, name, strlen(name)) && key[strlen(name)] == ':')
			n = value;
	fclose(f);
	return n;
}

static int skip(const char *why)
{
	printf("skipped: %s\n", why);
	return SKIP;
}

/* Writes and reads some chains through the pool; what is read is right. */
static void use_pool(const struct daemon *d, uint64_t from, uint64_t chains)
{
	struct kvpool *pool = pattern_connect(d->socket, "huge");
	struct kvpool_ns *ns = pattern_ns(pool, "huge", BLOCK);
	struct kvpool_lease *lease;

	assert(kvpool_lease_new(pool, DEPTH, &lease) == 0);
	for (uint64_t c = from; c < from + chains; c++) {
		assert(pattern_publish(ns, c, DEPTH) == DEPTH);
		assert(pattern_acquire(ns, lease, c, DEPTH) == DEPTH);
	}
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
}

static int hugetlb(void)
{
	static const char *const args[] = { "--host.huge_pages", "always", NULL };
	struct daemon d;
	const Kvpool__StatusReply *s;
	char want[24];
	unsigned long n_free;

	snprintf(want, sizeof(want), "%lu", PAGES + meminfo("HugePages_Total"));
	if (write_text(NR_HUGEPAGES, want) < 0 || meminfo("HugePages_Free") < PAGES)
		return skip("cannot have 40 huge pages (" NR_HUGEPAGES ")");
	n_free = meminfo("HugePages_Free");
	assert(daemon_start(&d, args) == 0);
	s = admin_status(&d);
	assert(!strcmp(s->huge_pages, "hugetlb") && !strcmp(s->page_size, "2 MiB"));
	assert(s->pool_resident_bytes == POOL && s->pool_max_bytes == POOL);
	assert(meminfo("HugePages_Free") == n_free - POOL / MIB(2));
	use_pool(&d, 0, 60); /* more than it has room for */
	/* What goes back is cleared, and there. */
	admin_flush(&d);
	assert(admin_status(&d)->pool_resident_bytes == POOL);
	use_pool(&d, 100, 20);
	admin_resize(&d, POOL / 4, 0);
	admin_wait_excess(&d, 0);
	s = admin_status(&d);
	assert(s->pool_resident_bytes == POOL / 4 && s->pool_max_bytes == POOL / 4);
	assert(meminfo("HugePages_Free") == n_free - POOL / 4 / MIB(2));
	use_pool(&d, 200, 20);
	assert(admin_status(&d)->pool_resident_bytes == POOL / 4);
	assert(daemon_end(&d) == 0);
	assert(meminfo("HugePages_Free") == n_free);
	return 0;
}

/* All of them or none. */
static int too_few(void)
{
	static const char *const args[] = { "--host.huge_pages", "always", "--pool-size", "1T",
					    NULL };
	struct daemon d;

	assert(daemon_start(&d, args) < 0);
	return 0;
}

static int transparent(void)
{
	static const char *const args[] = { "--pool-size", "256M", NULL };
	static const char *const never[] = { "--pool-size", "256M", "--host.huge_pages", "never",
					     NULL };
	unsigned long before;
	struct daemon d;

	if (write_text(SHMEM_ENABLED, "advise") < 0)
		return skip("cannot let shared memory have huge pages (" SHMEM_ENABLED ")");
	before = meminfo("ShmemHugePages");
	assert(daemon_start(&d, args) == 0);
	if (strcmp(admin_status(&d)->huge_pages, "thp")) {
		daemon_end(&d);
		return skip("the kernel gives shared memory no huge pages");
	}
	use_pool(&d, 0, 60);
	assert(meminfo("ShmemHugePages") > before);
	assert(daemon_stop(&d) == 0 && daemon_again(&d, never) == 0);
	assert(!strcmp(admin_status(&d)->huge_pages, "4k"));
	before = meminfo("ShmemHugePages");
	use_pool(&d, 0, 60);
	assert(meminfo("ShmemHugePages") == before);
	assert(daemon_end(&d) == 0);
	return 0;
}

static int run(const char *row)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(row, "hugetlb"))
		return hugetlb();
	if (!strcmp(row, "too_few"))
		return too_few();
	assert(!strcmp(row, "transparent"));
	return transparent();
}

static pid_t child;

static void pass_on(int sig)
{
	kill(child, SIGKILL);
}

/* "always within_size advise [never] deny force": the one that is chosen. */
static void chosen(char *text)
{
	char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL;

	if (to) {
		*to = '\0';
		memmove(text, from + 1, strlen(from));
	}
}

int main(int argc, char **argv)
{
	char pages[64], enabled[128];
	int status, have_pages, have_enabled;

	assert(argc == 2);
	if (geteuid() != 0)
		return skip("needs root");
	have_pages = read_text(NR_HUGEPAGES, pages, sizeof(pages)) == 0;
	have_enabled = read_text(SHMEM_ENABLED, enabled, sizeof(enabled)) == 0;
	chosen(enabled);
	fflush(stdout);
	child = fork();
	if (child == 0)
		exit(run(argv[1]));
	(void)signal(SIGTERM, pass_on);
	(void)signal(SIGINT, pass_on);
	while (waitpid(child, &status, 0) < 0)
		assert(errno == EINTR);
	if (have_pages)
		(void)write_text(NR_HUGEPAGES, pages);
	if (have_enabled)
		(void)write_text(SHMEM_ENABLED, enabled);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
