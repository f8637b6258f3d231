/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole daemon, put together: event loop, worker, domain, sockets, signals, and what the
 * service manager wants to know. The only file beside main.c that knows everybody.
 */
#ifndef KVP_DAEMON_MANAGER_H
#define KVP_DAEMON_MANAGER_H

#include "daemon/configurator.h"
#include "daemon/options.h"

struct manager;

/*
 * Builds it and starts to listen. Both arguments must outlive it. Returns 0, or -errno after it was
 * logged what went wrong.
 */
int manager_new(const struct options *o, struct configurator *c, struct manager **ret);

/* Says that it is ready, and serves until it is told to stop. Returns 0, or -errno. */
int manager_run(struct manager *m);

/* Accepts NULL, returns NULL. */
struct manager *manager_free(struct manager *m);

#endif
