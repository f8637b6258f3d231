/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session regions: geometry, what session_attach refuses, and the touch ring with honest and
 * hostile clients.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "shm/session.h"

#define HAZARDS 100u
#define TOUCHES 8u

struct ring {
	void *base;
	uint64_t size;
	struct session_map m;
	uint64_t place, lost;
};

static int setup(void **state)
{
	struct ring *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->size = session_size(HAZARDS, TOUCHES);
	r->base = aligned_alloc(LAYOUT_PAGE, r->size);
	assert_non_null(r->base);
	memset(r->base, 0, r->size);
	session_format(r->base, 77, HAZARDS, TOUCHES);
	session_map_trusted(r->base, HAZARDS, TOUCHES, &r->m);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct ring *r = *state;

	free(r->base);
	free(r);
	return 0;
}

static void size_bounds(void **state)
{
	assert_int_equal(session_size(0, 8), 0);
	assert_int_equal(session_size(SESSION_HAZARDS_MAX + 1, 8), 0);
	assert_int_equal(session_size(8, 0), 0);
	assert_int_equal(session_size(8, 7), 0);
	assert_int_equal(session_size(8, SESSION_TOUCHES_MAX * 2), 0);
	assert_int_equal(session_size(1, 1), 3 * LAYOUT_PAGE);
	assert_int_equal(session_size(513, 64), 4 * LAYOUT_PAGE);
	assert_int_equal(session_size(SESSION_HAZARDS_MAX, SESSION_TOUCHES_MAX),
			 LAYOUT_PAGE + SESSION_HAZARDS_MAX * 8 + SESSION_TOUCHES_MAX * 64);
}

static void attach_finds_what_was_formatted(void **state)
{
	struct ring *r = *state;
	struct session_map m;

	assert_null(session_attach(r->base, r->size, &m));
	assert_memory_equal(&m, &r->m, sizeof(m));
	assert_int_equal(m.head->session, 77);
	assert_true((char *)(m.hazard + HAZARDS) <= (char *)m.touch);
	assert_true((char *)(m.touch + TOUCHES) <= (char *)r->base + r->size);
}

static void attach_refuses(void **state)
{
	static const struct {
		size_t at, n;
		uint64_t value;
		const char *text;
	} rows[] = {
#define AT(f) offsetof(struct session_header, f), sizeof(((struct session_header *)0)->f)
		{ AT(magic), 0, "magic" },
		{ AT(magic), CONTROL_MAGIC, "magic" },
		{ AT(layout_version), LAYOUT_VERSION + 1, "layout version" },
		{ AT(header_bytes), 64, "layout version" },
		{ AT(total_bytes), 0, "sizes" },
		{ AT(total_bytes), UINT64_MAX, "sizes" },
		{ AT(hazard_offset), 0, "sizes" },
		{ AT(hazard_offset), 2 * LAYOUT_PAGE, "sizes" },
		{ AT(hazard_count), 0, "sizes" },
		{ AT(hazard_count), 513, "sizes" },
		{ AT(hazard_count), UINT32_MAX, "sizes" },
		{ AT(touch_offset), LAYOUT_PAGE, "sizes" },
		{ AT(touch_count), 0, "sizes" },
		{ AT(touch_count), 7, "sizes" },
		{ AT(touch_count), UINT32_MAX, "sizes" },
#undef AT
	};
	struct ring *r = *state;
	char *base = r->base;

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct session_map m = { .hazard_count = 4711 };
		uint64_t saved = 0;
		const char *wrong;

		memcpy(&saved, base + rows[i].at, rows[i].n);
		memcpy(base + rows[i].at, &rows[i].value, rows[i].n);
		wrong = session_attach(base, r->size, &m);
		if (!wrong || !strstr(wrong, rows[i].text))
			fail_msg("row %u: \"%s\"", i, wrong ? wrong : "accepted");
		assert_int_equal(m.hazard_count, 4711);
		memcpy(base + rows[i].at, &saved, rows[i].n);
	}
	assert_non_null(session_attach(base, LAYOUT_PAGE - 1, &r->m));
	assert_non_null(session_attach(base, r->size + LAYOUT_PAGE, &r->m));
}

static void push(struct ring *r, uint32_t desc)
{
	struct touch t = {
		.seq = 0xdead, .desc = desc, .asked_tokens = desc * 2, .miss_key = { desc }
	};

	touch_push(&r->m, &t);
}

static int pop(struct ring *r, struct touch *ret)
{
	return touch_pop(&r->m, &r->place, &r->lost, ret);
}

static void expect(struct ring *r, uint32_t desc)
{
	struct touch t;

	assert_true(pop(r, &t));
	assert_int_equal(t.desc, desc);
	assert_int_equal(t.asked_tokens, desc * 2);
	assert_int_equal(t.miss_key[0], desc);
}

static void expect_empty(struct ring *r, uint64_t lost)
{
	struct touch t = { .desc = 4711 };

	assert_false(pop(r, &t));
	assert_int_equal(r->lost, lost);
	assert_int_equal(r->place, r->m.head->touch_head);
}

static void touches_come_in_order(void **state)
{
	struct ring *r = *state;

	expect_empty(r, 0);
	for (uint32_t i = 0; i < 3 * TOUCHES; i++) {
		push(r, i);
		if (i % 3 == 2) {
			expect(r, i - 2);
			expect(r, i - 1);
			expect(r, i);
		}
	}
	expect_empty(r, 0);
}

static void full_ring_loses_the_oldest(void **state)
{
	struct ring *r = *state;

	for (uint32_t i = 0; i < TOUCHES + 5; i++)
		push(r, i);
	for (uint32_t i = 5; i < TOUCHES + 5; i++)
		expect(r, i);
	expect_empty(r, 5);
}

/* Taken by a thread that has not written it yet: left out, and the ones behind it still come. */
static void unfinished_record_is_left_out(void **state)
{
	struct ring *r = *state;

	push(r, 1);
	add_relaxed(&r->m.head->touch_head, 1);
	push(r, 3);
	expect(r, 1);
	expect(r, 3);
	expect_empty(r, 1);
}

static void head_that_steps_back(void **state)
{
	struct ring *r = *state;

	for (uint32_t i = 0; i < 5; i++)
		push(r, i);
	for (uint32_t i = 0; i < 5; i++)
		expect(r, i);
	r->m.head->touch_head = 2;
	expect_empty(r, 1);
	push(r, 9);
	expect(r, 9);
	expect_empty(r, 1);
}

static void head_that_jumps(void **state)
{
	static const uint64_t heads[] = { UINT64_MAX, UINT64_MAX / 2, (UINT64_C(1) << 32) + 6, 0 };
	struct ring *r = *state;

	push(r, 1);
	expect(r, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(heads); i++) {
		r->m.head->touch_head = heads[i];
		expect_empty(r, i + 1);
	}
	/* At the end of all numbers, and around it. */
	r->m.head->touch_head = UINT64_MAX;
	expect_empty(r, ARRAY_SIZE(heads) + 1);
	push(r, 2);
	push(r, 3);
	assert_int_equal(r->m.head->touch_head, 1);
	r->lost = 0;
	expect(r, 2);
	expect(r, 3);
	expect_empty(r, 0);
}

/* A jump that a client could have looked up: counted, and only a ring's worth is looked at. */
static void head_far_ahead(void **state)
{
	struct ring *r = *state;

	r->m.head->touch_head = 1000000;
	expect_empty(r, 1000000);
}

static void garbage_records(void **state)
{
	struct ring *r = *state;
	struct touch t;
	uint64_t x = 88172645463325252ull;

	for (unsigned int round = 0; round < 2000; round++) {
		uint64_t *w = (uint64_t *)r->m.touch;

		for (size_t i = 0; i < TOUCHES * sizeof(struct touch) / 8; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			w[i] = x >> x % 64;
		}
		r->m.head->touch_head = round % 3 ? r->place + x % 20 : x;
		for (unsigned int i = 0; pop(r, &t); i++)
			assert_true(i < TOUCHES);
		assert_int_equal(r->place, r->m.head->touch_head);
	}
}

static void counters_add(void **state)
{
	struct ring *r = *state;

	session_count(&r->m, COUNTER_HIT_TOKENS, 30);
	session_count(&r->m, COUNTER_HIT_TOKENS, 12);
	assert_int_equal(r->m.head->counter[COUNTER_HIT_TOKENS], 42);
	assert_int_equal(r->m.head->counter[COUNTER_MISS_TOKENS], 0);
}

int main(void)
{
#define WITH_RING(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_bounds),
		WITH_RING(attach_finds_what_was_formatted),
		WITH_RING(attach_refuses),
		WITH_RING(touches_come_in_order),
		WITH_RING(full_ring_loses_the_oldest),
		WITH_RING(unfinished_record_is_left_out),
		WITH_RING(head_that_steps_back),
		WITH_RING(head_that_jumps),
		WITH_RING(head_far_ahead),
		WITH_RING(garbage_records),
		WITH_RING(counters_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
