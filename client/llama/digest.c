/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "client/llama/digest.h"

#define READ_BYTES  MIB(1)
#define SPLITS_MAX  1024u
#define RECENT_SECS 2 /* a file changed so lately may change again without another time stamp */

#define ENTRY_FORMAT "kvpool-digest-1 %" PRId64 " %" PRId64 ".%09ld %" PRId64 ".%09ld "

static void md_ctx_free(EVP_MD_CTX **p)
{
	EVP_MD_CTX_free(*p);
}

/* Not mapped: a file that is cut off meanwhile would raise SIGBUS. */
static int hash_fd(int fd, uint8_t *ret)
{
	_cleanup_(md_ctx_free) EVP_MD_CTX *md = EVP_MD_CTX_new();
	_cleanup_free_ uint8_t *buf = malloc(READ_BYTES);
	ssize_t n;

	if (!md || !buf || !EVP_DigestInit_ex(md, EVP_sha256(), NULL))
		return -ENOMEM;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	while ((n = read(fd, buf, READ_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!EVP_DigestUpdate(md, buf, (size_t)n))
			return -EIO;
	}
	return EVP_DigestFinal_ex(md, ret, NULL) ? 0 : -EIO;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/*
 * Makes a folder that only the user can enter. An existing one must be the user's and closed to
 * other writers.
 */
static int enter(int parent, const char *name)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return -EPERM;
	return TAKE_FD(fd);
}

/* The folder of the cache, or -errno. */
static int open_cache(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	_cleanup_fd_ int root = -1, kvpool = -1;

	/*
	 * The user's own variables must not lead a program with borrowed rights into a folder of
	 * the user's choice.
	 */
	if (geteuid() != getuid() || getegid() != getgid())
		return -EPERM;
	if (xdg && xdg[0] == '/') {
		root = open(xdg, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	} else if (home && home[0] == '/') {
		_cleanup_fd_ int h = open(home, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

		root = h < 0 ? -1 : enter(h, ".cache");
	}
	if (root < 0)
		return -ENOENT;
	kvpool = enter(root, "kvpool");
	return kvpool < 0 ? kvpool : enter(kvpool, "digests");
}

/* What a cache entry must begin with to speak of this very state of the file. */
static void entry_head(const struct stat *st, char *buf, size_t n)
{
	snprintf(buf, n, ENTRY_FORMAT, (int64_t)st->st_size, (int64_t)st->st_mtim.tv_sec,
		 st->st_mtim.tv_nsec, (int64_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static void entry_name(const struct stat *st, char *buf, size_t n)
{
	snprintf(buf, n, "%" PRIx64 "-%" PRIx64, (uint64_t)st->st_dev, (uint64_t)st->st_ino);
}

static int cache_lookup(int dir, const struct stat *st, uint8_t *ret)
{
	char name[64], head[160], text[256];
	_cleanup_fd_ int fd = -1;
	uint8_t digest[DIGEST_BYTES];
	size_t len;
	ssize_t n;

	entry_name(st, name, sizeof(name));
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	entry_head(st, head, sizeof(head));
	len = strlen(head);
	if ((size_t)n != len + 2 * DIGEST_BYTES + 1 || memcmp(text, head, len) != 0 ||
	    text[n - 1] != '\n')
		return -ENOENT;
	text[n - 1] = '\0';
	if (hex_decode(text + len, digest, DIGEST_BYTES) < 0)
		return -ENOENT;
	memcpy(ret, digest, DIGEST_BYTES);
	return 0;
}

/* Failures are of no interest: the next run hashes again. */
static void cache_store(int dir, const struct stat *st, const uint8_t *digest)
{
	char name[64], part[96], text[256];
	_cleanup_fd_ int fd = -1;
	size_t len;

	entry_name(st, name, sizeof(name));
	snprintf(part, sizeof(part), ".%s.%ld", name, (long)getpid());
	entry_head(st, text, sizeof(text));
	len = strlen(text);
	hex_encode(digest, DIGEST_BYTES, text + len);
	len += 2 * DIGEST_BYTES;
	text[len++] = '\n';
	fd = openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (write(fd, text, len) != (ssize_t)len || renameat(dir, part, dir, name) < 0)
		unlinkat(dir, part, 0);
}

static bool is_recent(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return st->st_ctim.tv_sec + RECENT_SECS >= now.tv_sec;
}

int digest_file(const char *path, uint8_t ret[DIGEST_BYTES])
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_fd_ int cache = -1;
	uint8_t digest[DIGEST_BYTES];
	struct stat before, after;
	int r;

	if (fd < 0 || fstat(fd, &before) < 0)
		return -errno;
	if (!S_ISREG(before.st_mode))
		return S_ISDIR(before.st_mode) ? -EISDIR : -EINVAL;
	cache = open_cache();
	if (cache >= 0 && cache_lookup(cache, &before, ret) == 0)
		return 0;
	r = hash_fd(fd, digest);
	if (r < 0)
		return r;
	if (fstat(fd, &after) < 0)
		return -errno;
	if (!same_file(&before, &after))
		return -EBUSY;
	if (cache >= 0 && !is_recent(&after))
		cache_store(cache, &after, digest);
	memcpy(ret, digest, DIGEST_BYTES);
	return 0;
}

/* How many files the name says that the model is split into; 0 when it is one file. */
static unsigned int count_splits(const char *path, size_t *ret_stem)
{
	static const char tail[] = "-00001-of-00001.gguf";
	size_t len = strlen(path), at = len - (sizeof(tail) - 1);
	unsigned int n;
	int end = 0;

	if (len < sizeof(tail) || strspn(path + at + 10, "0123456789") != 5)
		return 0;
	if (sscanf(path + at, "-00001-of-%5u.gguf%n", &n, &end) != 1 || path[at + (size_t)end] ||
	    !end)
		return 0;
	*ret_stem = at;
	return n;
}

int digest_model(const char *path, uint8_t ret[DIGEST_BYTES])
{
	size_t stem = 0;
	unsigned int n = count_splits(path, &stem);
	_cleanup_free_ uint8_t *all = NULL;
	char name[PATH_MAX];

	if (n < 2)
		return digest_file(path, ret);
	if (n > SPLITS_MAX || stem + 32 > sizeof(name))
		return -EINVAL;
	all = malloc((size_t)n * DIGEST_BYTES);
	if (!all)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		int r;

		snprintf(name, sizeof(name), "%.*s-%05u-of-%05u.gguf", (int)stem, path, i + 1, n);
		r = digest_file(name, all + (size_t)i * DIGEST_BYTES);
		if (r < 0)
			return r;
	}
	sha256(all, (size_t)n * DIGEST_BYTES, ret);
	return 0;
}
