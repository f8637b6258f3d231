/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config_file.h"
#include "daemon/config_places.h"

/* Of /dev/null. */
#define NULL_DEVICE makedev(1, 3)

static void place_make(char out[PATH_MAX], const char *root, const char *path, const char *name)
{
	if (snprintf(out, PATH_MAX, "%s%s%s", root, path, name) >= PATH_MAX)
		out[0] = '\0';
}

void config_places_system(struct config_places *p, const char *root)
{
	memset(p, 0, sizeof(*p));
	place_make(p->folders[0], root, "/usr/lib/kvpool", "/kvpool.conf.d");
	place_make(p->file, root, "/etc/kvpool", "/kvpool.conf");
	place_make(p->folders[1], root, "/etc/kvpool", "/kvpool.conf.d");
	place_make(p->folders[2], root, "/run/kvpool", "/kvpool.conf.d");
}

void config_places_user(struct config_places *p, const char *root, const char *home)
{
	memset(p, 0, sizeof(*p));
	place_make(p->file, root, home, "/kvpool/kvpool.conf");
	place_make(p->folders[1], root, home, "/kvpool/kvpool.conf.d");
}

void config_places_file(struct config_places *p, const char *file)
{
	memset(p, 0, sizeof(*p));
	place_make(p->file, "", file, "");
	p->required = 1;
}

/* What has been read so far, and what for. */
struct reading {
	const struct config_places *places;
	uint64_t memory;
	struct settings *settings;
	struct complaints *wrong;
	unsigned int files;
};

static int reading_fail(struct reading *r, const char *path, const char *why)
{
	complaint_add(r->wrong, "%s: cannot be read: %s", path, why);
	return 0;
}

/* All of it, into memory of its own. */
static int read_text(int fd, size_t n, char **ret, size_t *ret_n)
{
	_cleanup_free_ char *text = malloc(n + 1);
	size_t used = 0;
	ssize_t got = 1;

	if (!text)
		return -ENOMEM;
	while (used < n && got > 0) {
		got = read(fd, text + used, n - used);
		if (got < 0)
			return -errno;
		used += (size_t)got;
	}
	*ret = TAKE_PTR(text);
	*ret_n = used;
	return 0;
}

static int read_open_file(struct reading *r, int fd, const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;
	int e;

	if (fstat(fd, &st) < 0)
		return reading_fail(r, path, strerrordesc_np(errno));
	if (S_ISCHR(st.st_mode) && st.st_rdev == NULL_DEVICE)
		return 0;
	if (!S_ISREG(st.st_mode))
		return reading_fail(r, path, "is no regular file");
	if (st.st_size > CONFIG_FILE_MAX)
		return reading_fail(r, path, "is larger than 1 MiB");
	e = read_text(fd, (size_t)st.st_size, &text, &n);
	if (e == -ENOMEM)
		return e;
	if (e < 0)
		return reading_fail(r, path, strerrordesc_np(-e));
	r->files++;
	return config_file_parse(text, n, path, r->memory, r->settings, r->wrong);
}

/* Returns 0 or -ENOMEM: what else goes wrong is a complaint. */
static int read_file(struct reading *r, const char *path, int required)
{
	/* Whatever is there must not keep us waiting. */
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0)
		return read_open_file(r, fd, path);
	if (errno == ENOENT && !required)
		return 0;
	return reading_fail(r, path, strerrordesc_np(errno));
}

/* Whether a folder of more weight has a file of that name, a link that leads nowhere included. */
static int is_hidden(const struct config_places *p, unsigned int folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	while (++folder < CONFIG_FOLDERS)
		if (p->folders[folder][0] &&
		    snprintf(path, sizeof(path), "%s/%s", p->folders[folder], name) < PATH_MAX &&
		    lstat(path, &st) == 0)
			return 1;
	return 0;
}

static int is_drop_in(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 5 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 5, ".conf");
}

/* In the order of bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_folder(struct reading *r, unsigned int folder)
{
	const char *dir = r->places->folders[folder];
	struct dirent **names = NULL;
	char path[PATH_MAX];
	int n, e = 0;

	if (!*dir)
		return 0;
	n = scandir(dir, &names, is_drop_in, by_name);
	if (n < 0 && errno == ENOMEM)
		return -ENOMEM;
	if (n < 0)
		return errno == ENOENT ? 0 : reading_fail(r, dir, strerrordesc_np(errno));
	for (int i = 0; i < n; i++) {
		if (e == 0 && !is_hidden(r->places, folder, names[i]->d_name) &&
		    snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) < PATH_MAX)
			e = read_file(r, path, 0);
		free(names[i]);
	}
	free(names);
	return e;
}

int config_places_read(const struct config_places *p, uint64_t memory, struct settings *settings,
		       struct complaints *wrong)
{
	struct reading r = { p, memory, settings, wrong, 0 };
	int e = read_folder(&r, 0);

	if (e == 0 && *p->file)
		e = read_file(&r, p->file, p->required);
	for (unsigned int i = 1; e == 0 && i < CONFIG_FOLDERS; i++)
		e = read_folder(&r, i);
	return e < 0 ? e : (int)r.files;
}
