/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands, one row each: help, man page, suggestions and completions come from the table.
 */
#ifndef KVP_TOOLS_KVPOOLCTL_VERB_H
#define KVP_TOOLS_KVPOOLCTL_VERB_H

#include "tools/kvpoolctl/ctl.h"
#include "tools/kvpoolctl/flag.h"
#include "tools/kvpoolctl/listing.h"

enum verb_group {
	VERB_LOOK,
	VERB_UNDERSTAND,
	VERB_CONTROL,
	VERB_RUN,
	VERB_GROUPS,
};

struct verb {
	const char *name;
	enum verb_group group;
	const char *args;  /* as in a synopsis; "" none */
	const char *help;  /* one line */
	const char *about; /* a paragraph */
	const char *example;
	int min_args, max_args;
	enum flag_value values[2]; /* of its first arguments, for completion */
	const char *words;         /* choices of the first one, when that is VALUE_CHOICE */
	const struct listing_kind *listing; /* whose columns it has, NULL: none */
	enum ctl_exit (*run)(const struct ctl *ctl);
};

/* The row i, NULL behind the last one. */
const struct verb *verb_row(unsigned int i);

const char *verb_group_name(enum verb_group g);

/* The verb of that name, NULL when there is none. */
const struct verb *verb_find(const char *name);

/* The verb whose name is nearest to a mistyped one, NULL when none is near. */
const struct verb *verb_suggest(const char *name);

/* Runs what the arguments ask for, "status" when there is none. */
enum ctl_exit verb_run(const struct ctl *ctl);

/* The argument i of the verb, from 1; NULL when it was not given. */
const char *verb_arg(const struct ctl *ctl, int i);

enum ctl_exit verb_capacity(const struct ctl *ctl);
enum ctl_exit verb_clients(const struct ctl *ctl);
enum ctl_exit verb_config(const struct ctl *ctl);
enum ctl_exit verb_dump(const struct ctl *ctl);
enum ctl_exit verb_explain(const struct ctl *ctl);
enum ctl_exit verb_flush(const struct ctl *ctl);
enum ctl_exit verb_info(const struct ctl *ctl);
enum ctl_exit verb_kick(const struct ctl *ctl);
enum ctl_exit verb_log_level(const struct ctl *ctl);
enum ctl_exit verb_namespaces(const struct ctl *ctl);
enum ctl_exit verb_pin(const struct ctl *ctl);
enum ctl_exit verb_ping(const struct ctl *ctl);
enum ctl_exit verb_pins(const struct ctl *ctl);
enum ctl_exit verb_prefixes(const struct ctl *ctl);
enum ctl_exit verb_reload(const struct ctl *ctl);
enum ctl_exit verb_resize(const struct ctl *ctl);
enum ctl_exit verb_show(const struct ctl *ctl);
enum ctl_exit verb_stats(const struct ctl *ctl);
enum ctl_exit verb_status(const struct ctl *ctl);
enum ctl_exit verb_unpin(const struct ctl *ctl);
enum ctl_exit verb_version(const struct ctl *ctl);
enum ctl_exit verb_wait_ready(const struct ctl *ctl);

#endif
