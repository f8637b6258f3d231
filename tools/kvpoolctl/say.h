/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_SAY_H
#define KVP_TOOLS_KVPOOLCTL_SAY_H

#include <stdarg.h>

#include "tools/kvpoolctl/exit.h"

/* Prints "kvpoolctl: ...\n" to stderr and returns status, which is not EXIT_OK. */
enum ctl_exit say_error(enum ctl_exit status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
enum ctl_exit say_verror(enum ctl_exit status, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));

#endif
