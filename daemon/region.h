/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session region as the daemon holds it: memory that one client writes, and whose every byte is
 * hostile.
 *
 * The daemon reads it through a mapping of a read-only descriptor, so that its own mapping does not
 * count as a writable one. The geometry is the daemon's own.
 *
 * The end of it: somebody may go on reading under its pins until nobody can write to it any more.
 * There are two proofs, each enough. A read lease is granted only when no descriptor or mapping is
 * left that was opened for writing; that costs next to nothing, and is what a client that ended in
 * any way leaves behind. F_SEAL_WRITE is granted only when no writable mapping exists, and keeps a
 * late one from being made: for a descriptor that somebody keeps. It is not to be had where the
 * client sealed the region against seals, and can block for 160 ms where pages are held by the
 * kernel, so all of it is tried in the worker, with pauses that grow.
 */
#ifndef KVP_DAEMON_REGION_H
#define KVP_DAEMON_REGION_H

#include <systemd/sd-event.h>

#include "daemon/worker.h"
#include "shm/session.h"

#define REGION_HAZARDS_MIN 2u
#define REGION_HAZARDS_MAX 32768u
#define REGION_TOUCHES     2048u

struct region {
	/*
	 * The memfd as it was made. It does not count as opened for writing, so it can stay: the
	 * seal is set on it.
	 */
	int fd;
	int client_fd; /* the same, opened for writing: what the client gets */
	int read_fd;
	void *base;
	uint64_t size;
	uint64_t session;
	struct session_map map;
	uint64_t touch_place, touches_lost;

	struct worker *worker;
	struct job probe;
	int probing, hurry, told;
	int verdict; /* of the last probe: 0 nobody can write, 1 somebody can, or -errno */
	uint64_t pause_ns, took_ns;
	sd_event_source *timer; /* the pause between two probes */
	void (*released)(void *ctx);
	void *ctx;
};

/*
 * Makes the region of a session, with hazards hazard words (REGION_HAZARDS_MIN to _MAX). Returns 0
 * or -errno.
 */
int region_new(sd_event *event, uint64_t session, uint32_t hazards, struct region **ret);

/* Never while it drains, unless the worker is gone. Accepts NULL, returns NULL. */
struct region *region_free(struct region *r);

/*
 * Starts to ask whether anybody can still write to it; released(ctx) is called from the loop, once,
 * when nobody can. That call may free the region. The client's descriptor is closed here.
 */
void region_drain(struct region *r, struct worker *worker, void (*released)(void *ctx), void *ctx);

/* While it drains: the client's process is gone, so ask now. */
void region_hurry(struct region *r);

/*
 * One try, blocking: 0 when nobody can write to it now or later, 1 when somebody still can, or
 * -errno when it cannot be told.
 */
int region_try_seal(const struct region *r);

#endif
