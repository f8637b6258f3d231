/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked with --wrap=read: the reads of the code under test are counted, and one of them can change
 * the file that is being read.
 */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "client/llama/digest.h"

#define FILE_BYTES 300000

static char folder[] = "/tmp/kvpool-digest-XXXXXX";
static char path[128], cache[128];
static size_t read_bytes;
static const char *touch_at_read; /* a file to append a byte to at the next read */

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);

static void append(const char *name, char byte)
{
	int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &byte, 1), 1);
	close(fd);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	ssize_t r = __real_read(fd, buf, n);

	if (r > 0)
		read_bytes += (size_t)r;
	if (touch_at_read)
		append(touch_at_read, 'x');
	touch_at_read = NULL;
	return r;
}

static void write_file(const char *name, const void *data, size_t n)
{
	FILE *f = fopen(name, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Files that were changed just now are not cached: their next change could have the same time. */
static void make_old(const char *name)
{
	struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1700000000, .tv_nsec = 5}};

	assert_int_equal(utimensat(AT_FDCWD, name, t, 0), 0);
	sleep(3);
}

static uint8_t content[FILE_BYTES];
static uint8_t expected[32];

static int setup(void **unused)
{
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/model.gguf", folder);
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	assert_int_equal(mkdir(cache, 0700), 0);
	setenv("XDG_CACHE_HOME", cache, 1);
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 31 >> 3);
	sha256(content, sizeof(content), expected);
	write_file(path, content, sizeof(content));
	make_old(path);
	return 0;
}

static int teardown(void **unused)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void expect_read(bool whole)
{
	uint8_t digest[32] = {0};

	read_bytes = 0;
	assert_int_equal(digest_file(path, digest), 0);
	assert_memory_equal(digest, expected, 32);
	if (whole)
		assert_true(read_bytes >= FILE_BYTES);
	else
		assert_true(read_bytes < 1000);
}

static void entry_path(char *buf, size_t n)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	snprintf(buf, n, "%s/kvpool/digests/%lx-%lx", cache, (unsigned long)st.st_dev,
		 (unsigned long)st.st_ino);
}

static void test_known_digest(void **unused)
{
	char name[PATH_MAX], hex[65];
	uint8_t digest[32];

	snprintf(name, sizeof(name), "%s/abc", folder);
	write_file(name, "abc", 3);
	assert_int_equal(digest_file(name, digest), 0);
	hex_encode(digest, 32, hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_reads_once(void **unused)
{
	struct stat st;
	char entry[PATH_MAX];

	expect_read(true);
	expect_read(false);
	entry_path(entry, sizeof(entry));
	assert_int_equal(stat(entry, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	*strrchr(entry, '/') = '\0';
	assert_int_equal(stat(entry, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

static void test_damaged_entries_are_ignored(void **unused)
{
	char entry[PATH_MAX], text[256] = {0};
	size_t n;
	FILE *f;

	expect_read(true);
	entry_path(entry, sizeof(entry));
	f = fopen(entry, "rb");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	for (size_t i = 0; i < n; i++) {
		char was = text[i];

		text[i] = '?';
		write_file(entry, text, n);
		text[i] = was;
		expect_read(true);
	}
	for (size_t cut = 0; cut < n; cut += 7) {
		write_file(entry, text, cut);
		expect_read(true);
	}
	expect_read(false);
}

static void test_open_folder_is_not_trusted(void **unused)
{
	char name[PATH_MAX];

	expect_read(true);
	snprintf(name, sizeof(name), "%s/kvpool/digests", cache);
	assert_int_equal(chmod(name, 0777), 0);
	expect_read(true);
	assert_int_equal(chmod(name, 0700), 0);
	expect_read(false);
}

static void test_works_without_a_cache(void **unused)
{
	setenv("XDG_CACHE_HOME", "/nonexistent", 1);
	expect_read(true);
	expect_read(true);
	setenv("XDG_CACHE_HOME", "not/absolute", 1);
	setenv("HOME", folder, 1);
	expect_read(true);
	expect_read(false);
	setenv("XDG_CACHE_HOME", cache, 1);
}

/* Same size, same modification time: the change time tells. */
static void test_sees_a_change(void **unused)
{
	struct timespec t[2];
	uint8_t digest[32];
	struct stat st;
	int fd;

	expect_read(true);
	expect_read(false);
	assert_int_equal(stat(path, &st), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "!", 1, 1000), 1);
	close(fd);
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
	assert_int_equal(digest_file(path, digest), 0);
	assert_memory_not_equal(digest, expected, 32);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &content[1000], 1, 1000), 1);
	close(fd);
	expect_read(true);
	expect_read(true); /* changed just now: not cached */
}

static void test_refuses_a_file_that_is_being_written(void **unused)
{
	uint8_t digest[32];
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s/growing", folder);
	write_file(name, content, sizeof(content));
	touch_at_read = name;
	assert_int_equal(digest_file(name, digest), -EBUSY);
	assert_int_equal(digest_file(name, digest), 0);
}

static void test_refuses_what_is_no_file(void **unused)
{
	uint8_t digest[32];
	char name[PATH_MAX];

	assert_int_equal(digest_file(folder, digest), -EISDIR);
	assert_int_equal(digest_file("/nonexistent", digest), -ENOENT);
	snprintf(name, sizeof(name), "%s/fifo", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(digest_file(name, digest), -EINVAL);
}

static void test_split_models(void **unused)
{
	uint8_t all[96], want[32], digest[32];
	char name[PATH_MAX], byte;

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s/big-%05d-of-00003.gguf", folder, i + 1);
		byte = (char)('a' + i);
		write_file(name, &byte, 1);
		sha256(&byte, 1, all + 32 * i);
	}
	sha256(all, sizeof(all), want);
	snprintf(name, sizeof(name), "%s/big-00001-of-00003.gguf", folder);
	assert_int_equal(digest_model(name, digest), 0);
	assert_memory_equal(digest, want, 32);
	unlink(name);
	assert_int_equal(digest_model(name, digest), -ENOENT);
	assert_int_equal(digest_model(path, digest), 0);
	assert_memory_equal(digest, expected, 32);
	snprintf(name, sizeof(name), "%s/one-00001-of-00001.gguf", folder);
	write_file(name, "abc", 3);
	assert_int_equal(digest_model(name, digest), 0);
	sha256("abc", 3, want);
	assert_memory_equal(digest, want, 32);
}

/* Each test starts without a cache. */
static int forget(void **unused)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s/kvpool' '%s/.cache'", cache, folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_known_digest, forget),
		cmocka_unit_test_setup(test_reads_once, forget),
		cmocka_unit_test_setup(test_damaged_entries_are_ignored, forget),
		cmocka_unit_test_setup(test_open_folder_is_not_trusted, forget),
		cmocka_unit_test_setup(test_works_without_a_cache, forget),
		cmocka_unit_test_setup(test_refuses_a_file_that_is_being_written, forget),
		cmocka_unit_test_setup(test_refuses_what_is_no_file, forget),
		cmocka_unit_test_setup(test_split_models, forget),
		cmocka_unit_test_setup(test_sees_a_change,
				       forget), /* last: the file is new after it */
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
