/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kvpoolctl/confirm.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/kvpoolctl/report.h"
#include "tools/kvpoolctl/say.h"

int confirm_wanted(const struct ctl *ctl)
{
	return !ctl->opt.yes && !ctl->opt.dry_run && !report_wanted(ctl) && isatty(STDIN_FILENO) &&
	       isatty(STDERR_FILENO);
}

enum ctl_exit confirm_ask(const char *format, ...)
{
	char answer[16];
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputs("? [y/N] ", stderr);
	if (fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y'))
		return EXIT_OK;
	return say_error(EXIT_FAILED, "nothing was done: the answer was not yes");
}
