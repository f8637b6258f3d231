/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a daemon in words, in JSON, and what it says about health. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/health.h"
#include "tools/kvpoolctl/status.h"
#include "tools/kvpoolctl/unit.h"

static const struct style plain = { .utf8 = 1 };

static Kvpool__StatusReply sample(void)
{
	Kvpool__StatusReply s = KVPOOL__STATUS_REPLY__INIT;

	s.daemon = "0.1.0";
	s.instance = "private";
	s.domain = "default";
	s.pid = 1187;
	s.ready = 1;
	s.uptime_ns = 724 * NSEC_PER_SEC;
	s.pool_bytes = GIB(8);
	s.pool_handed_bytes = GIB(5);
	s.cached_bytes = GIB(3);
	s.leased_bytes = GIB(1);
	s.writing_bytes = MIB(512);
	s.free_bytes = MIB(1536);
	s.blocks = 1204;
	s.max_blocks = 1048576;
	s.lookups = 200;
	s.asked_tokens = 418000;
	s.hit_tokens = 296780;
	s.miss_tokens = 121220;
	s.shared_tokens = 112776;
	s.published_blocks = 1500;
	s.evicted_blocks = 296;
	s.clients = 3;
	s.namespaces = 2;
	return s;
}

/* The caller frees it. */
static char *printed(const Kvpool__StatusReply *s, const struct style *style, int exact)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	status_print(s, style, exact, f);
	fclose(f);
	return text;
}

/* While the pool shrinks, what extents hold and what is on its way back are more than its size. */
static void test_states_of_a_pool_that_shrinks(void **state)
{
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = NULL;

	s.pool_bytes = GIB(4);
	s.pool_excess_bytes = GIB(3);
	text = printed(&s, &plain, 0);
	assert_non_null(strstr(text, "free 1.5  returning 2.0\n"));
	assert_null(strstr(text, "unassigned"));
}

static void test_screen(void **state)
{
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = printed(&s, &plain, 0);

	assert_string_equal(
		text,
		"● kvpoold 0.1.0   private   up 12min 4s   pid 1187   ready\n"
		"    Pool  host ████████░░░░░░░░░░░░  3.5 / 8.0 GiB  44%  cached 2.0  leased 1.0\n"
		"          writing 0.5  free 1.5  unassigned 3.0\n"
		"  Blocks  1 204 of 1 048 576  published 1 500  evicted 296\n"
		"    Hits  since start 71% of 418 k tokens  in 200 lookups\n"
		"          from another program: 38%\n"
		" Clients  3 attached        Namespaces 2        Pins 0\n"
		"  Health  ok\n");
}

/* What is not known is a dash, and a daemon that has done nothing yet has no hit rate. */
static void test_screen_of_nothing(void **state)
{
	Kvpool__StatusReply s = KVPOOL__STATUS_REPLY__INIT;
	_cleanup_free_ char *text = printed(&s, &plain, 0);

	assert_non_null(strstr(text, "since start - of 0 tokens"));
	assert_non_null(strstr(text, "from another program: -"));
	assert_non_null(strstr(text, "starting\n"));
	assert_non_null(strstr(text, "0 / 0 B  -"));
}

static void check_lines(const char *text, size_t width)
{
	while (*text) {
		_cleanup_free_ char *line = strndup(text, strcspn(text, "\n"));

		assert_true(cell_width(line) <= width);
		text += strlen(line) + 1;
	}
}

static void test_fits_80_columns(void **state)
{
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = NULL, *exact = NULL;

	s.quarantined_bytes = s.doomed_bytes = KIB(1023);
	s.checksum_dooms = s.full_blocks = s.ended_slow = s.protocol_errors = UINT32_MAX;
	s.touches_lost = s.draining = s.flushed_blocks = s.waits = s.waits_served = UINT32_MAX;
	s.ready = 0;
	text = printed(&s, &plain, 0);
	check_lines(text, STYLE_COLUMNS);
	exact = printed(&s, &plain, 1);
	check_lines(exact, STYLE_COLUMNS);
	assert_non_null(strstr(exact, "/ 8589934592"));
}

static void test_ascii_without_utf8(void **state)
{
	static const struct style ascii = { .utf8 = 0 };
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = printed(&s, &ascii, 0);

	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	assert_non_null(strstr(text, "########............"));
}

static void test_colour_only_when_wanted(void **state)
{
	static const struct style colour = { .colour = 1, .utf8 = 1 };
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = printed(&s, &plain, 0), *coloured = printed(&s, &colour, 0);

	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(coloured, "\033[32mok\033[0m"));
}

static void test_bar(void **state)
{
	static const struct style ascii = { 0 };
	char bar[STYLE_BAR_BYTES];

	style_bar(&ascii, 0, 0, bar);
	assert_string_equal(bar, "....................");
	style_bar(&ascii, 1, 1000000, bar);
	assert_string_equal(bar, "#...................");
	style_bar(&ascii, 999999, 1000000, bar);
	assert_string_equal(bar, "###################.");
	style_bar(&ascii, 1, 1, bar);
	assert_string_equal(bar, "####################");
	style_bar(&ascii, 5, 1, bar);
	assert_string_equal(bar, "####################");
}

static uint64_t number(const json_t *o, const char *name)
{
	const json_t *n = json_object_get(o, name);

	assert_true(json_is_integer(n));
	return (uint64_t)json_integer_value(n);
}

static void test_json_states_sum_up(void **state)
{
	Kvpool__StatusReply s = sample();
	json_t *o = status_json(&s);
	json_t *tier = json_array_get(json_object_get(o, "tiers"), 0);
	json_t *states = json_object_get(tier, "states"), *n;
	const char *name;
	uint64_t sum = 0;

	json_object_foreach(states, name, n) sum += (uint64_t)json_integer_value(n);
	assert_int_equal(sum, number(tier, "capacity_bytes"));
	assert_int_equal(number(states, "leased"), GIB(1));
	assert_int_equal(number(states, "cached"), GIB(2));
	assert_int_equal(number(tier, "used_bytes"), GIB(3) + MIB(512));
	json_decref(o);
}

static void test_json_is_raw(void **state)
{
	Kvpool__StatusReply s = sample();
	json_t *o, *since;

	s.page_size = "";
	s.evicted_blocks = UINT64_MAX;
	o = status_json(&s);
	since = json_object_get(o, "counters");
	assert_string_equal(json_string_value(json_object_get(o, "schema")), "kvpool.status/1");
	assert_true(json_is_true(json_object_get(o, "ready")));
	assert_true(json_number_value(json_object_get(o, "uptime_seconds")) == 724.0);
	assert_int_equal(number(since, "lookup_tokens"),
			 number(since, "hit_tokens") + number(since, "miss_tokens"));
	/* Unknown is null, and a number beyond what JSON integers hold is still one. */
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(o, "tiers"), 0), "page_size")));
	assert_true(json_is_real(json_object_get(since, "evicted_blocks")));
	json_decref(o);
}

static void test_foreign_text_is_cleaned(void **state)
{
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = NULL;
	json_t *o;

	s.daemon = "0\033]0;owned\a\xff";
	text = printed(&s, &plain, 0);
	assert_null(strchr(text, '\033'));
	o = status_json(&s);
	assert_string_equal(json_string_value(json_object_get(o, "version")), "0?]0;owned??");
	json_decref(o);
}

static void test_health(void **state)
{
	Kvpool__StatusReply s = sample();
	_cleanup_free_ char *text = NULL;
	json_t *o, *health;

	assert_int_equal(health_level(&s), HEALTH_OK);
	s.full_blocks = 3;
	assert_int_equal(health_level(&s), HEALTH_NOTE);
	s.checksum_dooms = 1;
	assert_int_equal(health_level(&s), HEALTH_WARN);
	text = printed(&s, &plain, 0);
	assert_non_null(strstr(text, "  Health  warn\n"));
	assert_non_null(strstr(text, "          note: blocks that found no room: 3\n"));
	o = status_json(&s);
	health = json_object_get(o, "health");
	assert_string_equal(json_string_value(json_object_get(health, "level")), "warn");
	assert_int_equal(json_array_size(json_object_get(health, "codes")), 2);
	assert_string_equal(json_string_value(json_array_get(json_object_get(health, "codes"), 0)),
			    "corrupt");
	json_decref(o);
}

/* Codes are for programs: each once, without blanks; and nothing is found in a healthy daemon. */
static void test_health_codes(void **state)
{
	Kvpool__StatusReply s = sample();
	const struct health_finding *a, *b;

	for (unsigned int i = 0; (a = health_finding(i)); i++) {
		assert_null(strchr(a->code, ' '));
		assert_int_equal(a->count(&s), 0);
		for (unsigned int j = 0; j < i && (b = health_finding(j)); j++)
			assert_string_not_equal(a->code, b->code);
	}
}

#define ID "4be1f2c9a0d14be1f2c9a0d14be1f2c9a0d14be1f2c9a0d14be1f2c9a0d1abcd"

static void test_units_of_processes(void **state)
{
	static const struct {
		const char *path, *unit; /* NULL: none */
	} cases[] = {
		{ "/system.slice/vllm.service", "vllm.service" },
		{ "/system.slice/vllm.service/worker\n", "vllm.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope", "user@1000" },
		{ "/user.slice/user-0.slice/session-3.scope", "session-3.scope" },
		{ "/system.slice/docker-" ID ".scope", "docker:4be1f2c9a0d1" },
		{ "/machine.slice/libpod-" ID ".scope/container", "podman:4be1f2c9a0d1" },
		{ "/docker/" ID, "container:4be1f2c9a0d1" },
		{ "/kubepods.slice/cri-containerd-" ID ".scope", "container:4be1f2c9a0d1" },
		{ "/", NULL },
		{ "", NULL },
		{ "/.service", NULL },
		{ "/user.slice\n/system.slice/a.service", NULL },
	};
	char unit[UNIT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		strcpy(unit, "before");
		assert_int_equal(!unit_of_path(cases[i].path, unit), !!cases[i].unit);
		if (cases[i].unit)
			assert_string_equal(unit, cases[i].unit);
	}
}

static void test_unit_name_is_cut(void **state)
{
	char path[300], unit[UNIT_BYTES];

	memset(path, 'a', sizeof(path));
	strcpy(path + 200, ".service");
	assert_int_equal(unit_of_path(path, unit), 0);
	assert_int_equal(strlen(unit), UNIT_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_screen),
		cmocka_unit_test(test_states_of_a_pool_that_shrinks),
		cmocka_unit_test(test_screen_of_nothing),
		cmocka_unit_test(test_fits_80_columns),
		cmocka_unit_test(test_ascii_without_utf8),
		cmocka_unit_test(test_colour_only_when_wanted),
		cmocka_unit_test(test_bar),
		cmocka_unit_test(test_json_states_sum_up),
		cmocka_unit_test(test_json_is_raw),
		cmocka_unit_test(test_foreign_text_is_cleaned),
		cmocka_unit_test(test_health),
		cmocka_unit_test(test_health_codes),
		cmocka_unit_test(test_units_of_processes),
		cmocka_unit_test(test_unit_name_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
