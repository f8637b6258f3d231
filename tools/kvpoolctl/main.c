/* SPDX-License-Identifier: Apache-2.0 */
/* kvpoolctl: the operator's command, kvpoolctl(1). */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/kvpoolctl/help.h"
#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/verb.h"
#include "tools/kvpoolctl/version.h"

/* at: where the name of a command stands, if there is one. */
static enum ctl_exit print_help(const struct options *o, int at)
{
	const struct verb *v = o->n_args > at ? verb_find(o->args[at]) : NULL;

	if (v)
		help_verb(v, stdout);
	else
		help_print(stdout);
	return EXIT_OK;
}

static enum ctl_exit run(int argc, char **argv)
{
	struct ctl ctl = { 0 };
	enum ctl_exit rc = options_parse(argc, argv, &ctl.opt);

	if (rc)
		return rc;
	if (ctl.opt.help)
		return print_help(&ctl.opt, 0);
	/* Not in the lists, which name the option: what hands write that are used to it. */
	if (ctl.opt.n_args && !strcmp(ctl.opt.args[0], "help"))
		return print_help(&ctl.opt, 1);
	if (ctl.opt.version) {
		version_print(stdout);
		return EXIT_OK;
	}
	style_init(&ctl.style, STDOUT_FILENO);
	return verb_run(&ctl);
}

int main(int argc, char **argv)
{
	enum ctl_exit rc;

	setlocale(LC_CTYPE, "");
	rc = run(argc, argv);
	if (fflush(stdout) || ferror(stdout))
		return say_error(EXIT_FAILED, "cannot write the output: %s", strerror(errno));
	return rc;
}
