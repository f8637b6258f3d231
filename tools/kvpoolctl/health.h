/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of a daemon say about its health. */
#ifndef KVP_TOOLS_KVPOOLCTL_HEALTH_H
#define KVP_TOOLS_KVPOOLCTL_HEALTH_H

#include "proto/kvpool.pb-c.h"

enum health_level {
	HEALTH_OK,
	HEALTH_NOTE, /* worth knowing, nothing to mend */
	HEALTH_WARN, /* something to mend */
};

/* "ok", "note", "warn" */
const char *health_level_name(enum health_level level);

/* One thing that can be found. The code is for programs and never changes its meaning. */
struct health_finding {
	const char *code;
	enum health_level level;
	int is_state;                                    /* it is so, or not: no number to show */
	const char *text;                                /* what is counted, or what is so */
	const char *advice;                              /* the next step */
	uint64_t (*count)(const Kvpool__StatusReply *s); /* 0: not found */
};

/* The finding i of the list, NULL behind its end. */
const struct health_finding *health_finding(unsigned int i);

/* The worst level of all that is found. */
enum health_level health_level(const Kvpool__StatusReply *s);

#endif
