/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: which file counts, what is in force, and changes of it, all or nothing. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "daemon/config_file.h"
#include "daemon/configurator.h"

#define MEMORY GIB(10)

/* The folders below root, in the order in which they are made. */
static const char *const folders[] = {
	"/usr",
	"/usr/lib",
	"/usr/lib/kvpool",
	"/usr/lib/kvpool/kvpool.conf.d",
	"/etc",
	"/etc/kvpool",
	"/etc/kvpool/kvpool.conf.d",
	"/run",
	"/run/kvpool",
	"/run/kvpool/kvpool.conf.d",
};

#define VENDOR  "/usr/lib/kvpool/kvpool.conf.d/"
#define LOCAL   "/etc/kvpool/kvpool.conf.d/"
#define RUNTIME "/run/kvpool/kvpool.conf.d/"
#define FILE_   "/etc/kvpool/kvpool.conf"

static char root[64];
static struct complaints wrong;
static struct settings line;

/* What the one that listens was told. */
static struct told {
	unsigned int checks, applies;
	int refuse;
	uint32_t was, now;
} told;

static const char *path_of(const char *name)
{
	static char path[4][256];
	static unsigned int i;

	snprintf(path[++i % 4], sizeof(path[0]), "%s%s", root, name);
	return path[i % 4];
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	strcpy(root, "/tmp/kvpool-config-XXXXXX");
	assert(mkdtemp(root));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		assert(mkdir(path_of(folders[i]), 0700) == 0);
	memset(&told, 0, sizeof(told));
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	complaint_clear(&wrong);
	settings_clear(&line);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static int check(void *ctx, const struct config *now, char why[CONFIGURATOR_WHY_BYTES])
{
	told.checks++;
	snprintf(why, CONFIGURATOR_WHY_BYTES, "limits.max_clients: not today");
	return told.refuse ? -EINVAL : 0;
}

static void apply(void *ctx, const struct config *was, const struct config *now)
{
	told.applies++;
	told.was = was->limits.max_clients;
	told.now = now->limits.max_clients;
}

static const struct configurator_ops ops = { check, apply };

static int try_start(struct configurator **ret)
{
	struct config_places places;

	complaint_clear(&wrong);
	config_places_system(&places, root);
	return configurator_new(&places, &line, MEMORY, &wrong, ret);
}

static struct configurator *start(void)
{
	struct configurator *c = NULL;

	if (try_start(&c) < 0)
		fail_msg("%s", wrong.n ? wrong.lines[0] : "no complaint");
	configurator_listen(c, &ops, NULL);
	return c;
}

static uint32_t max_clients(const struct configurator *c)
{
	return configurator_config(c)->limits.max_clients;
}

static const struct config_key *key(const char *name, char glob[SETTING_GLOB_BYTES])
{
	char why[CONFIG_WHY_BYTES];
	const struct config_key *k;

	assert_int_equal(setting_parse_name(name, &k, glob, why), 0);
	return k;
}

static const struct setting *find(const struct configurator *c, const char *name)
{
	char glob[SETTING_GLOB_BYTES];
	const struct config_key *k = key(name, glob);

	return configurator_find(c, k, *glob ? glob : NULL);
}

static int set(struct configurator *c, const char *name, const char *value)
{
	char why[CONFIGURATOR_WHY_BYTES], glob[SETTING_GLOB_BYTES];
	const struct config_key *k = key(name, glob);

	return configurator_set(c, k, *glob ? glob : NULL, value, why);
}

/* Where the value of limits.max_clients comes from, below root. */
static void comes_from(const char *origin, uint32_t value)
{
	struct configurator *c = start();
	const struct setting *e = find(c, "limits.max_clients");
	const char *from = e->origin;

	if (!strncmp(from, root, strlen(root)))
		from += strlen(root);
	assert_string_equal(from, origin);
	assert_int_equal(max_clients(c), value);
	configurator_free(c);
}

static void order_of_layers(void **state)
{
	comes_from("default", 256);
	put(VENDOR "50-a.conf", "[limits]\nmax_clients = 1\n");
	comes_from(VENDOR "50-a.conf:2", 1);
	put(VENDOR "60-a.conf", "[limits]\n\nmax_clients = 2\n");
	comes_from(VENDOR "60-a.conf:3", 2);
	put(FILE_, "[limits]\nmax_clients = 3\n");
	comes_from(FILE_ ":2", 3);
	put(LOCAL "10-z.conf", "[limits]\nmax_clients = 4\n");
	comes_from(LOCAL "10-z.conf:2", 4);
	put(RUNTIME "00.conf", "[limits]\nmax_clients = 5\n");
	comes_from(RUNTIME "00.conf:2", 5);
	assert_int_equal(settings_add(&line, config_key_find("limits", "max_clients"), NULL, "6",
				      "command line"),
			 0);
	comes_from("command line", 6);
}

static void other_files_do_not_count(void **state)
{
	put(LOCAL "readme", "[limits]\nmax_clients = 4\n");
	put(LOCAL ".hidden.conf", "[limits]\nmax_clients = 4\n");
	put(LOCAL "a.conf~", "[limits]\nmax_clients = 4\n");
	put(LOCAL ".conf", "[limits]\nmax_clients = 4\n");
	comes_from("default", 256);
}

static void same_name_hides(void **state)
{
	put(VENDOR "50-a.conf", "[limits]\nmax_clients = 1\nmax_clients_per_user = 1\n");
	put(LOCAL "50-a.conf", "[limits]\nmax_clients_per_user = 2\n");
	comes_from("default", 256);
	put(RUNTIME "50-a.conf", "");
	put(LOCAL "50-a.conf", "[limits]\nmax_clients = 2\n");
	comes_from("default", 256);
	/* What is hidden is not even read. */
	put(VENDOR "50-a.conf", "nonsense");
	comes_from("default", 256);
}

static void link_to_null_masks(void **state)
{
	put(VENDOR "50-a.conf", "[limits]\nmax_clients = 1\n");
	assert_int_equal(symlink("/dev/null", path_of(LOCAL "50-a.conf")), 0);
	comes_from("default", 256);
	assert_int_equal(unlink(path_of(LOCAL "50-a.conf")), 0);
	assert_int_equal(symlink("../kvpool.conf.d/none", path_of(LOCAL "50-a.conf")), 0);
	comes_from("default", 256);
}

/* The start fails, and one complaint says that. */
static void fails(const char *says)
{
	struct configurator *c = NULL;

	assert_int_equal(try_start(&c), -EINVAL);
	assert_null(c);
	if (wrong.n != 1 || !strstr(wrong.lines[0], says))
		fail_msg("%zu complaints, the first is \"%s\"", wrong.n,
			 wrong.n ? wrong.lines[0] : "");
}

static void what_cannot_be_read(void **state)
{
	struct config_places places;
	struct configurator *c = NULL;

	assert_int_equal(mkdir(path_of(FILE_), 0700), 0);
	fails(FILE_ ": cannot be read: is no regular file");
	assert_int_equal(rmdir(path_of(FILE_)), 0);
	assert_int_equal(mkfifo(path_of(FILE_), 0600), 0);
	fails("is no regular file");
	assert_int_equal(unlink(path_of(FILE_)), 0);
	assert_int_equal(symlink("kvpool.conf", path_of(FILE_)), 0);
	fails(FILE_ ": cannot be read: Too many levels of symbolic links");
	assert_int_equal(unlink(path_of(FILE_)), 0);
	put(FILE_, "[host]\n");
	assert_int_equal(truncate(path_of(FILE_), CONFIG_FILE_MAX + 1), 0);
	fails("is larger than 1 MiB");
	assert_int_equal(unlink(path_of(FILE_)), 0);
	assert_int_equal(rmdir(path_of(LOCAL)), 0);
	put("/etc/kvpool/kvpool.conf.d", "x");
	fails("/etc/kvpool/kvpool.conf.d: cannot be read: Not a directory");
	/* The one file that was named must be there. */
	complaint_clear(&wrong);
	config_places_file(&places, path_of("/nothing"));
	assert_int_equal(configurator_new(&places, &line, MEMORY, &wrong, &c), -EINVAL);
	assert_int_equal(wrong.n, 1);
	assert_non_null(strstr(wrong.lines[0], "/nothing: cannot be read: No such file"));
}

static void not_permitted(void **state)
{
	if (geteuid() == 0)
		skip();
	put(FILE_, "[host]\n");
	assert_int_equal(chmod(path_of(FILE_), 0), 0);
	fails(FILE_ ": cannot be read: Permission denied");
}

/* Mistakes of all files, and the numbers of their lines. */
static void mistakes_of_all_files(void **state)
{
	struct configurator *c = NULL;

	put(VENDOR "a.conf", "[host]\nx = 1\n");
	put(FILE_, "[host]\nnuma = mars\n");
	put(RUNTIME "b.conf", "[moon]\n");
	assert_int_equal(try_start(&c), -EINVAL);
	assert_int_equal(wrong.n, 3);
	assert_non_null(strstr(wrong.lines[0], VENDOR "a.conf:2: host.x"));
	assert_non_null(strstr(wrong.lines[1], FILE_ ":2: host.numa = mars"));
	assert_non_null(strstr(wrong.lines[2], RUNTIME "b.conf:1: [moon]"));
}

static void no_memory_known(void **state)
{
	struct config_places places;
	struct configurator *c = NULL;

	config_places_system(&places, root);
	assert_int_equal(configurator_new(&places, &line, 0, &wrong, &c), -EINVAL);
	assert_non_null(strstr(wrong.lines[0], "host.pool_size"));
	complaint_clear(&wrong);
	put(FILE_, "[host]\npool_size = 1G\n");
	assert_int_equal(configurator_new(&places, &line, 0, &wrong, &c), 0);
	configurator_free(c);
}

static void has_names(const struct configurator_names *n, const char *expect)
{
	char text[512] = "";

	for (size_t i = 0; i < n->n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, n->v[i]);
	}
	assert_string_equal(text, expect);
}

static void reload(struct configurator *c, const char *changed, const char *restart)
{
	struct configurator_changes changes = { 0 };

	complaint_clear(&wrong);
	assert_int_equal(configurator_reload(c, &changes, &wrong), 0);
	has_names(&changes.changed, changed);
	has_names(&changes.restart, restart);
	configurator_changes_clear(&changes);
}

static void reloads(void **state)
{
	struct configurator *c = start();

	reload(c, "", "");
	put(FILE_, "[limits]\nmax_clients = 7\n[namespace a.b]\nttl = 1h\npriority = 7\n");
	reload(c, "limits.max_clients namespace.a.b.ttl namespace.a.b.priority", "");
	assert_int_equal(told.was, 256);
	assert_int_equal(told.now, 7);
	assert_int_equal(max_clients(c), 7);
	assert_int_equal(config_namespace(configurator_config(c), "a.b").priority, 7);
	/* The same in other words. */
	put(FILE_, "[namespace a.b]\npriority = 07\nttl = 60m\n[limits]\nmax_clients = 7\n");
	reload(c, "", "");
	put(FILE_, "[namespace a.b]\npriority = 8\n");
	reload(c, "limits.max_clients namespace.a.b.priority namespace.a.b.ttl", "");
	assert_int_equal(max_clients(c), 256);
	configurator_free(c);
}

static void restart_keys_wait(void **state)
{
	struct configurator *c = start();

	put(FILE_, "[host]\nmax_blocks = 99\n[limits]\nmax_clients = 7\n");
	reload(c, "limits.max_clients", "host.max_blocks");
	assert_int_equal(configurator_config(c)->host.max_blocks, 0);
	assert_string_equal(find(c, "host.max_blocks")->value, "auto");
	/* It is told as long as it is so. */
	reload(c, "", "host.max_blocks");
	put(FILE_, "[host]\nmax_blocks = auto\n");
	reload(c, "limits.max_clients", "");
	configurator_free(c);
	put(FILE_, "[host]\nmax_blocks = 99\n");
	c = start();
	assert_int_equal(configurator_config(c)->host.max_blocks, 99);
	put(FILE_, "");
	reload(c, "", "host.max_blocks");
	assert_int_equal(configurator_config(c)->host.max_blocks, 99);
	configurator_free(c);
}

static void nothing_of_a_wrong_one(void **state)
{
	struct configurator_changes changes = { 0 };
	struct configurator *c;

	put(FILE_, "[limits]\nmax_clients = 7\n");
	c = start();
	put(FILE_, "[limits]\nmax_clients = 8\nmax_namespaces = x\n");
	assert_int_equal(configurator_reload(c, &changes, &wrong), -EINVAL);
	assert_int_equal(wrong.n, 1);
	assert_non_null(strstr(wrong.lines[0], FILE_ ":3: limits.max_namespaces = x"));
	assert_int_equal(max_clients(c), 7);
	assert_string_equal(find(c, "limits.max_clients")->value, "7");
	assert_int_equal(told.checks + told.applies, 0);
	/* Sound, but whoever would have to do it can't. */
	put(FILE_, "[limits]\nmax_clients = 8\n");
	complaint_clear(&wrong);
	told.refuse = 1;
	assert_int_equal(configurator_reload(c, &changes, &wrong), -EINVAL);
	assert_int_equal(wrong.n, 1);
	assert_string_equal(wrong.lines[0], "limits.max_clients: not today");
	assert_int_equal(told.applies, 0);
	assert_int_equal(max_clients(c), 7);
	assert_int_equal(set(c, "limits.max_clients", "9"), -EINVAL);
	assert_int_equal(max_clients(c), 7);
	told.refuse = 0;
	reload(c, "limits.max_clients", "");
	assert_int_equal(max_clients(c), 8);
	configurator_free(c);
}

static void set_wins_until_it_is_unset(void **state)
{
	struct configurator *c;

	put(FILE_, "[limits]\nmax_clients = 7\n[namespace *]\nttl = 1h\n");
	assert_int_equal(settings_add(&line, config_key_find("limits", "max_clients"), NULL, "8",
				      "command line"),
			 0);
	c = start();
	assert_int_equal(max_clients(c), 8);
	assert_int_equal(set(c, "limits.max_clients", "9"), 0);
	assert_int_equal(told.now, 9);
	assert_string_equal(find(c, "limits.max_clients")->origin, "config set");
	put(FILE_, "[limits]\nmax_clients = 10\n[namespace *]\nttl = 1h\n");
	reload(c, "", "");
	assert_int_equal(max_clients(c), 9);
	assert_int_equal(set(c, "limits.max_clients", NULL), 0);
	assert_int_equal(max_clients(c), 8);
	assert_int_equal(set(c, "limits.max_clients", NULL), 0);
	/* Rules too, and they come behind those of the files. */
	assert_int_equal(set(c, "namespace.Q*.ttl", "2h"), 0);
	assert_int_equal(config_namespace(configurator_config(c), "Qwen").ttl_ns,
			 7200 * NSEC_PER_SEC);
	assert_int_equal(config_namespace(configurator_config(c), "x").ttl_ns, 3600 * NSEC_PER_SEC);
	assert_int_equal(set(c, "namespace.Q*.ttl", NULL), 0);
	assert_null(find(c, "namespace.Q*.ttl"));
	configurator_free(c);
}

/* The one of a view with that name. */
static struct configurator_item item(const struct configurator_view *v, const char *name)
{
	char full[SETTING_NAME_BYTES];

	for (size_t i = 0; i < configurator_view_count(v); i++) {
		struct configurator_item it = configurator_view_item(v, i);

		setting_name(it.key, it.glob, full);
		if (!strcmp(full, name))
			return it;
	}
	fail_msg("there is no %s", name);
	abort();
}

static void rules_are_bounded(void **state)
{
	struct configurator *c = start();
	char name[64];

	for (unsigned int i = 0; i < SETTINGS_RULES_MAX; i++) {
		snprintf(name, sizeof(name), "namespace.m%u.ttl", i);
		assert_int_equal(set(c, name, "1s"), 0);
	}
	assert_int_equal(set(c, "namespace.m0.priority", "7"), -EINVAL);
	assert_int_equal(set(c, "namespace.m0.ttl", "2s"), 0);
	assert_int_equal(set(c, "limits.max_clients", "7"), 0);
	assert_int_equal(set(c, "namespace.m1.ttl", NULL), 0);
	assert_int_equal(set(c, "namespace.m0.priority", "7"), 0);
	configurator_free(c);
}

static void views(void **state)
{
	struct configurator *c;
	struct configurator_view *v;

	put(FILE_, "[limits]\nmax_clients = 7\n[namespace a]\nttl = 1h\n");
	c = start();
	assert_int_equal(set(c, "cache.pin_budget", "10%"), 0);
	v = configurator_view(c);
	assert_int_equal(configurator_view_count(v), config_n_keys - 2 + 1);
	assert_string_equal(item(v, "limits.max_clients").value, "7");
	assert_null(item(v, "limits.max_clients").file_value);
	assert_string_equal(item(v, "cache.pin_budget").value, "10%");
	assert_string_equal(item(v, "cache.pin_budget").file_value, "20%");
	configurator_view_free(v);
	/* Written, but not read again. */
	put(FILE_,
	    "[limits]\nmax_clients = 8\n[cache]\npin_budget = 010%\n[namespace b]\nttl = 2h\n");
	v = configurator_view(c);
	assert_string_equal(item(v, "limits.max_clients").value, "7");
	assert_string_equal(item(v, "limits.max_clients").file_value, "8");
	assert_null(item(v, "cache.pin_budget").file_value);
	assert_null(item(v, "namespace.b.ttl").value);
	assert_string_equal(item(v, "namespace.b.ttl").file_value, "2h");
	assert_null(item(v, "namespace.a.ttl").file_value);
	configurator_view_free(v);
	/* What is wrong is not shown. */
	put(FILE_, "[limits]\nmax_clients = 9\nx = 1\n");
	v = configurator_view(c);
	assert_null(item(v, "limits.max_clients").file_value);
	configurator_view_free(v);
	configurator_free(c);
}

/* What is printed is a file that says the same. */
static void dump(void **state)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	struct configurator *c;
	struct settings again = SETTINGS_INIT;

	put(LOCAL "a.conf",
	    "[limits]\nmax_clients = 7\n[namespace Qwen2 7B]\nttl = 1h\npriority = 3\n"
	    "[namespace *]\npriority = 4\n");
	c = start();
	assert_non_null(f);
	configurator_dump(c, f);
	fclose(f);
	assert_non_null(strstr(text, "[limits]\nmax_clients = 7 # /tmp/kvpool-config-"));
	assert_non_null(strstr(text, LOCAL "a.conf:2\n"));
	assert_non_null(strstr(text, "numa = interleave # default\n"));
	assert_int_equal(config_file_parse(text, n, "dump", MEMORY, &again, &wrong), 0);
	assert_int_equal(wrong.n, 0);
	assert_int_equal(again.n, config_n_keys - 2 + 3);
	for (size_t i = 0; i < again.n; i++) {
		const struct setting *e = &again.v[i];

		assert_string_equal(configurator_find(c, e->key, e->glob)->value, e->value);
	}
	settings_clear(&again);
	free(text);
	configurator_free(c);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ROW(order_of_layers),
		ROW(other_files_do_not_count),
		ROW(same_name_hides),
		ROW(link_to_null_masks),
		ROW(what_cannot_be_read),
		ROW(not_permitted),
		ROW(mistakes_of_all_files),
		ROW(no_memory_known),
		ROW(reloads),
		ROW(restart_keys_wait),
		ROW(nothing_of_a_wrong_one),
		ROW(set_wins_until_it_is_unset), ROW(rules_are_bounded),
		ROW(views),
		ROW(dump),
	};

	log_open(LOG_EMERG, LOG_TO_STDERR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
