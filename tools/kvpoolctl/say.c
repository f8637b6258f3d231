/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/say.h"

#include <stdarg.h>
#include <stdio.h>

enum ctl_exit say_error(enum ctl_exit status, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("kvpoolctl: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}
