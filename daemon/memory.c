/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "daemon/memory.h"

#define MEMORY_LINE_BYTES (2 * PATH_MAX)

#define MEMORY_POOL_DEFAULT_MAX GIB(8)

static void fclose_ptr(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_fclose_ _cleanup_(fclose_ptr)

static FILE *memory_open(const char *root, const char *path)
{
	char full[MEMORY_LINE_BYTES];

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* A file with one number, or "max". UINT64_MAX when it sets no limit or is not there. */
static uint64_t memory_limit_file(const char *root, const char *dir, const char *name)
{
	char path[MEMORY_LINE_BYTES], line[64];
	const char *why;
	uint64_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return UINT64_MAX;

	_cleanup_fclose_ FILE *f = memory_open(root, path);

	if (!f || !fgets(line, sizeof(line), f))
		return UINT64_MAX;
	line[strcspn(line, "\n")] = '\0';
	/* 0 would be a group in which nothing can run. */
	return parse_count(line, 1, UINT64_MAX, &n, &why) < 0 ? UINT64_MAX : n;
}

/* The smallest limit from the group at path of a hierarchy mounted at mount, up to its root. */
static uint64_t memory_walk(const char *root, const char *mount, const char *path,
			    const char *const *files, size_t n_files)
{
	uint64_t limit = UINT64_MAX;
	char dir[MEMORY_LINE_BYTES];
	size_t top = strlen(mount);

	if (snprintf(dir, sizeof(dir), "%s%s", mount, path) >= (int)sizeof(dir))
		return limit;
	for (;;) {
		for (size_t i = 0; i < n_files; i++)
			limit = MIN(limit, memory_limit_file(root, dir, files[i]));
		if (strlen(dir) <= top)
			return limit;
		*strrchr(dir, '/') = '\0';
	}
}

/* A mount of a control group hierarchy: which group is its root, and where it is mounted. */
struct memory_mount {
	char group[PATH_MAX], at[PATH_MAX];
};

/*
 * Whether a line of mountinfo mounts the hierarchy: "36 35 98:0 GROUP AT options ... - TYPE SOURCE
 * SUPER". For version 1, SUPER names the controller.
 */
static int memory_mount_parse(const char *line, int v2, struct memory_mount *m)
{
	const char *tail = strstr(line, " - ");
	char type[32], super[512];

	if (!tail || sscanf(tail, " - %31s %*s %511s", type, super) != 2 ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", m->group, m->at) != 2)
		return 0;
	if (v2)
		return !strcmp(type, "cgroup2");
	return !strcmp(type, "cgroup") && strstr(super, "memory");
}

static int memory_mount_find(const char *root, int v2, struct memory_mount *m)
{
	_cleanup_fclose_ FILE *f = memory_open(root, "/proc/self/mountinfo");
	char line[MEMORY_LINE_BYTES];

	while (f && fgets(line, sizeof(line), f))
		if (memory_mount_parse(line, v2, m))
			return 1;
	return 0;
}

/*
 * The group's path below the mount. In a container the mount may show a part of the hierarchy only;
 * a group that is not in that part counts as the root of the mount.
 */
static const char *memory_below(const struct memory_mount *m, const char *path)
{
	size_t n = strlen(m->group);

	if (!strcmp(m->group, "/"))
		n = 0;
	if (strncmp(path, m->group, n) || (path[n] != '/' && path[n] != '\0') ||
	    strstr(path, "/../"))
		return "";
	return strcmp(path + n, "/") ? path + n : "";
}

/* One line of /proc/self/cgroup: "ID:CONTROLLERS:PATH"; version 2 has ID 0 and no controllers. */
static uint64_t memory_limit_group(const char *root, char *line)
{
	static const char *const v2_files[] = { "memory.max", "memory.high" };
	static const char *const v1_files[] = { "memory.limit_in_bytes" };
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	struct memory_mount m;
	int v2;

	if (!path)
		return UINT64_MAX;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	v2 = !strcmp(line, "0:");
	if ((!v2 && !strstr(controllers, "memory")) || !memory_mount_find(root, v2, &m))
		return UINT64_MAX;
	return memory_walk(root, m.at, memory_below(&m, path), v2 ? v2_files : v1_files,
			   v2 ? ARRAY_SIZE(v2_files) : ARRAY_SIZE(v1_files));
}

uint64_t memory_machine(const char *root)
{
	_cleanup_fclose_ FILE *f = memory_open(root, "/proc/meminfo");
	unsigned long long kib;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
			return KIB(kib);
	return 0;
}

uint64_t memory_available(const char *root)
{
	_cleanup_fclose_ FILE *f = memory_open(root, "/proc/self/cgroup");
	uint64_t bytes = memory_machine(root);
	char line[MEMORY_LINE_BYTES];

	while (f && fgets(line, sizeof(line), f)) {
		uint64_t limit = memory_limit_group(root, line);

		bytes = MIN(bytes, limit);
	}
	return bytes;
}

uint64_t memory_pool_default(uint64_t available)
{
	return MIN(available / 4, MEMORY_POOL_DEFAULT_MAX);
}
