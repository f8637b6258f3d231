/* SPDX-License-Identifier: Apache-2.0 */
/* kvpoolctl: the operator's command, kvpoolctl(1). */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/kvpoolctl/say.h"
#include "tools/kvpoolctl/verb.h"
#include "tools/kvpoolctl/version.h"

static enum ctl_exit print_help(void)
{
	printf("kvpoolctl [OPTIONS] [COMMAND]\n\n"
	       "Looks at a running kvpoold, and steers it.\n\n"
	       "Commands:\n");
	verb_help(stdout);
	printf("\nOptions:\n");
	options_help(stdout);
	printf("\nThe instance is, without an option: $KVPOOL_ADMIN_SOCKET, $KVPOOL_SOCKET.admin, "
	       "that of\n"
	       "this user when there is one, else that of the system. See kvpoolctl(1).\n");
	return EXIT_OK;
}

static enum ctl_exit unknown_verb(const char *name)
{
	const struct verb *near = verb_suggest(name);

	if (near)
		return say_error(EXIT_USAGE, "unknown command \"%s\": did you mean \"%s\"?", name,
				 near->name);
	return say_error(EXIT_USAGE, "unknown command \"%s\" (see kvpoolctl --help)", name);
}

static enum ctl_exit run_verb(const struct ctl *ctl)
{
	const struct options *o = &ctl->opt;
	const char *name = o->n_args ? o->args[0] : "status";
	const struct verb *v = verb_find(name);
	enum ctl_exit rc;

	if (!v)
		return unknown_verb(name);
	if (o->n_args > 1)
		return say_error(EXIT_USAGE,
				 "\"%s\" takes no argument, \"%s\" is one (see kvpoolctl --help)",
				 name, o->args[1]);
	rc = options_check(o, name);
	return rc ? rc : v->run(ctl);
}

static enum ctl_exit run(int argc, char **argv)
{
	struct ctl ctl = { 0 };
	enum ctl_exit rc = options_parse(argc, argv, &ctl.opt);

	if (rc)
		return rc;
	if (ctl.opt.help)
		return print_help();
	if (ctl.opt.version) {
		version_print(stdout);
		return EXIT_OK;
	}
	style_init(&ctl.style, STDOUT_FILENO);
	return run_verb(&ctl);
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
