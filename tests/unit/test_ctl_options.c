/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of kvpoolctl, and the socket that it means. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "tools/kvpoolctl/endpoint.h"
#include "tools/kvpoolctl/flag.h"
#include "tools/kvpoolctl/options.h"
#include "tools/kvpoolctl/verb.h"
#include "tools/kvpoolctl/word.h"

#define ARGS_MAX 8

/* Splits a line at its blanks and parses it. The words stay alive until the next call. */
static enum ctl_exit parse(const char *line, struct options *o)
{
	static char words[256];
	static char *argv[ARGS_MAX + 2];
	int argc = 0;
	char *at = words;

	snprintf(words, sizeof(words), "%s", line);
	argv[argc++] = "kvpoolctl";
	for (char *w; (w = strsep(&at, " "));)
		if (*w && argc <= ARGS_MAX)
			argv[argc++] = w;
	argv[argc] = NULL;
	return options_parse(argc, argv, o);
}

static void test_defaults(void **state)
{
	struct options o;

	assert_int_equal(parse("", &o), EXIT_OK);
	assert_int_equal(o.n_args, 0);
	assert_int_equal(o.instance, INSTANCE_ANY);
	assert_int_equal(o.json, OPTIONS_JSON_OFF);
	assert_int_equal(o.timeout_ns, 5 * NSEC_PER_SEC);
	assert_int_equal(o.given, 0);
}

static void test_options(void **state)
{
	struct options o;

	assert_int_equal(parse("flush --namespace m --dry-run --yes --timeout 200ms -q", &o),
			 EXIT_OK);
	assert_int_equal(o.n_args, 1);
	assert_string_equal(o.args[0], "flush");
	assert_string_equal(o.namespace, "m");
	/* It is not the same as none, which means all. */
	assert_int_equal(parse("flush --namespace= --yes", &o), EXIT_USAGE);
	assert_true(o.dry_run && o.yes && o.quiet);
	assert_int_equal(o.timeout_ns, 200 * NSEC_PER_MSEC);
	assert_int_equal(parse("--timeout 1m30s --timeout 7", &o), EXIT_OK);
	assert_int_equal(o.timeout_ns, 7 * NSEC_PER_SEC);
	assert_int_equal(parse("--user clients -o all --bytes --no-legend", &o), EXIT_OK);
	assert_int_equal(o.instance, INSTANCE_USER);
	assert_string_equal(o.columns, "all");
	assert_true(o.bytes && o.no_legend);
	assert_int_equal(parse("--system -h --version", &o), EXIT_OK);
	assert_true(o.help && o.version);
	assert_int_equal(o.instance, INSTANCE_SYSTEM);
}

static void test_json_modes(void **state)
{
	static const struct {
		const char *line;
		enum options_json json;
	} cases[] = {
		{ "--json", OPTIONS_JSON_AUTO },           { "-j", OPTIONS_JSON_AUTO },
		{ "--json=short", OPTIONS_JSON_SHORT },    { "--json=pretty", OPTIONS_JSON_PRETTY },
		{ "--json --json=off", OPTIONS_JSON_OFF }, { "--json status", OPTIONS_JSON_AUTO },
	};
	struct options o;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(cases[i].line, &o), EXIT_OK);
		assert_int_equal(o.json, cases[i].json);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"--jsn",         "-x",           "-jx",         "--json=yes", "--timeout 0",
		"--timeout 0.5", "--timeout 2d", "--timeout x", "--timeout",  "--socket",
		"--bytes=1",
	};
	struct options o = { .n_args = 42 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(bad[i], &o), EXIT_USAGE);
	assert_int_equal(o.n_args, 42);
}

static void test_check(void **state)
{
	struct options o;

	assert_int_equal(parse("--dry-run", &o), EXIT_OK);
	assert_int_equal(options_check(&o, "flush"), EXIT_OK);
	assert_int_equal(options_check(&o, "status"), EXIT_USAGE);
	assert_int_equal(parse("--bytes --json -q --timeout 1", &o), EXIT_OK);
	assert_int_equal(options_check(&o, "status"), EXIT_OK);
	assert_int_equal(options_check(&o, "ping"), EXIT_USAGE);
}

static void test_verbs(void **state)
{
	assert_string_equal(verb_find("status")->name, "status");
	assert_null(verb_find("stat"));
	assert_string_equal(verb_suggest("stauts")->name, "status");
	assert_string_equal(verb_suggest("client")->name, "clients");
	assert_string_equal(verb_suggest("namespace")->name, "namespaces");
	assert_null(verb_suggest("reboot"));
}

static void expect_words_are_verbs(const char *list)
{
	char word[32];

	for (; *list; list += strspn(list, " ")) {
		size_t n = strcspn(list, " ");

		snprintf(word, sizeof(word), "%.*s", (int)n, list);
		assert_non_null(verb_find(word));
		list += n;
	}
}

/* Rows name verbs that there are; rows of one option fill one member, and never the same verb's. */
static void test_flags(void **state)
{
	const struct flag *f, *first;
	unsigned int n = 0;

	for (; (f = flag_row(n)); n++) {
		first = flag_row(flag_first(f));
		assert_true(*f->name || f->letter);
		assert_true(f->at == first->at && f->kind == first->kind && !f->arg == !first->arg);
		assert_true(!!f->choices == (f->value == VALUE_CHOICE));
		assert_true(!f->arg == (f->kind == FLAG_SET));
		if (f->verbs)
			expect_words_are_verbs(f->verbs);
		for (unsigned int i = flag_first(f); i < n; i++)
			if (flag_first(flag_row(i)) == flag_first(f))
				assert_false(word_listed(f->verbs, flag_row(i)->verbs));
	}
	assert_true(n <= FLAG_ROWS_MAX);
	assert_null(flag_row(n + 1));
}

/* Every verb can be run, has its texts, and the columns of -o when it lists something. */
static void test_verb_rows(void **state)
{
	const struct verb *v;

	for (unsigned int i = 0; (v = verb_row(i)); i++) {
		const struct flag *columns = flag_row(0);

		for (unsigned int j = 0; strcmp(columns->name, "output"); j++)
			columns = flag_row(j);
		assert_ptr_equal(verb_find(v->name), v);
		assert_true(v->run && *v->help && *v->about && *v->example);
		assert_int_equal(!v->args[0], !v->max_args && v->group != VERB_UNDERSTAND);
		assert_int_equal(!!v->listing, flag_applies(columns, v->name));
		assert_true(v->min_args <= v->max_args);
		for (unsigned int c = 0; v->listing && c < v->listing->n_columns; c++)
			assert_true(v->listing->columns[c].title && v->listing->columns[c].help);
	}
}

/* The same name may mean two things: a number to one verb, a file to others. */
static void test_shared_name(void **state)
{
	struct options o;

	assert_int_equal(parse("capacity --tokens 5", &o), EXIT_OK);
	assert_int_equal(options_check(&o, "capacity"), EXIT_OK);
	assert_int_equal(options_check(&o, "explain"), EXIT_OK);
	assert_int_equal(options_check(&o, "pin"), EXIT_OK);
	assert_int_equal(options_check(&o, "status"), EXIT_USAGE);
	assert_string_equal(o.tokens, "5");
}

static void test_values(void **state)
{
	struct options o;

	assert_int_equal(parse("pin x --ttl 1h30m --priority 99 --label a", &o), EXIT_OK);
	assert_int_equal(o.ttl_ns, 5400 * NSEC_PER_SEC);
	assert_int_equal(o.priority, 99);
	assert_string_equal(o.label, "a");
	assert_int_equal(parse("log-level debug --for 600", &o), EXIT_OK);
	assert_int_equal(o.for_ns, 600 * NSEC_PER_SEC);
	assert_int_equal(parse("prefixes -n 7 --sort age", &o), EXIT_OK);
	assert_int_equal(o.limit, 7);
	assert_int_equal(parse("prefixes -n 257", &o), EXIT_USAGE);
	assert_int_equal(parse("pin x --priority 0", &o), EXIT_USAGE);
	assert_int_equal(parse("pin x --ttl 500ms", &o), EXIT_USAGE);
	assert_int_equal(parse("pin x --ttl 200y", &o), EXIT_USAGE);
}

/* An empty folder in $XDG_RUNTIME_DIR's place, and no other variable. */
static int setup(void **state)
{
	static char dir[] = "/tmp/kvpool-test-XXXXXX";

	unsetenv("KVPOOL_SOCKET");
	unsetenv("KVPOOL_ADMIN_SOCKET");
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	*state = mkdtemp(dir);
	return *state && !setenv("XDG_RUNTIME_DIR", dir, 1) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/kvpool", (char *)*state);
	rmdir(path);
	return rmdir(*state);
}

static void expect_path(const struct options *o, const char *format, const char *dir)
{
	struct endpoint e;
	char want[256];

	snprintf(want, sizeof(want), format, dir);
	assert_int_equal(endpoint_find(o, &e), EXIT_OK);
	assert_string_equal(e.addr.sun_path, want);
}

static void test_instances(void **state)
{
	struct options any = { 0 }, system = { .instance = INSTANCE_SYSTEM };
	struct options user = { .instance = INSTANCE_USER };
	char path[256];

	expect_path(&any, "/run/kvpool/admin.sock", "");
	expect_path(&user, "%s/kvpool/admin.sock", *state);
	snprintf(path, sizeof(path), "%s/kvpool", (char *)*state);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_path(&any, "%s/kvpool/admin.sock", *state);
	expect_path(&system, "/run/kvpool/admin.sock", "");
}

static void test_environment(void **state)
{
	struct options any = { 0 }, user = { .instance = INSTANCE_USER };

	setenv("KVPOOL_SOCKET", "/x/client", 1);
	expect_path(&any, "/x/client.admin", "");
	setenv("KVPOOL_ADMIN_SOCKET", "/x/other", 1);
	expect_path(&any, "/x/other", "");
	expect_path(&user, "%s/kvpool/admin.sock", *state);
	setenv("KVPOOL_ADMIN_SOCKET", "", 1);
	expect_path(&any, "/x/client.admin", "");
}

static void test_socket_option(void **state)
{
	char path[256], admin[300];
	struct options o = { .socket = path };
	int fd;

	setenv("KVPOOL_ADMIN_SOCKET", "/x/other", 1);
	snprintf(path, sizeof(path), "%s/s", (char *)*state);
	expect_path(&o, "%s/s", *state);
	snprintf(admin, sizeof(admin), "%s.admin", path);
	fd = open(admin, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	expect_path(&o, "%s/s.admin", *state);
	unlink(admin);
}

static void test_bad_paths(void **state)
{
	struct options any = { 0 }, user = { .instance = INSTANCE_USER };
	struct options option = { .socket = "" };
	struct endpoint e = { .hint = "untouched" };
	char path[120];

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(endpoint_find(&option, &e), EXIT_USAGE);
	option.socket = path;
	assert_int_equal(endpoint_find(&option, &e), EXIT_USAGE);
	setenv("KVPOOL_SOCKET", path, 1);
	assert_int_equal(endpoint_find(&any, &e), EXIT_BAD_CONFIG);
	setenv("KVPOOL_ADMIN_SOCKET", path, 1);
	assert_int_equal(endpoint_find(&any, &e), EXIT_BAD_CONFIG);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(endpoint_find(&user, &e), EXIT_BAD_CONFIG);
	assert_string_equal(e.hint, "untouched");
}

/* The longest path that fits is taken as it is. */
static void test_longest_path(void **state)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct options o = { .socket = path };

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	expect_path(&o, "%s", path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_json_modes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_verb_rows),
		cmocka_unit_test(test_shared_name),
		cmocka_unit_test(test_values),
		cmocka_unit_test_setup_teardown(test_instances, setup, teardown),
		cmocka_unit_test_setup_teardown(test_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_socket_option, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest_path, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
