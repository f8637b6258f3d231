/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tools/private_daemon.h"

const char *private_program(const char *folder, const char *name)
{
	static char path[2][4096];
	static unsigned int turn;
	char *p = path[turn++ % 2], self[3072];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *const beside[] = { ".", "..", "../..", "../../.." };

	if (n < 0)
		return name;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (unsigned int i = 0; i < ARRAY_SIZE(beside); i++) {
		snprintf(p, sizeof(path[0]), "%s/%s%s%s/%s", self, beside[i], i ? "/" : "",
			 i ? folder : "", name);
		if (access(p, X_OK) == 0)
			return p;
	}
	snprintf(p, sizeof(path[0]), "%s/../sbin/%s", self, name);
	return access(p, X_OK) == 0 ? p : name;
}

static void run(const struct private_daemon *d, const char *program, const char *who,
		uint64_t pool_bytes, uint64_t max_blocks, int ready)
{
	char size[32], blocks[32], fd[16];
	/* Whoever starts it is all of its clients. */
	const char *argv[] = { program, "--socket",    d->socket, "--pool-size",
			       size,    "--log-level", "warning", "--ready-fd",
			       fd,      "--limits.max_clients_per_user", "1024",
			       NULL,    NULL,          NULL };

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)pool_bytes);
	snprintf(blocks, sizeof(blocks), "%llu", (unsigned long long)max_blocks);
	snprintf(fd, sizeof(fd), "%d", ready);
	if (max_blocks) {
		argv[11] = "--max-blocks";
		argv[12] = blocks;
	}
	execvp(program, (char *const *)argv);
	fprintf(stderr, "%s: cannot run %s: %s\n", who, program, strerror(errno));
	_exit(127);
}

int private_daemon_start(struct private_daemon *d, const char *program, const char *who,
			 uint64_t pool_bytes, uint64_t max_blocks)
{
	const char *tmp = getenv("TMPDIR");
	int ready[2], r;
	char byte;

	*d = (struct private_daemon){ 0 };
	snprintf(d->folder, sizeof(d->folder), "%.200s/kvpool.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(d->folder)) {
		r = -errno;
		d->folder[0] = '\0';
		return r;
	}
	snprintf(d->socket, sizeof(d->socket), "%s/kvpool.sock", d->folder);
	/* Not close-on-exec: the daemon writes to it. */
	if (pipe(ready) < 0) {
		r = -errno;
		private_daemon_stop(d);
		return r;
	}
	d->pid = fork();
	if (d->pid == 0) {
		close(ready[0]);
		run(d, program, who, pool_bytes, max_blocks, ready[1]);
	}
	close(ready[1]);
	r = d->pid > 0 && read(ready[0], &byte, 1) == 1 ? 0 : -ECHILD;
	close(ready[0]);
	if (r < 0) {
		fprintf(stderr, "%s: the private daemon %s did not start\n", who, program);
		private_daemon_stop(d);
	}
	return r;
}

void private_daemon_stop(struct private_daemon *d)
{
	static const char *const left[] = { "kvpool.sock", "kvpool.sock.admin",
					    "kvpool.sock.lock",
					    "kvpool.sock.admin.lock" };

	if (d->pid > 0) {
		kill(d->pid, SIGTERM);
		waitpid(d->pid, NULL, 0);
	}
	d->pid = 0;
	for (unsigned int i = 0; d->folder[0] && i < ARRAY_SIZE(left); i++) {
		char path[400];

		snprintf(path, sizeof(path), "%s/%s", d->folder, left[i]);
		unlink(path);
	}
	if (d->folder[0])
		rmdir(d->folder);
	d->folder[0] = '\0';
}
