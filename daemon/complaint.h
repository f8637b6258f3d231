/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a configuration, all of it: a line each, "/etc/kvpool/kvpool.conf:12:
 * host.pool_size = 12GB: has no known unit ...".
 */
#ifndef KVP_DAEMON_COMPLAINT_H
#define KVP_DAEMON_COMPLAINT_H

#include <stddef.h>

struct complaints {
	char **lines; /* the first COMPLAINTS_KEPT of them */
	size_t n;     /* all of them */
};

#define COMPLAINTS_KEPT 64u

#define COMPLAINTS_INIT                                                                            \
	{                                                                                          \
		NULL, 0                                                                            \
	}

/* Characters that a terminal would obey become "?". */
void complaint_add(struct complaints *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How many lines are kept. */
size_t complaint_kept(const struct complaints *c);

/* One line for an answer: the first one, and how many more there are. */
void complaint_summary(const struct complaints *c, char *out, size_t n);

/* Twice is harmless. */
void complaint_clear(struct complaints *c);

#endif
