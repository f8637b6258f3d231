/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/unit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"

#define CONTAINER_DIGITS 12 /* of a container's id, as its own tools print it */
#define ID_DIGITS	 64

static int has_suffix(const char *s, size_t n, const char *suffix)
{
	size_t m = strlen(suffix);

	return n > m && !memcmp(s + n - m, suffix, m);
}

/* True when n bytes are a container's id, alone or before ".scope". */
static int is_container_id(const char *s, size_t n)
{
	if (n < ID_DIGITS || (n > ID_DIGITS && s[ID_DIGITS] != '.'))
		return 0;
	for (size_t i = 0; i < ID_DIGITS; i++)
		if (!isxdigit((unsigned char)s[i]))
			return 0;
	return 1;
}

/* "docker-ID.scope", "libpod-ID.scope", "cri-containerd-ID.scope", or "ID" below "/docker/". */
static int read_container(const char *part, size_t n, char *buf)
{
	static const struct {
		const char *prefix, *name;
	} kinds[] = {
		{ "docker-", "docker" },
		{ "libpod-", "podman" },
		{ "cri-containerd-", "container" },
		{ "crio-", "container" },
		{ "", "container" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t skip = strlen(kinds[i].prefix);

		if (n >= skip && !memcmp(part, kinds[i].prefix, skip) &&
		    is_container_id(part + skip, n - skip)) {
			snprintf(buf, UNIT_BYTES, "%s:%.*s", kinds[i].name, CONTAINER_DIGITS,
				 part + skip);
			return 1;
		}
	}
	return 0;
}

static void copy_part(char *buf, const char *part, size_t n)
{
	n = MIN(n, UNIT_BYTES - 1);
	memcpy(buf, part, n);
	buf[n] = '\0';
}

int unit_of_path(const char *path, char buf[UNIT_BYTES])
{
	int found = 0;

	/* The innermost unit wins; but containers and users' managers stand for what is in them. */
	while (*path) {
		size_t n = strcspn(path, "/\n");

		if (read_container(path, n, buf))
			return 0;
		if (n > 5 && !memcmp(path, "user@", 5) && has_suffix(path, n, ".service")) {
			copy_part(buf, path, n - strlen(".service"));
			return 0;
		}
		if (has_suffix(path, n, ".service") || has_suffix(path, n, ".scope")) {
			copy_part(buf, path, n);
			found = 1;
		}
		path += n;
		if (*path != '/')
			break;
		path++;
	}
	return found ? 0 : -ENOENT;
}

int unit_of_pid(uint32_t pid, char buf[UNIT_BYTES])
{
	_cleanup_free_ char *line = NULL;
	char name[64];
	size_t room = 0;
	int r = -ENOENT;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%" PRIu32 "/cgroup", pid);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	/* hierarchy:controllers:path; systemd's own hierarchy is 0, or has its name. */
	while (r && getline(&line, &room, f) > 0) {
		char *path = strchr(line, '/');

		if (path && (!strncmp(line, "0::", 3) || strstr(line, ":name=systemd:")))
			r = unit_of_path(path, buf);
	}
	fclose(f);
	return r;
}
