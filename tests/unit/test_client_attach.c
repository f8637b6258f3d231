/* SPDX-License-Identifier: Apache-2.0 */
/* Attachments: what is mapped and what is refused, and counts from many threads. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "client/attach.h"

#define POOL_BYTES  (UINT64_C(16) << 16)
#define ROUNDS      300
#define THREADS     4

static struct attach_offer offer;

static int setup(void **state)
{
	struct control_config cfg = {
		.pool_bytes = POOL_BYTES,
		.max_blocks = 256,
		.max_namespaces = 4,
		.granule_shift = 16,
	};
	void *base;

	offer.control_bytes = control_size(&cfg);
	offer.pool_bytes = POOL_BYTES;
	offer.region_bytes = session_size(8, 16);
	offer.pool_writable = 1;
	offer.control_fd = fd_memory("control", offer.control_bytes, 1);
	offer.pool_fd = fd_memory("pool", offer.pool_bytes, 1);
	offer.region_fd = fd_memory("region", offer.region_bytes, 0);
	assert(fd_map(offer.control_fd, offer.control_bytes, 1, &base) == 0);
	control_format(base, &cfg);
	fd_unmap(base, offer.control_bytes);
	assert(fd_map(offer.region_fd, offer.region_bytes, 1, &base) == 0);
	session_format(base, 9, 8, 16);
	fd_unmap(base, offer.region_bytes);
	return 0;
}

static int teardown(void **state)
{
	close_fd(offer.control_fd);
	close_fd(offer.pool_fd);
	close_fd(offer.region_fd);
	return 0;
}

static void test_life(void **state)
{
	const char *why;
	struct attach a;

	attach_init(&a);
	assert_false(attach_try_get(&a));
	assert_false(attach_is_idle(&a));
	assert_int_equal(attach_map(&a, &offer, 5, &why), 0);
	assert_int_equal(a.serial, 5);
	assert_int_equal(a.session.hazard_count, 8);
	assert_true(attach_try_get(&a));
	assert_true(attach_try_get(&a));
	assert_false(attach_is_idle(&a));
	attach_retire(&a);
	attach_retire(&a);
	assert_false(attach_try_get(&a));
	attach_put(&a);
	assert_false(attach_is_idle(&a));
	attach_put(&a);
	assert_true(attach_is_idle(&a));
	attach_unmap(&a);
	assert_false(attach_is_mapped(&a));
	assert_false(attach_is_idle(&a));
	/* The place serves the next one. */
	assert_int_equal(attach_map(&a, &offer, 6, &why), 0);
	assert_true(attach_try_get(&a));
	attach_put(&a);
	attach_retire(&a);
	attach_unmap(&a);
}

/* The protection of the page at p, from the kernel. */
static void check_map(const void *p, const char *perms)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], found[8] = "";

	while (fgets(line, sizeof(line), f)) {
		char r[8];

		if (sscanf(line, "%lx-%lx %7s", &start, &end, r) == 3 &&
		    (unsigned long)p >= start && (unsigned long)p < end)
			strcpy(found, r);
	}
	fclose(f);
	assert_string_equal(found, perms);
}

static void test_protection(void **state)
{
	const char *why;
	struct attach a;

	attach_init(&a);
	assert_int_equal(attach_map(&a, &offer, 1, &why), 0);
	check_map(a.control.head, "r--s");
	check_map(a.pool, "rw-s");
	check_map(a.session.head, "rw-s");
	attach_retire(&a);
	attach_unmap(&a);
	offer.pool_writable = 0;
	assert_int_equal(attach_map(&a, &offer, 1, &why), 0);
	check_map(a.pool, "r--s");
	attach_retire(&a);
	attach_unmap(&a);
}

static void check_refused(int err, const char *text)
{
	const char *why = NULL;
	struct attach a;

	attach_init(&a);
	assert_int_equal(attach_map(&a, &offer, 1, &why), err);
	assert_non_null(strstr(why, text));
	assert_false(attach_is_mapped(&a));
	assert_false(attach_try_get(&a));
}

static void test_refused(void **state)
{
	struct attach_offer good = offer;
	int loose = memfd_create("loose", MFD_CLOEXEC);

	assert(loose >= 0 && ftruncate(loose, (off_t)offer.pool_bytes) == 0);
	offer.pool_fd = loose;
	check_refused(-EPERM, "not sealed");
	offer = good;
	offer.pool_bytes *= 2;
	check_refused(-EINVAL, "not as large");
	offer = good;
	offer.region_bytes += 4096;
	check_refused(-EINVAL, "not as large");
	offer = good;
	/* Another region in its place. */
	offer.control_fd = good.pool_fd;
	offer.control_bytes = good.pool_bytes;
	check_refused(-EPROTO, "magic");
	offer = good;
	offer.region_fd = good.pool_fd;
	offer.region_bytes = good.pool_bytes;
	check_refused(-EPROTO, "magic");
	offer = good;
	offer.pool_fd = good.region_fd;
	offer.pool_bytes = good.region_bytes;
	check_refused(-EPROTO, "another size");
	offer = good;
	offer.control_fd = -1;
	check_refused(-EBADF, "not sealed");
	offer = good;
	close(loose);
}

/* One that comes and goes under threads that use it. */
struct shared {
	struct attach a[2];
	struct attach *current; /* atomic */
	int stop;               /* atomic */
	uint64_t used;          /* atomic */
};

static void *use(void *arg)
{
	struct shared *s = arg;

	while (!load_acquire(&s->stop)) {
		struct attach *a = load_acquire(&s->current);

		if (!a || !attach_try_get(a))
			continue;
		/* Whoever has a count can touch the maps. */
		assert(load_relaxed(&a->control.head->magic) == CONTROL_MAGIC);
		store_relaxed((uint64_t *)a->pool, 1);
		add_relaxed(&a->session.head->counter[0], 1);
		add_relaxed(&s->used, 1);
		attach_put(a);
	}
	return NULL;
}

/* What a reconnect does. */
static void change(struct shared *s, uint32_t serial)
{
	struct attach *old = s->current, *new = &s->a[old == &s->a[0]];
	const char *why;

	while (attach_is_mapped(new)) {
		if (attach_is_idle(new))
			attach_unmap(new);
		else
			sched_yield();
	}
	assert(attach_map(new, &offer, serial, &why) == 0);
	store_release(&s->current, new);
	if (old)
		attach_retire(old);
}

static void test_threads(void **state)
{
	struct shared s = { .current = NULL };
	pthread_t t[THREADS];

	attach_init(&s.a[0]);
	attach_init(&s.a[1]);
	for (unsigned int i = 0; i < THREADS; i++)
		assert(pthread_create(&t[i], NULL, use, &s) == 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		uint64_t before = load_relaxed(&s.used);

		change(&s, i);
		while (i % 16 == 0 && load_relaxed(&s.used) == before)
			sched_yield();
	}
	store_release(&s.stop, 1);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	attach_retire(s.current);
	for (unsigned int i = 0; i < 2; i++)
		if (attach_is_idle(&s.a[i]))
			attach_unmap(&s.a[i]);
	assert_false(attach_is_mapped(&s.a[0]) || attach_is_mapped(&s.a[1]));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_life),
		TEST(test_protection),
		TEST(test_refused),
		TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
