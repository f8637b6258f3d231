/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of kvpoold, as a table, with every key of the configuration. */
#ifndef KVP_DAEMON_OPTIONS_H
#define KVP_DAEMON_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/config_places.h"

/* What sockaddr_un can hold, with its NUL. */
#define OPTIONS_PATH_BYTES 108u

enum instance {
	INSTANCE_SYSTEM,  /* /run/kvpool, for the members of a group */
	INSTANCE_USER,    /* $XDG_RUNTIME_DIR/kvpool, for one user */
	INSTANCE_PRIVATE, /* at a socket that was named, and nothing else of it is known */
};

const char *instance_name(enum instance i);

struct options {
	enum instance instance;
	char socket[OPTIONS_PATH_BYTES], admin_socket[OPTIONS_PATH_BYTES]; /* OPTIONS_RUN */
	int ready_fd;                                                      /* -1: none */
	struct config_places places; /* of the configuration's files */
	struct settings line;        /* keys that were given */
};

/* What the answer depends on besides the arguments. */
struct options_env {
	int is_root;
	const char *runtime_dir; /* $XDG_RUNTIME_DIR or NULL */
	uint64_t memory;         /* that the daemon may use: what a percentage is taken of */
	const char *config_home; /* $XDG_CONFIG_HOME or NULL */
	const char *home;        /* $HOME or NULL */
};

enum options_result {
	OPTIONS_RUN = 0,
	OPTIONS_HELP = 1,
	OPTIONS_VERSION = 2,
	OPTIONS_CHECK = 3, /* say what is wrong with the configuration */
	OPTIONS_DUMP = 4,  /* print it */
};

/*
 * Returns an enum options_result, and *ret for OPTIONS_RUN, OPTIONS_CHECK and OPTIONS_DUMP, to be
 * given back with options_clear; or -EINVAL with what is wrong in words in why. Uses getopt's
 * state, so one thread at a time.
 */
int options_parse(int argc, char **argv, const struct options_env *env, struct options *ret,
		  char *why, size_t n);
void options_clear(struct options *o);

/* The text of --help. */
void options_help(char *out, size_t n);

#endif
