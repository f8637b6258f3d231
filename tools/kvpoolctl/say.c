/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/say.h"

#include <stdio.h>

enum ctl_exit say_verror(enum ctl_exit status, const char *format, va_list ap)
{
	fflush(stdout);
	fputs("kvpoolctl: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	return status;
}

enum ctl_exit say_error(enum ctl_exit status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_verror(status, format, ap);
	va_end(ap);
	return status;
}
