/* SPDX-License-Identifier: Apache-2.0 */
/* A kvpoold of one's own, in a folder of its own, for demonstrations and measurements. */
#ifndef KVP_TOOLS_PRIVATE_DAEMON_H
#define KVP_TOOLS_PRIVATE_DAEMON_H

#include <stdint.h>
#include <sys/types.h>

struct private_daemon {
	pid_t pid;
	char folder[256]; /* below $TMPDIR */
	char socket[300];
};

/*
 * The program that belongs to this one: beside it, or where the build folder has it. name is its
 * file name, folder where the build puts it. The text lies in a static buffer, or is name alone,
 * for $PATH.
 */
const char *private_program(const char *folder, const char *name);

/*
 * Starts program and waits until it serves. who is the name of the caller, for messages on stderr.
 * max_blocks 0: the daemon's own choice. It ends with its parent. Returns 0 or -errno.
 */
int private_daemon_start(struct private_daemon *d, const char *program, const char *who,
			 uint64_t pool_bytes, uint64_t max_blocks);

/* Ends it, waits for it, removes the folder. Harmless when it did not start, or was stopped. */
void private_daemon_stop(struct private_daemon *d);

#endif
