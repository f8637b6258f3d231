/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's memory, populated and punched in the background, in whatever order it is asked for. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "daemon/backing.h"

#define SHIFT 23u /* two steps of populating a granule */
#define GRANULE (UINT64_C(1) << SHIFT)
#define GRANULES 8u

struct fixture {
	sd_event *event;
	struct worker *worker;
	struct backing *b;
	struct hostmem memory; /* plain */
	int fd;
	unsigned int punched;
	uint64_t offset, bytes; /* of the last one */
};

static void on_punched(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct fixture *f = ctx;

	f->punched++;
	f->offset = offset;
	f->bytes = bytes;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_int_equal(worker_new(f->event, &f->worker), 0);
	f->fd = fd_memory("test", GRANULES * GRANULE, 1);
	assert_true(f->fd >= 0);
	f->memory = (struct hostmem){
		.fd = f->fd,
		.max_bytes = GRANULES * GRANULE,
		.granule_shift = SHIFT,
	};
	assert_int_equal(backing_new(f->worker, &f->memory, on_punched, f, &f->b), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	worker_free(f->worker);
	backing_free(f->b);
	sd_event_unref(f->event);
	close_fd(f->fd);
	free(f);
	return 0;
}

/* Runs the loop until nothing comes any more. */
static void finish(struct fixture *f)
{
	while (sd_event_run(f->event, 200000) > 0)
		;
}

static void populates(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(backing_resident(f->b), 0);
	backing_populate(f->b, GRANULE, 2 * GRANULE);
	finish(f);
	assert_int_equal(backing_resident(f->b), 2 * GRANULE);
	backing_populate(f->b, 0, GRANULES * GRANULE);
	finish(f);
	assert_int_equal(backing_resident(f->b), GRANULES * GRANULE);
	assert_int_equal(f->punched, 0);
}

/* What was in it is gone. */
static void punches(void **state)
{
	struct fixture *f = *state;
	unsigned char *base;
	void *map;

	assert_int_equal(fd_map(f->fd, GRANULES * GRANULE, 1, &map), 0);
	base = map;
	base[2 * GRANULE + 5] = 7;
	base[4 * GRANULE] = 8;
	backing_punch(f->b, GRANULE, 3 * GRANULE);
	finish(f);
	assert_int_equal(f->punched, 1);
	assert_int_equal(f->offset, GRANULE);
	assert_int_equal(f->bytes, 3 * GRANULE);
	assert_int_equal(base[2 * GRANULE + 5], 0);
	assert_int_equal(base[4 * GRANULE], 8);
	fd_unmap(map, GRANULES * GRANULE);
}

/* Each range is told by itself, those side by side as well. */
static void punches_are_told_as_they_were_asked(void **state)
{
	struct fixture *f = *state;

	backing_populate(f->b, 0, GRANULES * GRANULE);
	backing_punch(f->b, 2 * GRANULE, GRANULE);
	backing_punch(f->b, 3 * GRANULE, 2 * GRANULE);
	backing_punch(f->b, 5 * GRANULE, GRANULE);
	finish(f);
	assert_int_equal(f->punched, 3);
	assert_int_equal(f->offset, 5 * GRANULE);
	assert_int_equal(f->bytes, GRANULE);
	assert_int_equal(backing_resident(f->b), 4 * GRANULE);
}

/* Given back while it is being populated: nothing of it is populated after it was punched. */
static void punch_wins_over_populate(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 20; i++) {
		backing_populate(f->b, 0, GRANULES * GRANULE);
		/* Anywhere between two steps. */
		for (unsigned int k = 0; k < i; k++)
			assert_true(sd_event_run(f->event, 200000) >= 0);
		backing_punch(f->b, 0, GRANULES * GRANULE);
		finish(f);
		assert_int_equal(f->punched, i + 1);
		assert_int_equal(backing_resident(f->b), 0);
	}
}

/* And handed out again: all of it is populated, from its beginning on. */
static void populate_after_punch(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 4; i++) {
		backing_populate(f->b, 0, GRANULE);
		for (unsigned int k = 0; k < i; k++)
			assert_true(sd_event_run(f->event, 200000) >= 0);
		backing_punch(f->b, 0, GRANULE);
		while (f->punched == i)
			assert_true(sd_event_run(f->event, 200000) >= 0);
		backing_populate(f->b, 0, GRANULE);
		finish(f);
		assert_int_equal(backing_resident(f->b), GRANULE);
	}
}

static void stops_in_the_middle(void **state)
{
	struct fixture *f = *state;

	backing_populate(f->b, 0, GRANULES * GRANULE);
	backing_punch(f->b, 0, GRANULE);
	f->worker = worker_free(f->worker);
	assert_int_equal(f->punched, 0);
}

int main(void)
{
#define WITH_MEMORY(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		WITH_MEMORY(populates),
		WITH_MEMORY(punches),
		WITH_MEMORY(punches_are_told_as_they_were_asked),
		WITH_MEMORY(punch_wins_over_populate),
		WITH_MEMORY(populate_after_punch),
		WITH_MEMORY(stops_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
