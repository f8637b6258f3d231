/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_SAY_H
#define KVP_TOOLS_KVPOOLCTL_SAY_H

#include "tools/kvpoolctl/exit.h"

/* Prints "kvpoolctl: ..." to stderr and returns status. The text names object, cause, next step. */
enum ctl_exit say_error(enum ctl_exit status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
