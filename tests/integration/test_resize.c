/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that gets another size while clients use it: what they read is right, what they hold
 * stays, and the memory really goes back to the system.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"
#include "tests/integration/raw.h"

#define POOL    MIB(32)
#define GRANULE KIB(256)
#define BLOCK   16384u /* 16 in an extent */
#define CHAINS  200u
#define DEPTH   16u
#define CLIENTS 2u

struct fixture {
	struct daemon d;
	struct kvpool *pool;
	struct kvpool_ns *ns;
};

static int setup(void **state)
{
	static const char *const args[] = { "--pool-size", "32M", NULL };
	struct fixture *f = calloc(1, sizeof(*f));

	assert(f && daemon_start(&f->d, args) == 0);
	f->pool = pattern_connect(f->d.socket, "resize");
	f->ns = pattern_ns(f->pool, "resize", BLOCK);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kvpool_ns_close(f->ns);
	kvpool_close(f->pool);
	assert(daemon_end(&f->d) == 0);
	free(f);
	return 0;
}

/* A pool full of chains, the last one used last. */
static void fill(struct fixture *f)
{
	for (uint64_t c = 0; c < POOL / (DEPTH * BLOCK); c++)
		assert_int_equal(pattern_publish(f->ns, c, DEPTH), DEPTH);
}

static void memory_goes_back_to_the_system(void **state)
{
	struct fixture *f = *state;
	const Kvpool__StatusReply *s;
	const Kvpool__ResizeReply *r;
	uint64_t blocks;

	fill(f);
	s = admin_status(&f->d);
	assert_int_equal(s->pool_bytes, POOL);
	assert_true(s->pool_resident_bytes > POOL / 4 * 3);
	assert_true(s->pool_max_bytes >= POOL);
	blocks = s->blocks;
	r = admin_resize(&f->d, POOL / 4, 1);
	assert_int_equal(r->was_bytes, POOL);
	assert_int_equal(r->now_bytes, POOL / 4);
	assert_int_equal(r->stuck_bytes, 0);
	assert_true(r->evict_blocks > blocks / 2);
	assert_int_equal(admin_status(&f->d)->pool_bytes, POOL);
	admin_resize(&f->d, POOL / 4, 0);
	admin_wait_excess(&f->d, 0);
	s = admin_status(&f->d);
	assert_int_equal(s->pool_bytes, POOL / 4);
	assert_true(s->pool_handed_bytes <= POOL / 4);
	assert_true(s->pool_resident_bytes <= POOL / 4);
	assert_true(s->blocks && s->blocks <= POOL / 4 / BLOCK);
	assert_string_equal(s->huge_pages, "4k");
	/* And there is room again when it grows. */
	admin_resize(&f->d, 2 * POOL, 0);
	for (uint64_t c = 1000; c < 1100; c++)
		assert_int_equal(pattern_publish(f->ns, c, DEPTH), DEPTH);
	s = admin_status(&f->d);
	assert_true(s->pool_handed_bytes > POOL / 4 * 3 && s->pool_handed_bytes <= 2 * POOL);
}

static void a_lease_keeps_its_bytes(void **state)
{
	struct fixture *f = *state;
	struct kvpool_lease *lease;
	uint64_t stays;

	fill(f);
	assert_int_equal(kvpool_lease_new(f->pool, DEPTH, &lease), 0);
	assert_int_equal(pattern_acquire(f->ns, lease, 100, DEPTH), DEPTH);
	admin_resize(&f->d, GRANULE, 0);
	/* Its sixteen blocks lie in at most three extents. */
	admin_wait_excess(&f->d, 2 * GRANULE);
	assert_true(admin_status(&f->d)->pool_resident_bytes <= 3 * GRANULE);
	for (size_t i = 0; i < DEPTH; i++)
		assert_true(pattern_check(100, i, kvpool_lease_block(lease, i), BLOCK));
	stays = admin_resize(&f->d, GRANULE, 1)->stuck_bytes;
	assert_int_equal(stays, admin_status(&f->d)->pool_excess_bytes);
	kvpool_lease_free(lease);
	admin_wait_excess(&f->d, 0);
	assert_true(admin_status(&f->d)->pool_resident_bytes <= GRANULE);
}

/* Slots of a reservation are written to the end, and committed. */
static void a_reservation_is_kept(void **state)
{
	struct fixture *f = *state;
	int32_t tokens[DEPTH * PATTERN_BLOCK_TOKENS + 1];
	struct kvpool_lease *lease;
	struct kvpool_write *w;

	fill(f);
	pattern_tokens(5000, DEPTH, tokens);
	assert_int_equal(kvpool_reserve(f->ns, tokens, DEPTH * PATTERN_BLOCK_TOKENS, 0, &w), DEPTH);
	admin_resize(&f->d, GRANULE, 0);
	admin_wait_excess(&f->d, 2 * GRANULE);
	for (size_t i = 0; i < DEPTH; i++)
		pattern_fill(5000, i, kvpool_write_block(w, i), BLOCK);
	assert_int_equal(kvpool_commit(w, DEPTH), DEPTH);
	kvpool_write_free(w);
	assert_int_equal(kvpool_lease_new(f->pool, DEPTH, &lease), 0);
	(void)pattern_acquire(f->ns, lease, 5000, DEPTH);
	kvpool_lease_free(lease);
	admin_wait_excess(&f->d, 0);
}

static void refuse(struct fixture *f, uint64_t bytes, const char *word, const char *other)
{
	struct raw *r = raw_open(f->d.admin);
	Kvpool__Resize m = KVPOOL__RESIZE__INIT;
	const Kvpool__Error *e;

	m.bytes = bytes;
	raw_send(r, OP_RESIZE, &m.base);
	e = raw_expect_error(r, ERROR_LIMIT, "bytes");
	assert_non_null(strstr(e->text, word));
	assert_non_null(strstr(e->text, other));
	raw_close(r);
}

static void sizes_out_of_bounds(void **state)
{
	struct fixture *f = *state;
	struct kvpool_ns *wide = pattern_ns(f->pool, "very wide", MIB(2));

	refuse(f, admin_status(&f->d)->pool_max_bytes + GRANULE, "restart", "more");
	refuse(f, MIB(8) - 1, "very wide", "8388608");
	kvpool_ns_close(wide);
	refuse(f, 0, "262144", "less");
	assert_int_equal(admin_status(&f->d)->pool_bytes, POOL);
}

/* More than max_blocks can hold is no error, but somebody is told. */
static void too_few_numbers_of_blocks(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(admin_resize(&f->d, POOL, 0)->note, "");
	assert_non_null(strstr(admin_resize(&f->d, MIB(128), 0)->note, "max_blocks is 4096"));
}

struct load {
	int stop;
	uint64_t hits, published;
};

static void one_round(struct load *load, struct kvpool_ns *ns, struct kvpool_lease *lease,
		      uint64_t chain)
{
	size_t found = pattern_acquire(ns, lease, chain, DEPTH);
	int r;

	add_relaxed(&load->hits, found);
	if (found == DEPTH)
		return;
	r = pattern_publish(ns, chain, DEPTH);
	assert(r >= 0 || r == -ENOSPC);
	add_relaxed(&load->published, r > 0 ? (uint64_t)r : 0);
}

static void run_client(const struct daemon *d, struct load *load, uint64_t number)
{
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pool = pattern_connect(d->socket, "load");
	ns = pattern_ns(pool, "load", BLOCK);
	assert(kvpool_lease_new(pool, DEPTH, &lease) == 0);
	for (uint64_t i = 0; !load_acquire(&load->stop); i++)
		one_round(load, ns, lease, mix64(i * 31 + number) % CHAINS);
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	_exit(0);
}

static void under_load(void **state)
{
	static const uint64_t sizes[] = {
		MIB(8), MIB(64), MIB(2), MIB(32), MIB(4), MIB(48), MIB(3)
	};
	struct fixture *f = *state;
	struct load *load = mmap(NULL, sizeof(*load), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t published = 0;
	pid_t pid[CLIENTS];
	int status;

	assert(load != MAP_FAILED);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			run_client(&f->d, load, i);
		assert(pid[i] > 0);
	}
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		admin_resize(&f->d, sizes[i % ARRAY_SIZE(sizes)], 0);
		admin_wait_excess(&f->d, 0);
		/* Both go on in what is left. */
		while (load_acquire(&load->published) < published + 200)
			usleep(1000);
		published = load_acquire(&load->published);
		assert_true(admin_status(&f->d)->pool_handed_bytes <= sizes[i % ARRAY_SIZE(sizes)]);
	}
	store_release(&load->stop, 1);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		assert(waitpid(pid[i], &status, 0) == pid[i]);
		assert_int_equal(status, 0);
	}
	assert_true(load->hits > 0);
	admin_wait_quiet(&f->d, 1);
	munmap(load, sizeof(*load));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(memory_goes_back_to_the_system), TEST(a_lease_keeps_its_bytes),
		TEST(a_reservation_is_kept),          TEST(sizes_out_of_bounds),
		TEST(too_few_numbers_of_blocks),      TEST(under_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
