/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "daemon/log.h"
#include "daemon/memory.h"
#include "daemon/options.h"
#include "daemon/pool.h"

/* What the arguments said, before anything is derived from it. */
struct given {
	const char *socket, *admin_socket;
	int system, user;
	int help, version;
	uint64_t pool_bytes, max_blocks;
	int log_level;
	int ready_fd;
	uint64_t memory;
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

static int take_pool_size(struct given *g, const char *arg, const char **why)
{
	return parse_size(arg, g->memory, &g->pool_bytes, why);
}

static int take_max_blocks(struct given *g, const char *arg, const char **why)
{
	return parse_count(arg, 1, POOL_BLOCKS_MAX, &g->max_blocks, why);
}

static int take_log_level(struct given *g, const char *arg, const char **why)
{
	int level = log_level_parse(arg);

	if (level < 0) {
		*why = "is no level (debug, info, notice, warning, err, crit, alert or emerg)";
		return -EINVAL;
	}
	g->log_level = level;
	return 0;
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
};

static const struct option_row rows[] = {
	{ "system", NULL, take_system, "serve the machine, at /run/kvpool (default for root)" },
	{ "user", NULL, take_user,
	  "serve one user, at $XDG_RUNTIME_DIR/kvpool (default for others)" },
	{ "socket", "PATH", take_socket, "listen for clients there" },
	{ "admin-socket", "PATH", take_admin_socket, "listen for kvpoolctl there" },
	{ "pool-size", "SIZE", take_pool_size,
	  "how far the pool may grow: 16G, 16GiB or 80% of memory" },
	{ "max-blocks", "N", take_max_blocks, "how many blocks it may hold" },
	{ "log-level", "LEVEL", take_log_level, "debug, info (default), notice, warning, err" },
	{ "ready-fd", "N", take_ready_fd,
	  "write a newline to this descriptor when ready, and close it" },
	{ "version", NULL, take_version, "print the version and exit" },
	{ "help", NULL, take_help, "print this and exit" },
};

#define ROWS ARRAY_SIZE(rows)

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
	size_t used = (size_t)
		snprintf(out, n,
			 "kvpoold [OPTION...]\n"
			 "Owns the KV-cache memory of this machine as one pool of blocks.\n\n");

	for (size_t i = 0; i < ROWS && used < n; i++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].arg ? " " : "",
			 rows[i].arg ?: "");
		used += (size_t)snprintf(out + used, n - used, "  %-22s%s\n", left, rows[i].help);
	}
	if (used < n)
		snprintf(out + used, n - used, "\nSee kvpoold(8).\n");
}

static void options_table(struct option long_options[ROWS + 1])
{
	memset(long_options, 0, (ROWS + 1) * sizeof(*long_options));
	for (size_t i = 0; i < ROWS; i++) {
		long_options[i].name = rows[i].name;
		long_options[i].has_arg = rows[i].arg ? required_argument : no_argument;
		/* Beyond what getopt returns for itself. */
		long_options[i].val = (int)(256 + i);
	}
}

static int options_scan(int argc, char **argv, struct given *g, char *why, size_t n)
{
	struct option long_options[ROWS + 1];
	const char *text = NULL;
	int c;

	options_table(long_options);
	opterr = 0;
	optind = 0; /* makes getopt forget an earlier scan */
	while ((c = getopt_long(argc, argv, ":", long_options, NULL)) >= 0) {
		if (c == ':' || c == '?') {
			snprintf(why, n, "%s: %s", argv[optind - 1],
				 c == ':' ? "needs an argument" : "is no option, or not clear");
			return -EINVAL;
		}
		if (rows[c - 256].take(g, optarg, &text) < 0) {
			snprintf(why, n, "--%s %s: %s", rows[c - 256].name, optarg ?: "", text);
			return -EINVAL;
		}
	}
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
			 "give"
			 " --socket PATH");
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

static int options_derive(const struct given *g, const struct options_env *env, struct options *ret,
			  char *why, size_t n)
{
	struct options o = {
		.pool_bytes = g->pool_bytes ?: memory_pool_default(env->memory),
		.max_blocks = (uint32_t)g->max_blocks,
		.log_level = g->log_level,
		.ready_fd = g->ready_fd,
	};

	if (g->system && g->user) {
		snprintf(why, n, "--system and --user: give one of them");
		return -EINVAL;
	}
	if (!o.pool_bytes) {
		snprintf(why, n, "cannot read how much memory there is: give --pool-size SIZE");
		return -EINVAL;
	}
	o.instance = options_instance(g, env);
	if (options_paths(g, env, &o, why, n) < 0)
		return -EINVAL;
	if (!strcmp(o.socket, o.admin_socket)) {
		snprintf(why, n, "--admin-socket %s: is the same as the clients' socket",
			 o.admin_socket);
		return -EINVAL;
	}
	*ret = o;
	return OPTIONS_RUN;
}

int options_parse(int argc, char **argv, const struct options_env *env, struct options *ret,
		  char *why, size_t n)
{
	struct given g = { .log_level = LOG_INFO, .ready_fd = -1, .memory = env->memory };
	int r = options_scan(argc, argv, &g, why, n);

	if (r < 0)
		return r;
	if (g.help)
		return OPTIONS_HELP;
	if (g.version)
		return OPTIONS_VERSION;
	return options_derive(&g, env, ret, why, n);
}
