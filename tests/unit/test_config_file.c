/* SPDX-License-Identifier: Apache-2.0 */
/* One file of the configuration: what it sets, and what is said of what is wrong, line by line. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "daemon/config_file.h"

static struct settings settings;
static struct complaints wrong;

static int clear(void **state)
{
	settings_clear(&settings);
	complaint_clear(&wrong);
	return 0;
}

static void parse_n(const char *text, size_t n)
{
	clear(NULL);
	assert_int_equal(config_file_parse(text, n, "f", GIB(10), &settings, &wrong), 0);
}

static void parse(const char *text)
{
	parse_n(text, strlen(text));
}

static void is(size_t i, const char *name, const char *value, const char *origin)
{
	char full[SETTING_NAME_BYTES];

	assert_true(i < settings.n);
	setting_name(settings.v[i].key, settings.v[i].glob, full);
	assert_string_equal(full, name);
	assert_string_equal(settings.v[i].value, value);
	assert_string_equal(settings.v[i].origin, origin);
}

/* Sound, and sets one thing. */
static void sets(const char *text, const char *name, const char *value, const char *origin)
{
	parse(text);
	if (wrong.n)
		fail_msg("\"%s\": %s", text, wrong.lines[0]);
	assert_int_equal(settings.n, 1);
	is(0, name, value, origin);
}

static void values(void **state)
{
	sets("[host]\npool_size = 16G\n", "host.pool_size", "16G", "f:2");
	sets("[host]\npool_size=16G", "host.pool_size", "16G", "f:2");
	sets("\n \n[host]\n\n\t pool_size\t=  80%\t\n", "host.pool_size", "80%", "f:5");
	sets("[ host ]\r\npool_size = 1G\r\n", "host.pool_size", "1G", "f:2");
	sets("\xef\xbb\xbf[host]\npool_size = 1G\n", "host.pool_size", "1G", "f:2");
	sets("[namespace Qwen2.5 7B]\nttl = 1h\n", "namespace.Qwen2.5 7B.ttl", "1h", "f:2");
	sets("[namespace\t Qwen[23]*  ]\nttl = 1h\n", "namespace.Qwen[23]*.ttl", "1h", "f:2");
	sets("[namespace Modell-\xc3\xa4]\nttl = 1h\n", "namespace.Modell-\xc3\xa4.ttl", "1h",
	     "f:2");
	/* A model may have a name that is longer than what inih takes for the name of a section. */
	sets("[namespace 123456789-123456789-123456789-123456789-123456789-123456789]\nttl = 1h\n",
	     "namespace.123456789-123456789-123456789-123456789-123456789-123456789.ttl", "1h",
	     "f:2");
	parse("");
	assert_int_equal(settings.n + wrong.n, 0);
	parse("[host]\n[cache]\n");
	assert_int_equal(settings.n + wrong.n, 0);
}

static void comments(void **state)
{
	sets("# a\n; b\n  # c\n[host] # d\npool_size = 1G # e\n", "host.pool_size", "1G", "f:5");
	sets("[host] ; d\npool_size = 1G ; e # f\n", "host.pool_size", "1G", "f:2");
	sets("[namespace a#b;c]\nttl = 1h\n", "namespace.a#b;c.ttl", "1h", "f:2");
	sets("#[nonsense\n#x\n[host]\n#pool_size = 3\npool_size = 1G\n", "host.pool_size", "1G",
	     "f:5");
}

/* Its one complaint. */
static void complains(const char *text, const char *says)
{
	parse(text);
	if (wrong.n != 1 || !strstr(wrong.lines[0], says))
		fail_msg("\"%s\": %zu complaints, the first is \"%s\"", text, wrong.n,
			 wrong.n ? wrong.lines[0] : "");
}

static void mistakes(void **state)
{
	complains("[host]\npool_sizes = 1G\n",
		  "f:2: host.pool_sizes: is no key of section host: did you mean \"pool_size\"?");
	complains("[host]\ncolour = 1G\n",
		  "f:2: host.colour: is no key of section host (kvpool.conf");
	complains("[hots]\npool_size = 1G\n",
		  "f:1: [hots]: there is no section hots: did you mean \"host\"?");
	complains("[gpu]\npool_size = 1G\n", "f:1: [gpu]: there is no section gpu");
	complains("[]\npool_size = 1G\n", "f:1: []: there is no section ");
	complains(
		"\n[host]\npool_size = 12GB\n",
		"f:3: host.pool_size = 12GB: has no known unit (K, M, G, T, KiB, MiB, GiB, TiB or "
		"%): give auto, or a size from 64K to 8T");
	complains("[host]\npool_size =\n", "f:2: host.pool_size = : is empty");
	complains("[host]\npool_size = # 1G\n", "f:2: host.pool_size = : is empty");
	complains("[host]\npool_size\n", "f:2: is neither KEY = VALUE");
	complains("[host]\nnuma = local\n pool_size", "f:3: is neither KEY = VALUE");
	complains("[host]\n= 1G\n", "f:2: host.: is no key of section host");
	complains("pool_size = 1G\n[host]\n", "f:1: pool_size: stands before the first [SECTION]");
	complains("[host\npool_size = 1G\n", "f:1: the name of the section does not end");
	complains("[host] pool_size = 1G\n", "f:1: there is more behind the name");
	complains("[namespace]\nttl = 1h\n", "f:1: [namespace]: says no model");
	complains("[namespace ]\nttl = 1h\n", "f:1: [namespace]: says no model");
	complains("[namespaces a]\nttl = 1h\n",
		  "f:1: [namespaces a]: there is no section namespaces");
	complains("[namespace \xff]\nttl = 1h\n", "f:1: [namespace]: has a name that is not UTF-8");
	complains("[namespace a]\nttl = 5\n", "f:2: namespace.a.ttl = 5: has no unit of time");
	complains("[namespace a]\npriority = 100\n",
		  "f:2: namespace.a.priority = 100: is too large: give a number from 1 to 99");
	complains("[host]\nnuma = local\nnuma = off\n",
		  "f:3: host.numa: is set before, at f:2: leave one of them out");
	complains("[namespace a]\nttl = 1h\n[host]\n[namespace a]\nttl = 2h\n",
		  "f:5: namespace.a.ttl: is set before, at f:2");
	/* Nobody's terminal obeys. */
	complains("[host]\n\x1b[31m = 1\n", "f:2: host.?[31m: is no key");
}

static void zero_bytes(void **state)
{
	static const char text[] = "[host]\npool_size = 1G\0\nnuma = off\n";

	parse_n(text, sizeof(text) - 1);
	assert_int_equal(wrong.n, 1);
	assert_non_null(strstr(wrong.lines[0], "f:2: has a byte that is 0"));
	assert_int_equal(settings.n, 1);
	is(0, "host.numa", "off", "f:3");
}

static void long_lines(void **state)
{
	char text[512];

	/* As the page says: 198 bytes. */
	snprintf(text, sizeof(text), "[host]\npool_size = %*s\n", 198 - 12, "1G");
	sets(text, "host.pool_size", "1G", "f:2");
	snprintf(text, sizeof(text), "[host]\npool_size = %*s\nnuma = off\n", 199 - 12, "1G");
	complains(text, "f:2: is longer than 198 bytes");
	assert_int_equal(settings.n, 1);
	is(0, "host.numa", "off", "f:3");
	/* Comments may be as long as they like. */
	snprintf(text, sizeof(text), "# %*s\n[host]\nnuma = off", 400, "x");
	sets(text, "host.numa", "off", "f:3");
}

/* All mistakes are told, and what is sound between them is taken. */
static void all_of_them(void **state)
{
	parse("x = 1\n[host]\npool_size = 5X\nnuma = local\nhuge = 1\n[what]\nx = 1\n[limits]\n"
	      "max_clients = 0\nmax_clients = 7\nnonsense\n");
	assert_int_equal(wrong.n, 6);
	assert_int_equal(complaint_kept(&wrong), 6);
	for (size_t i = 0; i < 6; i++) {
		static const int lines[] = { 1, 3, 5, 6, 9, 11 };
		char at[16];

		snprintf(at, sizeof(at), "f:%d: ", lines[i]);
		assert_int_equal(strncmp(wrong.lines[i], at, strlen(at)), 0);
	}
	assert_int_equal(settings.n, 2);
	is(0, "host.numa", "local", "f:4");
	is(1, "limits.max_clients", "7", "f:10");
}

static void summary(void **state)
{
	char text[256];

	parse("[host]\nx = 1\n");
	complaint_summary(&wrong, text, sizeof(text));
	assert_string_equal(text, wrong.lines[0]);
	parse("[host]\nx = 1\ny = 1\nz = 1\n");
	complaint_summary(&wrong, text, sizeof(text));
	assert_non_null(strstr(text, "f:2: host.x"));
	assert_non_null(strstr(text, "(and 2 more: kvpoold --check-config lists them)"));
}

/* More mistakes than are kept still count. */
static void many_mistakes(void **state)
{
	char text[8 * COMPLAINTS_KEPT + 64] = "[host]\n";

	for (unsigned int i = 0; i < COMPLAINTS_KEPT + 10; i++)
		strcat(text, "x = 1\n");
	parse(text);
	assert_int_equal(wrong.n, COMPLAINTS_KEPT + 10);
	assert_int_equal(complaint_kept(&wrong), COMPLAINTS_KEPT);
}

/* Not more than can be compared with one another in no time. */
static void many_rules(void **state)
{
	static char text[SETTINGS_RULES_MAX * 32 + 64];
	size_t n = 0;

	for (unsigned int i = 0; i < SETTINGS_RULES_MAX; i++)
		n += (size_t)sprintf(text + n, "[namespace m%u]\nttl = 1s\n", i);
	parse(text);
	assert_int_equal(wrong.n, 0);
	assert_int_equal(settings.n, SETTINGS_RULES_MAX);
	strcpy(text + n, "[namespace one]\npriority = 1\n[host]\npool_size = 1G\n");
	parse(text);
	assert_int_equal(wrong.n, 1);
	assert_string_equal(wrong.lines[0],
			    "f:2050: namespace.one.priority: is one key too many of [namespace] "
			    "sections: there may be 1024");
	assert_int_equal(settings.n, SETTINGS_RULES_MAX + 1);
}

/* It is quoted on terminals and in answers. */
static void unclean_values(void **state)
{
	parse("[host]\npool_size = \xc3(\x1b[31m\n");
	assert_int_equal(wrong.n, 1);
	assert_non_null(strstr(wrong.lines[0], "f:2: host.pool_size = ?(?[31m: is no number"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),     cmocka_unit_test(comments),
		cmocka_unit_test(mistakes),   cmocka_unit_test(zero_bytes),
		cmocka_unit_test(long_lines), cmocka_unit_test(all_of_them),
		cmocka_unit_test(summary),    cmocka_unit_test(many_mistakes),
		cmocka_unit_test(many_rules), cmocka_unit_test(unclean_values),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
