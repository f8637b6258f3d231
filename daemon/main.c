/* SPDX-License-Identifier: Apache-2.0 */
/* kvpoold: from the command line to the event loop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

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
	/* Until the configuration can be read again. */
	(void)signal(SIGHUP, SIG_IGN);
}

static int main_serve(const struct options *o, struct configurator *c)
{
	const struct config *config = configurator_config(c);
	struct manager *m;
	int r;

	if (o->ready_fd >= 0 && fcntl(o->ready_fd, F_SETFD, FD_CLOEXEC) < 0) {
		fprintf(stderr, "kvpoold: --ready-fd %d: is not open in this process\n",
			o->ready_fd);
		return EXIT_USAGE;
	}
	log_open(config->daemon.log_level, config->daemon.log_target);
	umask(MAIN_UMASK);
	main_protect();
	main_ignore_signals();
	r = manager_new(o, c, &m);
	/* Memory that the configuration insists on is not there: trying again does not help. */
	if (r == -ENODEV)
		return EX_CONFIG;
	if (r < 0)
		return EXIT_FAILURE;
	r = manager_run(m);
	manager_free(m);
	if (r < 0)
		return EXIT_FAILURE;
	log_line(LOG_NOTICE, "stopped");
	return EXIT_SUCCESS;
}

static int main_check(const struct configurator *c)
{
	unsigned int n = configurator_files(c);

	printf("The configuration is sound: %u file%s.\n", n, n == 1 ? "" : "s");
	return EXIT_SUCCESS;
}

static int main_dump(const struct configurator *c)
{
	configurator_dump(c, stdout);
	return EXIT_SUCCESS;
}

static int main_configured(struct options *o, int what, struct configurator *c)
{
	switch (what) {
	case OPTIONS_CHECK:
		return main_check(c);
	case OPTIONS_DUMP:
		return main_dump(c);
	default:
		return main_serve(o, c);
	}
}

/* Everything that is wrong with the configuration, not the first thing only. */
static int main_complain(const struct complaints *wrong, int r)
{
	for (size_t i = 0; i < complaint_kept(wrong); i++)
		fprintf(stderr, "kvpoold: %s\n", wrong->lines[i]);
	if (wrong->n > complaint_kept(wrong))
		fprintf(stderr, "kvpoold: and %zu more\n", wrong->n - complaint_kept(wrong));
	if (r != -EINVAL)
		fprintf(stderr, "kvpoold: cannot read the configuration: %s\n",
			strerrordesc_np(-r));
	return r == -EINVAL ? EX_CONFIG : EXIT_FAILURE;
}

static int main_configure(struct options *o, int what, uint64_t memory)
{
	struct complaints wrong = COMPLAINTS_INIT;
	struct configurator *c = NULL;
	int r = configurator_new(&o->places, &o->line, memory, &wrong, &c);
	int status = r < 0 ? main_complain(&wrong, r) : main_configured(o, what, c);

	configurator_free(c);
	complaint_clear(&wrong);
	return status;
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
		.config_home = getenv("XDG_CONFIG_HOME"),
		.home = getenv("HOME"),
	};
	struct options o;
	char why[CONFIG_WHY_BYTES + OPTIONS_PATH_BYTES];
	int r = options_parse(argc, argv, &env, &o, why, sizeof(why));

	switch (r) {
	case OPTIONS_RUN:
	case OPTIONS_CHECK:
	case OPTIONS_DUMP:
		r = main_configure(&o, r, env.memory);
		options_clear(&o);
		return r;
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
