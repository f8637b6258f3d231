/* SPDX-License-Identifier: Apache-2.0 */
/* kvpoolctl-generate man|bash|zsh|fish: writes it to stdout; of man, stdin is the page to fill. */
#include <stdio.h>
#include <string.h>

#include "tools/kvpoolctl/generate/generate.h"

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "man") && manpage_print(stdin, stdout))
		return 1;
	else if (!strcmp(what, "bash"))
		bash_print(stdout);
	else if (!strcmp(what, "zsh"))
		zsh_print(stdout);
	else if (!strcmp(what, "fish"))
		fish_print(stdout);
	else if (strcmp(what, "man"))
		return 2;
	return fflush(stdout) || ferror(stdout);
}
