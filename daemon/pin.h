/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators' pins: a table of prefixes that stay, and a count for each block of how many of them it
 * belongs to.
 *
 * A pin is one member of every snapshot of pins (pin_scan), as if a reader had the block in its
 * hazard word: so eviction, expiry, reclaim and resize honour it as they honour readers. Flush and
 * doom are stronger than a pin: it ends with its block. So the block of a pin is always COMMITTED.
 */
#ifndef KVP_DAEMON_PIN_H
#define KVP_DAEMON_PIN_H

#include "daemon/pool.h"

/* In a block's count: it is the deepest one of a pin. */
#define PIN_IS_TIP 0x8000u

struct pin;

struct pin_table {
	struct list all; /* of struct pin, by their numbers */
	uint32_t count;
	/* The block of each, in no order: what each snapshot reads. And whose that is. */
	uint32_t tip[POOL_PINS_MAX];
	struct pin *of_tip[POOL_PINS_MAX];
	uint64_t last; /* number given */
	uint64_t budget, bytes;
	uint64_t next; /* when the first one ends */
	/*
	 * By number of the descriptor: in how many pins the block is. Zeroed by the kernel page by
	 * page: without pins it is not there.
	 */
	uint16_t *holds;
};

void pin_table_init(struct pin_table *t);

/* Room for max_blocks; a budget of POOL_PIN_BUDGET percent. 0 or -ENOMEM. */
int pin_table_make(struct pin_table *t, uint32_t max_blocks, uint64_t pool_bytes);
void pin_table_fini(struct pin_table *t);

/* Adds the deepest block of each pin. */
void pin_scan(const struct pin_table *t, struct pinset *pins);

/* Whether an operator's pin keeps d. */
static inline int pin_holds(const struct pin_table *t, uint32_t d)
{
	return t->holds[d] != 0;
}

/* Block d goes, whoever pins it: ends the pins that end there. Returns how many. */
uint32_t pin_drop(struct pool *p, uint32_t d);

uint32_t pin_count_ns(const struct pin_table *t, uint32_t ns);

/*
 * Ends some of those whose time is over. Returns when the next one is due: now when there are more,
 * UINT64_MAX for never.
 */
uint64_t pin_time_out(struct pool *p, uint64_t now);

#endif
