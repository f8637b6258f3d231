/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/integration/daemon.h"

#define DAEMON_READY_MS 20000
#define DAEMON_ARGS_MAX 32

static const char *daemon_program(void)
{
	const char *path = getenv("KVPOOLD");

	return path ? path : KVPOOLD_DEFAULT;
}

/* In the child: only async-signal-safe calls from here on. */
static void daemon_exec(const char *const *argv, int ready, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* The parent may have died before the line above. */
	if (getppid() != parent)
		_exit(126);
	/* dup2 onto itself would leave it close-on-exec. */
	if (ready == 3 ? fcntl(ready, F_SETFD, 0) < 0 : dup2(ready, 3) < 0)
		_exit(126);
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static int daemon_argv(const struct daemon *d, const char *const *args, const char **argv)
{
	const char *const defaults[] = { daemon_program(), "--socket",	 d->socket,
					 "--pool-size",	   "64M",	 "--max-blocks",
					 "4096",	   "--ready-fd", "3" };
	unsigned int n = 0;

	while (n < ARRAY_SIZE(defaults)) {
		argv[n] = defaults[n];
		n++;
	}
	for (; args && *args; args++) {
		if (n == DAEMON_ARGS_MAX)
			return -1;
		argv[n++] = *args;
	}
	argv[n] = NULL;
	return 0;
}

/* The newline on the ready descriptor; an end of file without one means that it died. */
static int daemon_wait_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	if (poll(&p, 1, DAEMON_READY_MS) != 1)
		return -1;
	return read(fd, &c, 1) == 1 ? 0 : -1;
}

static int daemon_wait(struct daemon *d)
{
	int status;
	pid_t pid;

	do
		pid = waitpid(d->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	d->pid = -1;
	if (pid < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int daemon_signal(struct daemon *d, int sig)
{
	if (d->pid < 0)
		return 0;
	kill(d->pid, sig);
	return daemon_wait(d);
}

int daemon_again(struct daemon *d, const char *const *args)
{
	const char *argv[DAEMON_ARGS_MAX + 1];
	pid_t parent = getpid();
	int ready[2];
	int r;

	if (daemon_argv(d, args, argv) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	d->pid = fork();
	if (d->pid == 0) {
		close(ready[0]);
		daemon_exec(argv, ready[1], parent);
	}
	close(ready[1]);
	r = d->pid < 0 ? -1 : daemon_wait_ready(ready[0]);
	close(ready[0]);
	if (r < 0)
		fprintf(stderr, "daemon: %s did not become ready (ended with %d)\n", argv[0],
			daemon_signal(d, SIGKILL));
	return r;
}

int daemon_start(struct daemon *d, const char *const *args)
{
	const char *tmp = getenv("TMPDIR");

	memset(d, 0, sizeof(*d));
	d->pid = -1;
	/* A socket's path has 107 bytes at most: a long TMPDIR is not used. */
	if (!tmp || strlen(tmp) > 32)
		tmp = "/tmp";
	snprintf(d->dir, sizeof(d->dir), "%s/kvpool-test-XXXXXX", tmp);
	if (!mkdtemp(d->dir)) {
		fprintf(stderr, "daemon: cannot make %s: %s\n", d->dir, strerror(errno));
		return -1;
	}
	snprintf(d->socket, sizeof(d->socket), "%s/kvpool.sock", d->dir);
	snprintf(d->admin, sizeof(d->admin), "%s.admin", d->socket);
	if (daemon_again(d, args) < 0) {
		daemon_end(d);
		return -1;
	}
	return 0;
}

int daemon_stop(struct daemon *d)
{
	return daemon_signal(d, SIGTERM);
}

int daemon_kill(struct daemon *d)
{
	return daemon_signal(d, SIGKILL);
}

static void daemon_clean(const char *dir)
{
	DIR *list = opendir(dir);
	struct dirent *e;

	if (!list)
		return;
	while ((e = readdir(list)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(dirfd(list), e->d_name, 0);
	closedir(list);
	rmdir(dir);
}

int daemon_end(struct daemon *d)
{
	int r = daemon_stop(d);

	if (d->dir[0])
		daemon_clean(d->dir);
	d->dir[0] = '\0';
	return r;
}
