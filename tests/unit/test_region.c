/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session regions as the daemon holds them: when nobody can write to one any more, as the kernel
 * tells, whatever the client did to its descriptor.
 */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "daemon/region.h"

struct fixture {
	sd_event *event;
	struct worker *worker;
	struct region *region;
	int released;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_int_equal(worker_new(f->event, &f->worker), 0);
	assert_int_equal(region_new(f->event, 7, 16, &f->region), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	worker_free(f->worker);
	region_free(f->region);
	sd_event_unref(f->event);
	free(f);
	return 0;
}

static void on_released(void *ctx)
{
	struct fixture *f = ctx;

	f->released++;
}

/* What a client does with what it was sent. */
static void *client_map(const struct region *r)
{
	void *base;

	assert_int_equal(fd_map(r->client_fd, r->size, 1, &base), 0);
	return base;
}

static void turn(struct fixture *f, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++)
		assert_true(sd_event_run(f->event, 20000) >= 0);
}

static void turn_until_released(struct fixture *f)
{
	for (unsigned int i = 0; i < 500 && !f->released; i++)
		turn(f, 1);
	assert_int_equal(f->released, 1);
}

static void client_can_attach(void **state)
{
	struct fixture *f = *state;
	void *base = client_map(f->region);
	struct session_map m;

	assert_null(session_attach(base, f->region->size, &m));
	assert_int_equal(m.head->session, 7);
	assert_int_equal(m.hazard_count, 16);
	m.hazard[3] = 42;
	assert_int_equal(f->region->map.hazard[3], 42);
	fd_unmap(base, f->region->size);
}

static void size_is_fixed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fd_check_sealed(f->region->client_fd, f->region->size), 0);
	assert_int_equal(ftruncate(f->region->client_fd, 0), -1);
	assert_int_equal(ftruncate(f->region->client_fd, (off_t)f->region->size * 2), -1);
}

static void mapped_or_not(void **state)
{
	struct fixture *f = *state;
	void *base = client_map(f->region);

	assert_int_equal(region_try_seal(f->region), 1);
	assert_int_equal(region_try_seal(f->region), 1);
	fd_unmap(base, f->region->size);
	assert_int_equal(region_try_seal(f->region), 0);
	/* For good: whoever still has the descriptor can't map it any more. */
	assert_ptr_equal(mmap(NULL, f->region->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			      f->region->client_fd, 0),
			 MAP_FAILED);
	assert_int_equal(region_try_seal(f->region), 0);
}

/* The daemon punches no holes there; a client may (F14), and reads of it find zeros. */
static void client_punches_a_hole(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fallocate(f->region->client_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, (off_t)f->region->size),
			 0);
	assert_int_equal(f->region->map.head->magic, 0);
	assert_int_equal(f->region->map.hazard_count, 16);
}

static void client_seals_against_seals(void **state)
{
	struct fixture *f = *state;
	void *base = client_map(f->region);

	assert_int_equal(fcntl(f->region->client_fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	f->region->client_fd = close_fd(f->region->client_fd);
	assert_int_equal(region_try_seal(f->region), 1);
	fd_unmap(base, f->region->size);
	assert_int_equal(region_try_seal(f->region), 0);
}

/* A descriptor alone writes nothing, and is cut off; without any, no seal is needed. */
static void a_descriptor_that_is_kept(void **state)
{
	struct fixture *f = *state;
	int kept = dup(f->region->client_fd);
	void *base = client_map(f->region);

	f->region->client_fd = close_fd(f->region->client_fd);
	fd_unmap(base, f->region->size);
	assert_int_equal(region_try_seal(f->region), 0);
	assert_true(fcntl(f->region->fd, F_GET_SEALS) & F_SEAL_WRITE);
	close(kept);
}

static void nothing_is_kept(void **state)
{
	struct fixture *f = *state;
	void *base = client_map(f->region);

	f->region->client_fd = close_fd(f->region->client_fd);
	assert_int_equal(region_try_seal(f->region), 1);
	fd_unmap(base, f->region->size);
	assert_int_equal(region_try_seal(f->region), 0);
	assert_false(fcntl(f->region->fd, F_GET_SEALS) & F_SEAL_WRITE);
}

static void drains_when_unmapped(void **state)
{
	struct fixture *f = *state;
	void *base = client_map(f->region);

	region_drain(f->region, f->worker, on_released, f);
	turn(f, 10);
	assert_int_equal(f->released, 0);
	fd_unmap(base, f->region->size);
	turn_until_released(f);
	turn(f, 5);
	assert_int_equal(f->released, 1);
}

/* A child that was left behind still reads: its parent's death alone releases nothing. */
static void drains_when_the_last_process_is_gone(void **state)
{
	struct fixture *f = *state;
	void *base = client_map(f->region);
	int status;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	fd_unmap(base, f->region->size);
	region_drain(f->region, f->worker, on_released, f);
	region_hurry(f->region);
	turn(f, 10);
	region_hurry(f->region);
	turn(f, 10);
	assert_int_equal(f->released, 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	region_hurry(f->region);
	turn_until_released(f);
}

static void drains_at_once_when_nobody_mapped_it(void **state)
{
	struct fixture *f = *state;

	region_drain(f->region, f->worker, on_released, f);
	turn_until_released(f);
}

int main(void)
{
#define WITH_REGION(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_REGION(client_can_attach),
		WITH_REGION(size_is_fixed),
		WITH_REGION(mapped_or_not),
		WITH_REGION(client_punches_a_hole),
		WITH_REGION(client_seals_against_seals),
		WITH_REGION(a_descriptor_that_is_kept),
		WITH_REGION(nothing_is_kept),
		WITH_REGION(drains_when_unmapped),
		WITH_REGION(drains_when_the_last_process_is_gone),
		WITH_REGION(drains_at_once_when_nobody_mapped_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
