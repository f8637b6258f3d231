/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trust boundary: a pool, and the sessions of those who may share it.
 *
 * It is the shell around the pool model: it answers what the pool asks for (struct pool_ops), tells
 * it what time it is, and brings it what clients leave in their regions.
 */
#ifndef KVP_DAEMON_DOMAIN_H
#define KVP_DAEMON_DOMAIN_H

#include "daemon/backing.h"
#include "daemon/baseline.h"
#include "daemon/config.h"
#include "daemon/options.h"
#include "daemon/prefixes.h"
#include "daemon/session.h"
#include "daemon/usage.h"
#include "proto/codec.h"

/*
 * An ended session counts as long as it may still pin something. What it keeps until its region is
 * gone, memory and descriptors, is bounded apart.
 */
#define DOMAIN_SESSIONS_FACTOR 4u /* times max_clients: all that drain included */
#define DOMAIN_ADMINS          16u

/* Hazard words of all sessions: what a scan reads, some 1 ms. */
#define DOMAIN_HAZARDS (512u << 10)

#define DOMAIN_NO_GROUP ((gid_t)-1)

struct configurator;
struct loudness;

struct domain_config {
	const char *name;
	enum instance instance;
	const struct config *config; /* until domain_apply_config */
	/* Of the process, for what operators ask. */
	struct configurator *configurator;
	struct loudness *loudness;
	/*
	 * Of a system instance: who may be a client, or an operator. None: the socket's mode
	 * decides.
	 */
	gid_t client_group, admin_group;
};

struct domain {
	struct domain_config cfg;
	const struct config *config; /* in force; its owner keeps it */
	uint64_t started;
	sd_event *event;
	struct worker *worker;
	struct pool *pool;
	struct backing *backing;
	struct hostmem *hostmem;

	struct list sessions; /* of both sockets, and draining ones */
	struct list doomed;
	uint64_t last_number;
	uint32_t hazards; /* given to sessions that are there */
	struct list verifies;
	struct usage ended_usage; /* of sessions that are gone */
	uint64_t ended_touches_lost;
	struct prefixes prefixes;
	struct requests requests;
	struct domain_counts counts;
	struct baseline baseline; /* of STATS_RESET */

	/* One request at a time: what it is received into, unpacked into, answered from. */
	unsigned char packet[FRAME_MAX], answer[FRAME_MAX];
	struct codec_arena arena;
	void *arena_memory;
	struct pinset leased; /* scratch of leases_count() */

	int changed;           /* blocks, since the last pool_wake */
	unsigned int flushing; /* requests to flush that count their blocks */
	sd_event_source *post;
	uint64_t tick_at;
	sd_event_source *tick; /* calls the pool then */
	sd_event_source *idle; /* while nothing else is to be done */
	uint64_t changed_at;   /* when blocks changed last */
	/* drains touch rings and looks at the time, while there are sessions */
	sd_event_source *touch;
};

/* Returns 0 or -errno. */
int domain_new(sd_event *event, struct worker *worker, const struct domain_config *cfg,
	       struct domain **ret);

/*
 * Whether now can take the place of the configuration in force; if not, -EINVAL and why, which
 * names the key.
 */
#define DOMAIN_WHY_BYTES 256u
int domain_check_config(struct domain *d, const struct config *now,
			char why[DOMAIN_WHY_BYTES]);

/*
 * It does, from here on: acts on what differs. After domain_check_config, and so without fail. Keys
 * that take a restart are the same in both. The old one may be freed afterwards.
 */
void domain_apply_config(struct domain *d, const struct config *now);

/* What the configuration says of a namespace: to be told to the pool when it was opened. */
void domain_apply_ns(struct domain *d, uint32_t ns);

/* The same of what is a part of the pool's size: when that is another one. */
void domain_apply_shares(struct domain *d);

/*
 * Sets how far the pool may grow, or (dry_run) only tells what that would do: see pool_resize. The
 * text is what keeps the new size from being used in full, or empty; on failure it says why.
 */
int domain_resize(struct domain *d, uint64_t bytes, int dry_run, struct pool_resized *ret,
		  char text[DOMAIN_WHY_BYTES]);

/* After worker_free. Accepts NULL, returns NULL. */
struct domain *domain_free(struct domain *d);

/*
 * A socket was accepted: makes a session of it, or refuses it in words. The socket is its own from
 * then on.
 */
void domain_admit(struct domain *d, int sock, struct peer *peer, int admin);

/* Nobody is served any more: readers miss, clients are told, sessions end. */
void domain_stop(struct domain *d);

/* NULL when it is gone, or ended and draining. */
struct session *domain_find(struct domain *d, uint64_t number);

/* How many sessions there are: of clients (with those that drain), draining ones, admin ones. */
struct domain_census {
	uint32_t clients, draining, admins;
};

void domain_census(const struct domain *d, struct domain_census *ret);

/*
 * Brings the pool what clients say they used. Before room is made for somebody, so that what was
 * just used is not what goes.
 */
void domain_drain_touches(struct domain *d, uint64_t now);

/* Sums of the sessions that are there and those that were. */
void domain_usage(struct domain *d, struct usage *ret, uint64_t *ret_touches_lost);

/* Counters begin at zero, for those who look at them with d->baseline. */
void domain_reset_counters(struct domain *d, uint64_t now);

/* Called by a session: it is in the list from here on, and out of it. */
void domain_add(struct domain *d, struct session *s);
void domain_remove(struct domain *d, struct session *s);

#endif
