/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, one row each: help and suggestions come from the table. */
#ifndef KVP_TOOLS_KVPOOLCTL_VERB_H
#define KVP_TOOLS_KVPOOLCTL_VERB_H

#include <stdio.h>

#include "tools/kvpoolctl/ctl.h"

struct verb {
	const char *name;
	const char *help;
	enum ctl_exit (*run)(const struct ctl *ctl);
};

/* The verb of that name, NULL when there is none. */
const struct verb *verb_find(const char *name);

/* The verb whose name is nearest to a mistyped one, NULL when none is near. */
const struct verb *verb_suggest(const char *name);

void verb_help(FILE *out);

enum ctl_exit verb_status(const struct ctl *ctl);
enum ctl_exit verb_ping(const struct ctl *ctl);
enum ctl_exit verb_namespaces(const struct ctl *ctl);
enum ctl_exit verb_clients(const struct ctl *ctl);
enum ctl_exit verb_flush(const struct ctl *ctl);
enum ctl_exit verb_version(const struct ctl *ctl);

#endif
