/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits of control groups, version 1 and 2, read from a made-up /proc and /sys. */
#undef NDEBUG
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "daemon/memory.h"

static char root[64];

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT "41 32 0:37 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
#define V1_OTHER "40 32 0:36 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu\n"
#define ROOT_FS  "23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"

/* Writes a file below the made-up root, with the folders above it. */
static void put(const char *path, const char *text)
{
	char full[4096];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *c = full + strlen(root) + 1; (c = strchr(c, '/')); *c++ = '/') {
		*c = '\0';
		mkdir(full, 0700);
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/kvpool-memory-XXXXXX");
	assert_non_null(mkdtemp(root));
	put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\n");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void machine_alone(void **state)
{
	assert_int_equal(memory_available(root), GIB(16));
	put("/proc/self/cgroup", "0::/\n");
	put("/proc/self/mountinfo", ROOT_FS V2_MOUNT);
	assert_int_equal(memory_available(root), GIB(16));
}

static void nothing_known(void **state)
{
	put("/proc/meminfo", "nothing of that kind\n");
	assert_int_equal(memory_available(root), 0);
	assert_int_equal(memory_available("/there/is/no/such/place"), 0);
}

static void v2_own_limit(void **state)
{
	put("/proc/self/cgroup", "0::/system.slice/kvpoold.service\n");
	put("/proc/self/mountinfo", ROOT_FS V2_MOUNT);
	put("/sys/fs/cgroup/system.slice/kvpoold.service/memory.max", "4294967296\n");
	assert_int_equal(memory_available(root), GIB(4));
}

static void v2_limit_above(void **state)
{
	put("/proc/self/cgroup", "0::/a/b/c\n");
	put("/proc/self/mountinfo", ROOT_FS V2_MOUNT);
	put("/sys/fs/cgroup/a/memory.max", "2147483648\n");
	put("/sys/fs/cgroup/a/b/memory.max", "8589934592\n");
	put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
	assert_int_equal(memory_available(root), GIB(2));
}

/* Above it the kernel slows the group down until it is below again. */
static void v2_high(void **state)
{
	put("/proc/self/cgroup", "0::/a\n");
	put("/proc/self/mountinfo", ROOT_FS V2_MOUNT);
	put("/sys/fs/cgroup/a/memory.max", "8589934592\n");
	put("/sys/fs/cgroup/a/memory.high", "1073741824\n");
	assert_int_equal(memory_available(root), GIB(1));
}

static void v1(void **state)
{
	put("/proc/self/cgroup", "5:cpu:/x\n4:memory:/jobs/7\n0::/\n");
	put("/proc/self/mountinfo", ROOT_FS V1_OTHER V1_MOUNT);
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "3221225472\n");
	put("/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "9223372036854771712\n");
	/* Another controller's group of the same name has nothing to say. */
	put("/sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n");
	assert_int_equal(memory_available(root), GIB(3));
}

static void both_versions(void **state)
{
	put("/proc/self/cgroup", "4:memory:/m\n0::/u\n");
	put("/proc/self/mountinfo",
	    ROOT_FS V1_MOUNT "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "6442450944\n");
	put("/sys/fs/cgroup/unified/u/memory.max", "5368709120\n");
	assert_int_equal(memory_available(root), GIB(5));
}

/* A container sees its own group as the root of the mount, or as a part of the path. */
static void part_of_the_tree_is_mounted(void **state)
{
	put("/proc/self/cgroup", "0::/docker/abc/sub\n");
	put("/proc/self/mountinfo",
	    ROOT_FS "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	put("/sys/fs/cgroup/memory.max", "2147483648\n");
	put("/sys/fs/cgroup/sub/memory.max", "1073741824\n");
	assert_int_equal(memory_available(root), GIB(1));
	put("/proc/self/cgroup", "0::/docker/abc\n");
	assert_int_equal(memory_available(root), GIB(2));
	/* A name that only begins alike is another group. */
	put("/proc/self/cgroup", "0::/docker/abcdef/sub\n");
	assert_int_equal(memory_available(root), GIB(2));
	/* Outside of the namespace. */
	put("/proc/self/cgroup", "0::/../../elsewhere\n");
	assert_int_equal(memory_available(root), GIB(2));
}

static void nonsense_is_no_limit(void **state)
{
	put("/proc/self/cgroup", "no colons\n0:\n::\n0::/a\n");
	put("/proc/self/mountinfo", "short\n" ROOT_FS V2_MOUNT);
	put("/sys/fs/cgroup/a/memory.max", "\n");
	put("/sys/fs/cgroup/memory.max", "a lot\n");
	put("/sys/fs/cgroup/a/memory.high", "0\n");
	assert_int_equal(memory_available(root), GIB(16));
}

static void default_pool(void **state)
{
	assert_int_equal(memory_pool_default(GIB(16)), GIB(4));
	assert_int_equal(memory_pool_default(GIB(32)), GIB(8));
	assert_int_equal(memory_pool_default(GIB(1024)), GIB(8));
	assert_int_equal(memory_pool_default(0), 0);
}

int main(void)
{
#define WITH_ROOT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_ROOT(machine_alone),
		WITH_ROOT(nothing_known),
		WITH_ROOT(v2_own_limit),
		WITH_ROOT(v2_limit_above),
		WITH_ROOT(v2_high),
		WITH_ROOT(v1),
		WITH_ROOT(both_versions),
		WITH_ROOT(part_of_the_tree_is_mounted),
		WITH_ROOT(nonsense_is_no_limit),
		cmocka_unit_test(default_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
