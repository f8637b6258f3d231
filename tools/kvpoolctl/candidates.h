/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_CANDIDATES_H
#define KVP_TOOLS_KVPOOLCTL_CANDIDATES_H

#include "tools/kvpoolctl/ctl.h"
#include "tools/kvpoolctl/flag.h"

/* What completion scripts run: `kvpoolctl __complete KIND`. */
#define CANDIDATES_VERB "__complete"

/* The KIND whose names the daemon has for a value; NULL: it has none. */
const char *candidates_kind(enum flag_value v);

/*
 * Prints the names of that kind, a line each. In a shell's completion nobody wants to read errors
 * or to wait: says nothing but names, and returns EXIT_OK whatever happens.
 */
enum ctl_exit candidates_print(const struct ctl *ctl, const char *kind);

#endif
