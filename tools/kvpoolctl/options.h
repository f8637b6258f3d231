/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. The table of options is tools/kvpoolctl/flag.h. */
#ifndef KVP_TOOLS_KVPOOLCTL_OPTIONS_H
#define KVP_TOOLS_KVPOOLCTL_OPTIONS_H

#include <stdint.h>

#include "tools/kvpoolctl/exit.h"

enum options_instance {
	INSTANCE_ANY,
	INSTANCE_SYSTEM,
	INSTANCE_USER,
};

enum options_json {
	OPTIONS_JSON_OFF,
	OPTIONS_JSON_SHORT,
	OPTIONS_JSON_PRETTY,
	OPTIONS_JSON_AUTO, /* pretty on a terminal, else short */
};

#define OPTIONS_FOREVER UINT64_MAX

/* What was not given is 0 or NULL, but for timeout_ns and block, which have a default. */
struct options {
	int instance; /* enum options_instance */
	int json;     /* enum options_json */
	const char *socket, *columns, *namespace, *tokens, *label, *client, *sort;
	const char *dtype, *dtype_v, *latent, *gguf, *pool_size;
	uint64_t timeout_ns, ttl_ns, for_ns;
	uint64_t limit, priority, layers, kv_heads, head_dim, head_dim_v, block;
	int bytes, no_legend, quiet, full, dry_run, yes, help, version;
	int all, last, diff, misses, wait, raw;
	uint64_t given; /* a bit for each row of the table */
	char **args;    /* what is no option: the command first */
	int n_args;
};

/* *ret points into argv, which it reorders. Returns EXIT_OK or EXIT_USAGE. */
enum ctl_exit options_parse(int argc, char **argv, struct options *ret);

/* EXIT_USAGE when an option was given that means nothing to this verb. */
enum ctl_exit options_check(const struct options *o, const char *verb);

#endif
