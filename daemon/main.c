/* SPDX-License-Identifier: Apache-2.0 */
/* kvpoold: from the command line to the event loop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "daemon/log.h"
#include "daemon/manager.h"
#include "daemon/memory.h"

#define EXIT_USAGE 2

/* Files that it makes are its own; what others may use gets its mode by name. */
#define MAIN_UMASK 0077

/*
 * Neither a core file nor a debugger of another process of this user sees what is in the pool. And
 * as many descriptors as may be had: five for each client.
 */
static void main_protect(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;

	(void)setrlimit(RLIMIT_CORE, &none);
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		log_line(LOG_WARNING, "cannot keep other processes from looking into this one",
			 LOG_ERRNO(-errno));
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

static void main_ignore_signals(void)
{
	/* A peer that is gone is told by send(). */
	(void)signal(SIGPIPE, SIG_IGN);
	/* Sent when a lease of daemon/region.c is broken, which lives for an instant. */
	(void)signal(SIGIO, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
}

static int main_run(const struct options *o)
{
	struct manager *m;
	int r;

	if (o->ready_fd >= 0 && fcntl(o->ready_fd, F_SETFD, FD_CLOEXEC) < 0) {
		fprintf(stderr, "kvpoold: --ready-fd %d: is not open in this process\n",
			o->ready_fd);
		return EXIT_USAGE;
	}
	log_open(o->log_level, LOG_TO_AUTO);
	umask(MAIN_UMASK);
	main_protect();
	main_ignore_signals();
	if (manager_new(o, &m) < 0)
		return EXIT_FAILURE;
	r = manager_run(m);
	manager_free(m);
	if (r < 0)
		return EXIT_FAILURE;
	log_line(LOG_NOTICE, "stopped");
	return EXIT_SUCCESS;
}

static int main_help(void)
{
	char text[4096];

	options_help(text, sizeof(text));
	fputs(text, stdout);
	return EXIT_SUCCESS;
}

/*
 * A process may be started with 0 to 2 closed. Then the next file that is opened would get that
 * number, and what is printed would go into it.
 */
static int main_open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int main_start(int argc, char **argv)
{
	const struct options_env env = {
		.is_root = geteuid() == 0,
		.runtime_dir = getenv("XDG_RUNTIME_DIR"),
		.memory = memory_available(""),
	};
	struct options o;
	char why[512];
	int r = options_parse(argc, argv, &env, &o, why, sizeof(why));

	switch (r) {
	case OPTIONS_RUN:
		return main_run(&o);
	case OPTIONS_HELP:
		return main_help();
	case OPTIONS_VERSION:
		printf("kvpoold %s\n", KVPOOL_VERSION);
		return EXIT_SUCCESS;
	default:
		fprintf(stderr, "kvpoold: %s\nSee \"kvpoold --help\".\n", why);
		return EXIT_USAGE;
	}
}

int main(int argc, char **argv)
{
	return main_open_standard() < 0 ? EXIT_FAILURE : main_start(argc, argv);
}
