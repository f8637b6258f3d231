/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. One table holds every option: parsing, checks and help come from it. */
#ifndef KVP_TOOLS_KVPOOLCTL_OPTIONS_H
#define KVP_TOOLS_KVPOOLCTL_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

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

struct options {
	enum options_instance instance;
	enum options_json json;
	const char *socket;
	const char *columns;
	const char *namespace;
	uint64_t timeout_ns;
	int bytes, no_legend, quiet, dry_run, yes, help, version;
	uint32_t given; /* a bit for each row of the table */
	char **args;	/* what is no option: the command first */
	int n_args;
};

/* *ret points into argv, which it reorders. Returns EXIT_OK or EXIT_USAGE. */
enum ctl_exit options_parse(int argc, char **argv, struct options *ret);

/* EXIT_USAGE when an option was given that means nothing to this verb. */
enum ctl_exit options_check(const struct options *o, const char *verb);

void options_help(FILE *out);

#endif
