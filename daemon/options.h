/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of kvpoold, as a table. */
#ifndef KVP_DAEMON_OPTIONS_H
#define KVP_DAEMON_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

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
	char socket[OPTIONS_PATH_BYTES], admin_socket[OPTIONS_PATH_BYTES];
	uint64_t pool_bytes;
	uint32_t max_blocks; /* 0: by the size of the pool */
	int log_level;
	int ready_fd; /* -1: none */
};

/* What the answer depends on besides the arguments. */
struct options_env {
	int is_root;
	const char *runtime_dir; /* $XDG_RUNTIME_DIR or NULL */
	uint64_t memory;         /* that the daemon may use: what a percentage is taken of */
};

enum options_result {
	OPTIONS_RUN = 0,
	OPTIONS_HELP = 1,
	OPTIONS_VERSION = 2,
};

/*
 * Returns an enum options_result, and *ret for OPTIONS_RUN; or -EINVAL with what is wrong in words
 * in why. Uses getopt's state, so one thread at a time.
 */
int options_parse(int argc, char **argv, const struct options_env *env, struct options *ret,
		  char *why, size_t n);

/* The text of --help. */
void options_help(char *out, size_t n);

#endif
