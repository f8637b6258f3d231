/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "daemon/options.h"

/* Names of keys as options, and what --help has of them. */
#define OPTIONS_NAME_BYTES 64u
#define OPTIONS_LINE_BYTES 40u

/* What the arguments said, before anything is derived from it. */
struct given {
	const char *socket, *admin_socket;
	const char *config, *root;
	int system, user;
	int help, version, check, dump;
	int ready_fd;
	uint64_t memory;
	struct settings line;
	char why[CONFIG_WHY_BYTES]; /* of a value */
};

/* Each takes the option's argument; returns 0, or -EINVAL and *why about it. */
static int take_system(struct given *g, const char *arg, const char **why)
{
	g->system = 1;
	return 0;
}

static int take_user(struct given *g, const char *arg, const char **why)
{
	g->user = 1;
	return 0;
}

static int take_path(const char **to, const char *arg, const char **why)
{
	if (!*arg || strlen(arg) >= OPTIONS_PATH_BYTES) {
		*why = *arg ? "is longer than the 107 bytes that a socket's path may have"
			    : "is empty";
		return -EINVAL;
	}
	*to = arg;
	return 0;
}

static int take_socket(struct given *g, const char *arg, const char **why)
{
	return take_path(&g->socket, arg, why);
}

static int take_admin_socket(struct given *g, const char *arg, const char **why)
{
	return take_path(&g->admin_socket, arg, why);
}

static int take_file(const char **to, const char *arg, const char **why)
{
	if (!*arg || strlen(arg) >= PATH_MAX) {
		*why = *arg ? "is longer than a path may be" : "is empty";
		return -EINVAL;
	}
	*to = arg;
	return 0;
}

static int take_config(struct given *g, const char *arg, const char **why)
{
	return take_file(&g->config, arg, why);
}

static int take_root(struct given *g, const char *arg, const char **why)
{
	return take_file(&g->root, arg, why);
}

static int take_check(struct given *g, const char *arg, const char **why)
{
	g->check = 1;
	return 0;
}

static int take_dump(struct given *g, const char *arg, const char **why)
{
	g->dump = 1;
	return 0;
}

/* A key of the configuration: later ones count, so that a script can add to what it was given. */
static int take_key(struct given *g, const struct config_key *k, const char *glob, const char *arg,
		    const char **why)
{
	*why = g->why;
	if (setting_check(k, arg, g->memory, g->why) < 0)
		return -EINVAL;
	settings_remove(&g->line, k, glob);
	*why = "there is no memory for it";
	return settings_add(&g->line, k, glob, arg, "command line");
}

static int take_ready_fd(struct given *g, const char *arg, const char **why)
{
	uint64_t fd;
	int r = parse_count(arg, 0, INT_MAX, &fd, why);

	if (r == 0)
		g->ready_fd = (int)fd;
	return r;
}

static int take_help(struct given *g, const char *arg, const char **why)
{
	g->help = 1;
	return 0;
}

static int take_version(struct given *g, const char *arg, const char **why)
{
	g->version = 1;
	return 0;
}

struct option_row {
	const char *name;
	const char *arg; /* what it is called in the help; NULL: takes none */
	int (*take)(struct given *g, const char *arg, const char **why);
	const char *help;
	const char *section, *key; /* instead of take: this key of the configuration */
};

static const struct option_row rows[] = {
	{ "system", NULL, take_system, "serve the machine, at /run/kvpool (default for root)" },
	{ "user", NULL, take_user,
	  "serve one user, at $XDG_RUNTIME_DIR/kvpool (default for others)" },
	{ "socket", "PATH", take_socket, "listen for clients there" },
	{ "admin-socket", "PATH", take_admin_socket, "listen for kvpoolctl there" },
	{ "config", "FILE", take_config, "read this file of kvpool.conf(5), and no other" },
	{ "config-root", "DIR", take_root,
	  "read the files of the configuration below this folder" },
	{ "pool-size", "SIZE", NULL, "how far the pool may grow: 16G, 16GiB or 80% of memory",
	  "host", "pool_size" },
	{ "max-blocks", "N", NULL, "how many blocks it may hold", "host", "max_blocks" },
	{ "log-level", "LEVEL", NULL, "debug, info (default), notice, warning, error", "daemon",
	  "log_level" },
	{ "log-target", "TARGET", NULL, "auto (default), journal or stderr", "daemon",
	  "log_target" },
	{ "ready-fd", "N", take_ready_fd,
	  "write a newline to this descriptor when ready, and close it" },
	{ "check-config", NULL, take_check,
	  "say what is wrong with the configuration, and exit (a FILE may follow)" },
	{ "dump-config", NULL, take_dump, "print the configuration and its origins, and exit" },
	{ "version", NULL, take_version, "print the version and exit" },
	{ "help", NULL, take_help, "print this and exit" },
};

#define ROWS             ARRAY_SIZE(rows)
#define OPTIONS_KEYS_MAX 64u

const char *instance_name(enum instance i)
{
	static const char *const names[] = {
		[INSTANCE_SYSTEM] = "system",
		[INSTANCE_USER] = "user",
		[INSTANCE_PRIVATE] = "private",
	};

	return names[i];
}

void options_help(char *out, size_t n)
{
	size_t used = (size_t)snprintf(
		out, n,
		"kvpoold [OPTION...]\n"
		"Owns the KV-cache memory of this machine as one pool of blocks.\n\n");

	for (size_t i = 0; i < ROWS && used < n; i++) {
		char left[OPTIONS_LINE_BYTES];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].arg ? " " : "",
			 rows[i].arg ?: "");
		used += (size_t)snprintf(out + used, n - used, "  %-22s%s\n", left, rows[i].help);
	}
	if (used < n)
		snprintf(out + used, n - used,
			 "  %-22sany key of kvpool.conf(5), --host.numa=local say\n"
			 "\nSee kvpoold(8).\n",
			 "--SECTION.KEY VALUE");
}

/* What getopt gets to know: the rows, then the keys of the configuration. */
struct options_known {
	struct option options[ROWS + OPTIONS_KEYS_MAX + 1];
	char names[OPTIONS_KEYS_MAX][OPTIONS_NAME_BYTES];
};

/* Numbers beyond what getopt returns for itself. */
#define OPTIONS_FIRST 256

static void options_table(struct options_known *k)
{
	size_t n = ROWS;

	memset(k, 0, sizeof(*k));
	for (size_t i = 0; i < ROWS; i++) {
		k->options[i].name = rows[i].name;
		k->options[i].has_arg = rows[i].arg ? required_argument : no_argument;
		k->options[i].val = (int)(OPTIONS_FIRST + i);
	}
	for (size_t i = 0; i < config_n_keys && i < OPTIONS_KEYS_MAX; i++) {
		if (config_key_is_rule(&config_keys[i]))
			continue; /* the name of a model is in it */
		snprintf(k->names[i], sizeof(k->names[i]), "%s.%s", config_keys[i].section,
			 config_keys[i].name);
		k->options[n].name = k->names[i];
		k->options[n].has_arg = required_argument;
		k->options[n++].val = (int)(OPTIONS_FIRST + ROWS + i);
	}
}

/* "--namespace.MODEL.ttl=1h", which is not in the table. */
static int options_take_rule(struct given *g, const char *arg, char *why, size_t n)
{
	char name[SETTING_NAME_BYTES], glob[SETTING_GLOB_BYTES];
	const char *value = strchr(arg, '='), *text;
	const struct config_key *k;
	size_t len = value ? (size_t)(value - arg - 2) : 0;

	if (!value || len >= sizeof(name)) {
		snprintf(why, n, "%s: needs a value, written behind a \"=\"", arg);
		return -EINVAL;
	}
	memcpy(name, arg + 2, len);
	name[len] = '\0';
	if (setting_parse_name(name, &k, glob, g->why) < 0) {
		snprintf(why, n, "--%s: %s", name, g->why);
		return -EINVAL;
	}
	if (take_key(g, k, glob, value + 1, &text) == 0)
		return 0;
	snprintf(why, n, "--%s %s: %s", name, value + 1, text);
	return -EINVAL;
}

/* "huge-pages" for "host.huge_pages": a key that was given without its section, or NULL. */
static const char *options_find_key(const struct options_known *known, const char *word)
{
	for (const struct option *o = known->options; o->name; o++) {
		const char *key = strchr(o->name, '.');
		size_t i = 0;

		while (key && word[i] && key[1 + i] == (word[i] == '-' ? '_' : word[i]))
			i++;
		if (key && !word[i] && !key[1 + i])
			return o->name;
	}
	return NULL;
}

static int options_unknown(const char *arg, const struct options_known *known, char *why, size_t n)
{
	char word[OPTIONS_NAME_BYTES];
	struct suggest s = SUGGEST_INIT(word);

	snprintf(word, sizeof(word), "%s", arg + MIN(strspn(arg, "-"), 2u));
	word[strcspn(word, "=")] = '\0';
	const char *key;

	for (const struct option *o = known->options; o->name; o++)
		suggest_offer(&s, o->name);
	key = options_find_key(known, word);
	if (key || (s.best && s.least))
		snprintf(why, n, "%s: is no option: did you mean \"--%s\"?", arg, key ?: s.best);
	else
		snprintf(why, n, "%s: is no option, or not clear", arg);
	return -EINVAL;
}

/* What getopt returned for something else than one of its own signs. */
static int options_take(struct given *g, int c, const char *name, char *why, size_t n)
{
	size_t i = (size_t)(c - OPTIONS_FIRST);
	const struct config_key *k = NULL;
	const char *text = NULL;
	int r;

	if (i >= ROWS)
		k = &config_keys[i - ROWS];
	else if (!rows[i].take)
		k = config_key_find(rows[i].section, rows[i].key);
	r = k ? take_key(g, k, NULL, optarg, &text) : rows[i].take(g, optarg, &text);
	if (r < 0)
		snprintf(why, n, "--%s %s: %s", name, optarg ?: "", text);
	return r;
}

static int take_operand(struct given *g, const char *arg, char *why, size_t n)
{
	const char *text;

	if (take_config(g, arg, &text) == 0)
		return 0;
	snprintf(why, n, "%s: %s", arg, text);
	return -EINVAL;
}

static int options_scan(int argc, char **argv, struct given *g, char *why, size_t n)
{
	struct options_known known;
	int c, at = 0, r = 0;

	options_table(&known);
	opterr = 0;
	optind = 0; /* makes getopt forget an earlier scan */
	while (r == 0 && (c = getopt_long(argc, argv, ":", known.options, &at)) >= 0) {
		const char *arg = argv[optind - 1];

		if (c == ':') {
			snprintf(why, n, "%s: needs an argument", arg);
			return -EINVAL;
		}
		if (c != '?')
			r = options_take(g, c, known.options[at].name, why, n);
		else if (!strncmp(arg, "--" CONFIG_RULES ".", strlen(CONFIG_RULES) + 3))
			r = options_take_rule(g, arg, why, n);
		else
			r = options_unknown(arg, &known, why, n);
	}
	if (r < 0)
		return r;
	if (g->check && !g->config && optind == argc - 1)
		return take_operand(g, argv[optind], why, n);
	if (optind < argc) {
		snprintf(why, n, "%s: takes no arguments but options", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static int path_make(char out[OPTIONS_PATH_BYTES], const char *a, const char *b, char *why,
		     size_t n)
{
	if (snprintf(out, OPTIONS_PATH_BYTES, "%s%s", a, b) < (int)OPTIONS_PATH_BYTES)
		return 0;
	snprintf(why, n, "%s%s: is longer than the 107 bytes that a socket's path may have", a, b);
	return -EINVAL;
}

static int options_instance(const struct given *g, const struct options_env *env)
{
	if (g->system)
		return INSTANCE_SYSTEM;
	if (g->user)
		return INSTANCE_USER;
	if (g->socket)
		return INSTANCE_PRIVATE;
	return env->is_root ? INSTANCE_SYSTEM : INSTANCE_USER;
}

static int options_default_paths(const struct options_env *env, struct options *o, char *why,
				 size_t n)
{
	const char *dir = o->instance == INSTANCE_SYSTEM ? "/run" : env->runtime_dir;

	if (!dir || !*dir) {
		snprintf(why, n,
			 "$XDG_RUNTIME_DIR is not set: log in through a session that sets it, or "
			 "give --socket PATH");
		return -EINVAL;
	}
	if (path_make(o->socket, dir, "/kvpool/kvpool.sock", why, n) < 0)
		return -EINVAL;
	return path_make(o->admin_socket, dir, "/kvpool/admin.sock", why, n);
}

static int options_paths(const struct given *g, const struct options_env *env, struct options *o,
			 char *why, size_t n)
{
	int r;

	if (g->socket)
		r = path_make(o->socket, g->socket, "", why, n);
	else
		r = options_default_paths(env, o, why, n);
	if (r < 0)
		return r;
	if (g->admin_socket)
		return path_make(o->admin_socket, g->admin_socket, "", why, n);
	return g->socket ? path_make(o->admin_socket, g->socket, ".admin", why, n) : 0;
}

/* Of a user: $XDG_CONFIG_HOME, or .config in their home. */
static void options_user_places(const struct options_env *env, const char *root,
				struct config_places *p)
{
	char home[PATH_MAX];

	if (env->config_home && *env->config_home)
		config_places_user(p, root, env->config_home);
	else if (env->home && *env->home &&
		 snprintf(home, sizeof(home), "%s/.config", env->home) < PATH_MAX)
		config_places_user(p, root, home);
}

static void options_places(const struct given *g, const struct options_env *env, struct options *o)
{
	const char *root = g->root ?: "";

	if (g->config)
		config_places_file(&o->places, g->config);
	else if (o->instance == INSTANCE_SYSTEM)
		config_places_system(&o->places, root);
	else if (o->instance == INSTANCE_USER)
		options_user_places(env, root, &o->places);
}

/* Its sockets: two, and different ones. */
static int options_sockets(const struct given *g, const struct options_env *env, struct options *o,
			   char *why, size_t n)
{
	if (options_paths(g, env, o, why, n) < 0)
		return -EINVAL;
	if (strcmp(o->socket, o->admin_socket))
		return 0;
	snprintf(why, n, "--admin-socket %s: is the same as the clients' socket", o->admin_socket);
	return -EINVAL;
}

static int options_derive(struct given *g, const struct options_env *env, struct options *o,
			  char *why, size_t n)
{
	if (g->system && g->user) {
		snprintf(why, n, "--system and --user: give one of them");
		return -EINVAL;
	}
	if (g->config && g->root) {
		snprintf(why, n, "--config and --config-root: give one of them");
		return -EINVAL;
	}
	o->ready_fd = g->ready_fd;
	o->instance = options_instance(g, env);
	if (g->root && o->instance == INSTANCE_PRIVATE) {
		snprintf(why, n,
			 "--config-root: a private instance (--socket) reads no such files: "
			 "add --system or --user, or give --config FILE");
		return -EINVAL;
	}
	options_places(g, env, o);
	if (!g->check && !g->dump && options_sockets(g, env, o, why, n) < 0)
		return -EINVAL;
	o->line = g->line;
	g->line = (struct settings)SETTINGS_INIT;
	return g->check ? OPTIONS_CHECK : g->dump ? OPTIONS_DUMP : OPTIONS_RUN;
}

int options_parse(int argc, char **argv, const struct options_env *env, struct options *ret,
		  char *why, size_t n)
{
	struct given g = { .ready_fd = -1, .memory = env->memory };
	struct options o = { 0 };
	int r = options_scan(argc, argv, &g, why, n);

	if (r == 0)
		r = g.help      ? OPTIONS_HELP
		    : g.version ? OPTIONS_VERSION
				: options_derive(&g, env, &o, why, n);
	settings_clear(&g.line);
	if (r == OPTIONS_RUN || r == OPTIONS_CHECK || r == OPTIONS_DUMP)
		*ret = o;
	return r;
}

void options_clear(struct options *o)
{
	settings_clear(&o->line);
}
