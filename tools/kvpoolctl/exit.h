/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVP_TOOLS_KVPOOLCTL_EXIT_H
#define KVP_TOOLS_KVPOOLCTL_EXIT_H

/*
 * The exit status of the command; kvpoolctl(1) lists them. Functions that return one have told the
 * reason on stderr already.
 */
enum ctl_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3,
	EXIT_NO_OBJECT = 4,
	EXIT_PARTLY = 5,
	EXIT_DENIED = 77,
	EXIT_BAD_CONFIG = 78,
};

struct exit_meaning {
	enum ctl_exit status;
	const char *text;
};

/* The status number i of the list, NULL behind its end. */
const struct exit_meaning *exit_meaning(unsigned int i);

#endif
