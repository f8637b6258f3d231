/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of kvpoold: what follows from it, and what is said of a wrong one. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "daemon/log.h"
#include "daemon/options.h"

#define ARGS_MAX 16

static const struct options_env user_env = {
	0, "/run/user/1000", GIB(10), "/cfg", "/h",
};
static const struct options_env root_env = { 1, NULL, GIB(100), NULL, NULL };

/* words: the arguments, separated by single blanks. */
static int parse_text(const char *words, const struct options_env *env, struct options *o,
		      char why[256])
{
	static char text[512];
	char *argv[ARGS_MAX] = { (char *)"kvpoold" };
	int argc = 1;

	snprintf(text, sizeof(text), "%s", words);
	for (char *w = strtok(text, " "); w && argc < ARGS_MAX - 1; w = strtok(NULL, " "))
		argv[argc++] = w;
	why[0] = '\0';
	return options_parse(argc, argv, env, o, why, 256);
}

static int parse(const char *words, const struct options_env *env, struct options *o, char why[256])
{
	int r = parse_text(words, env, o, why);

	if (r == OPTIONS_RUN || r == OPTIONS_CHECK || r == OPTIONS_DUMP)
		options_clear(o);
	return r;
}

/* The configuration that these words make, without files. */
static struct config *config(const char *words, const struct options_env *env)
{
	char why[256];
	struct options o;
	struct config *c;

	if (parse_text(words, env, &o, why) != OPTIONS_RUN)
		fail_msg("%s: %s", words, why);
	c = settings_config(&o.line, env->memory);
	assert_non_null(c);
	options_clear(&o);
	return c;
}

static void run(const char *words, const struct options_env *env, struct options *o)
{
	char why[256];
	int r = parse(words, env, o, why);

	if (r != OPTIONS_RUN)
		fail_msg("%s: %d, %s", words, r, why);
}

static void defaults_of_a_user(void **state)
{
	struct options o;
	struct config *c;

	run("", &user_env, &o);
	assert_int_equal(o.instance, INSTANCE_USER);
	assert_string_equal(o.socket, "/run/user/1000/kvpool/kvpool.sock");
	assert_string_equal(o.admin_socket, "/run/user/1000/kvpool/admin.sock");
	assert_int_equal(o.ready_fd, -1);
	assert_string_equal(o.places.file, "/cfg/kvpool/kvpool.conf");
	assert_string_equal(o.places.folders[0], "");
	assert_string_equal(o.places.folders[1], "/cfg/kvpool/kvpool.conf.d");
	assert_false(o.places.required);
	c = config("", &user_env);
	assert_int_equal(c->host.pool_bytes, GIB(10) / 4);
	assert_int_equal(c->host.max_blocks, 0);
	assert_int_equal(c->daemon.log_level, LOG_INFO);
	config_free(c);
}

static void defaults_of_root(void **state)
{
	struct options o;
	struct config *c;

	run("", &root_env, &o);
	assert_int_equal(o.instance, INSTANCE_SYSTEM);
	assert_string_equal(o.socket, "/run/kvpool/kvpool.sock");
	assert_string_equal(o.admin_socket, "/run/kvpool/admin.sock");
	assert_string_equal(o.places.folders[0], "/usr/lib/kvpool/kvpool.conf.d");
	assert_string_equal(o.places.file, "/etc/kvpool/kvpool.conf");
	assert_string_equal(o.places.folders[1], "/etc/kvpool/kvpool.conf.d");
	assert_string_equal(o.places.folders[2], "/run/kvpool/kvpool.conf.d");
	c = config("", &root_env);
	assert_int_equal(c->host.pool_bytes, GIB(8));
	config_free(c);
}

static void instances(void **state)
{
	struct options o;

	run("--system", &user_env, &o);
	assert_int_equal(o.instance, INSTANCE_SYSTEM);
	run("--user", &(struct options_env){ 1, "/x", GIB(1), NULL, NULL }, &o);
	assert_int_equal(o.instance, INSTANCE_USER);
	assert_string_equal(o.socket, "/x/kvpool/kvpool.sock");
	run("--socket /tmp/a", &user_env, &o);
	assert_int_equal(o.instance, INSTANCE_PRIVATE);
	assert_string_equal(o.socket, "/tmp/a");
	assert_string_equal(o.admin_socket, "/tmp/a.admin");
	run("--socket=/tmp/a --admin-socket=/tmp/b --user", &user_env, &o);
	assert_int_equal(o.instance, INSTANCE_USER);
	assert_string_equal(o.admin_socket, "/tmp/b");
	run("--admin-socket /tmp/b", &user_env, &o);
	assert_string_equal(o.socket, "/run/user/1000/kvpool/kvpool.sock");
	assert_string_equal(o.admin_socket, "/tmp/b");
}

static void values(void **state)
{
	struct options o;
	struct config *c =
		config("--pool-size 80% --max-blocks 1000 --log-level warning", &user_env);

	assert_int_equal(c->host.pool_bytes, GIB(8));
	assert_int_equal(c->host.max_blocks, 1000);
	assert_int_equal(c->daemon.log_level, LOG_WARNING);
	config_free(c);
	run("--ready-fd 7", &user_env, &o);
	assert_int_equal(o.ready_fd, 7);
	/* The last one wins, so that a script can add to what it was given. */
	c = config("--pool-size 1G --host.pool_size=64M --log-level=debug --log-target stderr",
		   &user_env);
	assert_int_equal(c->host.pool_bytes, MIB(64));
	assert_int_equal(c->daemon.log_level, LOG_DEBUG);
	assert_int_equal(c->daemon.log_target, LOG_TO_STDERR);
	config_free(c);
}

/* Each key of the table is an option, and rules are. */
static void keys(void **state)
{
	char words[128], why[256];
	struct options o;
	struct config *c;

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *k = &config_keys[i];

		if (config_key_is_rule(k))
			continue;
		snprintf(words, sizeof(words), "--%s.%s=%s", k->section, k->name, k->value);
		assert_int_equal(parse_text(words, &user_env, &o, why), OPTIONS_RUN);
		assert_int_equal(o.line.n, 1);
		assert_ptr_equal(o.line.v[0].key, k);
		assert_string_equal(o.line.v[0].value, k->value);
		assert_string_equal(o.line.v[0].origin, "command line");
		options_clear(&o);
	}
	c = config("--namespace.Qwen2.5-7B.ttl=1h --namespace.*.priority=3 --host.numa node:2",
		   &user_env);
	assert_int_equal(c->host.numa.policy, CONFIG_NUMA_NODE);
	assert_int_equal(c->host.numa.node, 2);
	assert_int_equal(c->n_rules, 2);
	assert_int_equal(config_namespace(c, "Qwen2.5-7B").ttl_ns, 3600000000000);
	assert_int_equal(config_namespace(c, "Qwen2.5-7B").priority, 3);
	assert_int_equal(config_namespace(c, "other").ttl_ns, 0);
	config_free(c);
}

static void files(void **state)
{
	static const struct options_env bare = { 0, "/x", GIB(1), "", "/home-of" };
	struct options o;
	char why[256];

	run("--socket /tmp/a", &root_env, &o);
	assert_string_equal(o.places.file, "");
	run("--socket /tmp/a --config /tmp/c", &root_env, &o);
	assert_string_equal(o.places.file, "/tmp/c");
	assert_string_equal(o.places.folders[1], "");
	assert_true(o.places.required);
	run("--socket /tmp/a --system --config-root /r", &user_env, &o);
	assert_string_equal(o.places.file, "/r/etc/kvpool/kvpool.conf");
	run("", &bare, &o);
	assert_string_equal(o.places.file, "/home-of/.config/kvpool/kvpool.conf");
	assert_int_equal(parse("--check-config /tmp/c", &user_env, &o, why), OPTIONS_CHECK);
	assert_string_equal(o.places.file, "/tmp/c");
	assert_int_equal(parse("--check-config", &user_env, &o, why), OPTIONS_CHECK);
	assert_string_equal(o.places.file, "/cfg/kvpool/kvpool.conf");
	assert_int_equal(parse("--dump-config --config=/tmp/c", &user_env, &o, why), OPTIONS_DUMP);
	assert_string_equal(o.places.file, "/tmp/c");
}

static void help_and_version(void **state)
{
	struct options o;
	char why[256], help[4096];

	assert_int_equal(parse("--help", &user_env, &o, why), OPTIONS_HELP);
	assert_int_equal(parse("--version --pool-size 1G", &user_env, &o, why), OPTIONS_VERSION);
	options_help(help, sizeof(help));
	assert_non_null(strstr(help, "--admin-socket PATH"));
	assert_non_null(strstr(help, "kvpoold(8)"));
	options_help(help, 10);
	assert_int_equal(strlen(help), 9);
}

static void refused(void **state)
{
	static const struct {
		const char *words, *says;
	} bad[] = {
		{ "--nonsense", "--nonsense: is no option" },
		{ "-x", "is no option" },
		{ "--pool-size", "needs an argument" },
		{ "--pool-size 12GB", "--pool-size 12GB: has no known unit" },
		{ "--pool-size 0", "at least one byte" },
		{ "--max-blocks 0", "--max-blocks 0: is too small" },
		{ "--max-blocks 4294967295", "is too large" },
		{ "--max-blocks 2000000000", "is too large" },
		{ "--log-level loud", "--log-level loud: is no level" },
		{ "--ready-fd x", "--ready-fd x: is no number" },
		{ "--ready-fd -1", "is no number" },
		{ "--socket=", "is empty" },
		{ "--system --user", "give one of them" },
		{ "--socket /a --admin-socket /a", "is the same" },
		{ "serve", "serve: takes no arguments" },
		{ "--version=3", "is no option" },
		{ "--pool-sise 1G", "--pool-sise: is no option: did you mean \"--pool-size\"?" },
		{ "--host.poolsize=1G", "did you mean \"--host.pool_size\"?" },
		{ "--huge-pages always", "did you mean \"--host.huge_pages\"?" },
		{ "--socket /tmp/a --config-root /r", "--config-root: a private instance" },
		{ "--host.numa", "needs an argument" },
		{ "--host.numa=node:x", "--host.numa node:x: is no number" },
		{ "--namespace.M.ttl", "needs a value, written behind" },
		{ "--namespace.M.tll=1h", "--namespace.M.tll: is no key of section namespace: "
					  "did you mean \"ttl\"?" },
		{ "--namespace.M.ttl=1", "--namespace.M.ttl 1: has no unit of time" },
		{ "--namespace.ttl=1h", "is no key" },
		{ "--config=", "is empty" },
		{ "--config /a --config-root /b", "give one of them" },
		{ "--check-config /a /b", "/a: takes no arguments" },
		{ "--dump-config /a", "/a: takes no arguments" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct options o;
		char why[256];
		int r = parse(bad[i].words, &user_env, &o, why);

		if (r != -EINVAL || !strstr(why, bad[i].says))
			fail_msg("%s: %d, says \"%s\"", bad[i].words, r, why);
	}
}

static void long_paths(void **state)
{
	char words[256] = "--socket ", why[256];
	struct options o;

	memset(words + 9, 'a', 107);
	words[116] = '\0';
	/* It fits; with ".admin" behind it, it does not. */
	assert_int_equal(parse(words, &user_env, &o, why), -EINVAL);
	assert_non_null(strstr(why, ".admin"));
	strcat(words, " --admin-socket /b");
	assert_int_equal(parse(words, &user_env, &o, why), OPTIONS_RUN);
	assert_int_equal(strlen(o.socket), 107);
	memset(words + 9, 'a', 108);
	words[117] = '\0';
	assert_int_equal(parse(words, &user_env, &o, why), -EINVAL);
	assert_non_null(strstr(why, "107 bytes"));
}

static void no_runtime_dir(void **state)
{
	static const struct options_env bare = { 0, NULL, GIB(1), NULL, NULL },
					empty = { 0, "", GIB(1), NULL, NULL };
	struct options o;
	char why[256];

	assert_int_equal(parse("", &bare, &o, why), -EINVAL);
	assert_non_null(strstr(why, "$XDG_RUNTIME_DIR is not set"));
	assert_int_equal(parse("--user", &empty, &o, why), -EINVAL);
	run("--socket /tmp/a", &bare, &o);
}

/* A machine that cannot tell how much memory it has. */
static void no_memory_known(void **state)
{
	static const struct options_env env = { 1, NULL, 0, NULL, NULL };
	struct options o;
	struct config *c;
	char why[256];

	assert_int_equal(parse("--pool-size 50%", &env, &o, why), -EINVAL);
	assert_int_equal(parse("--pool-size auto", &env, &o, why), -EINVAL);
	assert_non_null(strstr(why, "--pool-size auto: needs to know how much memory there is"));
	c = config("--pool-size 1G", &env);
	assert_int_equal(c->host.pool_bytes, GIB(1));
	config_free(c);
	c = config("", &env);
	assert_int_equal(c->host.pool_bytes, 0);
	config_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_of_a_user),
		cmocka_unit_test(defaults_of_root),
		cmocka_unit_test(instances),
		cmocka_unit_test(values),
		cmocka_unit_test(keys),
		cmocka_unit_test(files),
		cmocka_unit_test(help_and_version),
		cmocka_unit_test(refused),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(no_runtime_dir),
		cmocka_unit_test(no_memory_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
