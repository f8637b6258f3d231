/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private kvpoold for one test: in a folder of its own under $TMPDIR, with small defaults, gone
 * with the test whatever happens to it (the daemon gets SIGTERM when the thread that started it
 * dies).
 *
 * Which program it runs: $KVPOOLD, else the one of this build.
 */
#ifndef KVP_TESTS_INTEGRATION_DAEMON_H
#define KVP_TESTS_INTEGRATION_DAEMON_H

#include <sys/types.h>

struct daemon {
	pid_t pid; /* -1: not running */
	char dir[64];
	char socket[96], admin[104];
};

/*
 * Makes the folder, starts the daemon and waits until it is ready. args (NULL or ending with NULL)
 * come after the defaults --socket, --pool-size 64M and --max-blocks 4096, so they win over them.
 * Returns 0; otherwise says on stderr what went wrong and returns -1, with nothing left behind.
 */
int daemon_start(struct daemon *d, const char *const *args);

/* Starts another one in the same folder, after daemon_stop or daemon_kill. */
int daemon_again(struct daemon *d, const char *const *args);

/* SIGTERM or SIGKILL, by its pid, and waits for it. Returns its exit status, or -signal. */
int daemon_stop(struct daemon *d);
int daemon_kill(struct daemon *d);

/*
 * Stops it if it runs, and removes the folder. Returns what daemon_stop said, 0 if it did not run.
 */
int daemon_end(struct daemon *d);

#endif
