/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, wrapped paragraphs and foreign text on the way to a terminal. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/kvpoolctl/cell.h"
#include "tools/kvpoolctl/flow.h"
#include "tools/kvpoolctl/table.h"
#include "tools/kvpoolctl/word.h"

static const struct table_column columns[] = {
	{ "NAME", TABLE_ELASTIC },
	{ "PID", TABLE_RIGHT },
	{ "NOTE", TABLE_EXTRA },
	{ "STATE", 0 },
};

static void fill(struct table *t, const char *name, const char *pid, const char *state)
{
	assert_int_equal(table_row(t), 0);
	assert_int_equal(table_cell(t, 0, name), 0);
	if (pid)
		assert_int_equal(table_cell(t, 1, pid), 0);
	assert_int_equal(table_cell(t, 3, state), 0);
}

/* The caller frees it. */
static char *printed(const struct table *t, int header, size_t width)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	table_print(t, f, header, width, "…");
	fclose(f);
	return text;
}

static void expect(struct table *t, int header, size_t width, const char *want)
{
	_cleanup_free_ char *text = printed(t, header, width);

	assert_string_equal(text, want);
}

static void make(struct table *t)
{
	table_init(t, columns, 4);
	fill(t, "vllm-chat", "2211", "active");
	fill(t, "é", NULL, "idle");
}

static void test_print(void **state)
{
	_cleanup_(table_free) struct table t;

	make(&t);
	expect(&t, 1, 0,
	       "NAME       PID STATE\n"
	       "vllm-chat 2211 active\n"
	       "é            - idle\n");
	expect(&t, 0, 0,
	       "vllm-chat 2211 active\n"
	       "é            - idle\n");
}

static void test_width(void **state)
{
	_cleanup_(table_free) struct table t;

	make(&t);
	expect(&t, 0, 19,
	       "vllm-c… 2211 active\n"
	       "é          - idle\n");
	/* No narrower than it can be read: the line is then too long. */
	expect(&t, 0, 3,
	       "vllm-… 2211 active\n"
	       "é         - idle\n");
}

static void test_select(void **state)
{
	_cleanup_(table_free) struct table t;
	const char *bad;

	make(&t);
	assert_int_equal(table_select(&t, "state,Note", &bad), 0);
	expect(&t, 1, 0,
	       "STATE  NOTE\n"
	       "active -\n"
	       "idle   -\n");
	assert_int_equal(table_select(&t, "all", &bad), 0);
	assert_int_equal(t.n_show, 4);
}

static void test_select_refuses(void **state)
{
	_cleanup_(table_free) struct table t;
	static const char list[] = "pid,nam,state";
	const char *bad;

	make(&t);
	assert_int_equal(table_select(&t, list, &bad), -EINVAL);
	assert_ptr_equal(bad, list + 4);
	assert_int_equal(table_select(&t, "", &bad), -EINVAL);
	assert_int_equal(table_select(&t, "pid,", &bad), -EINVAL);
	assert_int_equal(t.n_show, 3);
}

static void test_select_too_many(void **state)
{
	_cleanup_(table_free) struct table t;
	char list[4 * (TABLE_COLUMNS_MAX + 1)];
	const char *bad;

	make(&t);
	for (unsigned int i = 0; i <= TABLE_COLUMNS_MAX; i++)
		memcpy(list + 4 * i, "pid,", 4);
	list[sizeof(list) - 1] = '\0';
	assert_int_equal(table_select(&t, list, &bad), -E2BIG);
	list[sizeof(list) - 5] = '\0';
	assert_int_equal(table_select(&t, list, &bad), 0);
}

static void test_empty_cell_is_a_dash(void **state)
{
	_cleanup_(table_free) struct table t;

	table_init(&t, columns, 4);
	fill(&t, "", "1", "");
	expect(&t, 0, 0, "- 1 -\n");
}

static void test_cell_replaced(void **state)
{
	_cleanup_(table_free) struct table t;

	table_init(&t, columns, 4);
	fill(&t, "a", "1", "b");
	assert_int_equal(table_cell(&t, 0, "c"), 0);
	expect(&t, 0, 0, "c 1 b\n");
}

static void test_clean(void **state)
{
	static const struct {
		const char *text, *clean;
	} cases[] = {
		{ "", "" },
		{ "plain é … 𝄞", "plain é … 𝄞" },
		{ "a\033[31mred", "a?[31mred" },
		{ "line\nbreak\ttab\x7f", "line?break?tab?" },
		{ "\xff\xc3(", "?\?(" },     /* no UTF-8, and a character that is cut */
		{ "\xed\xa0\x80", "?\?\?" }, /* a surrogate */
		{ "\xc0\xaf", "?\?" },	     /* not the shortest form */
		{ "\xc2\x9b"
		  "31m",
		  "?\?31m" }, /* the one-character escape */
		{ "end\xe2\x82", "end?\?" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *clean = cell_clean(cases[i].text);

		assert_string_equal(clean, cases[i].clean);
	}
}

static void test_measure(void **state)
{
	assert_int_equal(cell_width(""), 0);
	assert_int_equal(cell_width("a…é"), 3);
	assert_int_equal(cell_prefix("a…é", 0), 0);
	assert_int_equal(cell_prefix("a…é", 2), 4);
	assert_int_equal(cell_prefix("a…é", 9), 6);
}

static void test_flow_wraps(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct flow f;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_non_null(out);
	flow_begin(&f, out, 20, "Pool");
	flow_add(&f, "%s", "0123456789");
	flow_add(&f, "%d", 12);
	flow_add(&f, "%s", "…56");
	flow_add(&f, "a piece that is longer than a line");
	flow_end(&f);
	fclose(out);
	assert_string_equal(text, "    Pool  0123456789\n"
				  "          12  …56\n"
				  "          a piece that is longer than a line\n");
}

static void test_listed(void **state)
{
	assert_true(word_listed("namespaces clients", "clients"));
	assert_true(word_listed("namespaces clients", "namespaces"));
	assert_false(word_listed("namespaces clients", "client"));
	assert_false(word_listed("", "clients"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_print),		cmocka_unit_test(test_width),
		cmocka_unit_test(test_select),		cmocka_unit_test(test_select_refuses),
		cmocka_unit_test(test_select_too_many), cmocka_unit_test(test_empty_cell_is_a_dash),
		cmocka_unit_test(test_cell_replaced),	cmocka_unit_test(test_clean),
		cmocka_unit_test(test_measure),		cmocka_unit_test(test_flow_wraps),
			cmocka_unit_test(test_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
