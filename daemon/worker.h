/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for what blocks: populating and punching memory, sealing regions, checksums.
 *
 * The loop owns all state. A job is a struct of its owner with a struct job in it; from submit
 * until done it belongs to the worker. run() is called in the thread and may touch only what lies
 * in the job; done() is called in the loop. Jobs run in the order of their submission, so a long
 * one is cut into steps that submit themselves again in done().
 */
#ifndef KVP_DAEMON_WORKER_H
#define KVP_DAEMON_WORKER_H

#include <systemd/sd-event.h>

#include "base/list.h"

struct worker;

struct job {
	struct list link;
	void (*run)(struct job *j);
	void (*done)(struct job *j);
};

/* Starts the thread and adds its completions to the loop. Returns 0 or -errno. */
int worker_new(sd_event *event, struct worker **ret);

/*
 * Stops the thread after the job that runs now. Jobs that were not done yet are forgotten: their
 * owners free them. Accepts NULL, returns NULL.
 */
struct worker *worker_free(struct worker *w);

void worker_submit(struct worker *w, struct job *j);

#endif
