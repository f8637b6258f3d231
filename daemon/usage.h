/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients looked up. Each counts in its session region, and leaves a record of every lookup in
 * its touch ring. The counters say how much it was and survive an overrun of the ring; only the
 * records say why something was missed. Both are claims.
 *
 * An account brings them together: records are booked as they come, up to what the counters have
 * said, and what the counters have said beyond the records is booked as unknown when it is certain
 * that the records are not to come. Only what is booked is shown, so sums hold at any moment.
 */
#ifndef KVP_DAEMON_USAGE_H
#define KVP_DAEMON_USAGE_H

#include "proto/reason.h"
#include "shm/session.h"

#define USAGE_REASONS (MISS_MAX + 1u)

/* hit + miss = asked, the reasons sum to miss, and shared <= hit, whatever the client said. */
struct usage {
	uint64_t lookups, asked, hit, miss, shared, raced;
	uint64_t reasons[USAGE_REASONS]; /* missed tokens, by enum miss_reason */
};

void usage_add(struct usage *sum, const struct usage *u);

/* A lookup: hit + missed + tail tokens. */
struct lookup {
	uint64_t hit;
	uint64_t missed;      /* that could have been a hit */
	uint64_t tail;        /* behind the last block that can be cached */
	enum miss_reason why; /* of missed */
	enum miss_reason why_tail;
};

struct account {
	/* The most that each counter has said; and what was told in another way. */
	uint64_t counted[COUNTER_MAX];
	struct usage told;
	struct usage booked; /* hit, miss and reasons only */
};

/*
 * Books a lookup that a record tells of, or (map NULL) a message. What goes beyond the client's
 * counters is cut off from it.
 */
void account_book(struct account *a, const struct session_map *map, struct lookup *l);

/* No record is to come any more of what the counters have said by now. */
void account_settle(struct account *a, const struct session_map *map);

/* What is booked. map: where the other counters are read. */
void account_read(struct account *a, const struct session_map *map, struct usage *ret);

#endif
