/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of the group "full" share: a daemon whose pool holds as many blocks as fit. */
#ifndef KVP_TOOLS_BENCH_FULL_H
#define KVP_TOOLS_BENCH_FULL_H

#include "tools/bench/wire.h"

#define FULL_MODEL       "bench-full"
#define FULL_TOKENS      16u /* of a block */
#define FULL_BLOCK       4096u
#define FULL_CHAIN       128u     /* blocks of each chain that it is filled with */
#define FULL_HOT         512u     /* chains that are looked up over and over */
#define FULL_DESCRIPTORS 1000000u /* for fewer the bars do not count */

struct full {
	const struct bench_options *opt;
	struct private_daemon daemon;
	struct bench_child writer;
	uint64_t own_before; /* bytes of the daemon's own memory before a block was there */
	struct wire *wire;
	uint32_t ns;     /* its number there */
	uint64_t blocks; /* that the pool has room for */
	uint32_t chains;
	struct kvpool_key *keys; /* of all of them */
	uint64_t random;
	uint64_t *table; /* lines of 8 words, as many as blocks */
	uint64_t mask;   /* of line numbers */
	struct echo echo;
	size_t sizes[4]; /* of the packets of a put */
	volatile uint64_t sink;
};

/* The keys of a chain that is there, or was until it was evicted. */
const struct kvpool_key *full_chain(const struct full *c, uint32_t chain);

/* Measures, and fills in what all of these cases ran with. Returns 0 or -errno. */
int full_measure(struct full *c, struct bench_result *r, bench_run value, bench_run limit,
		 void *ctx);

/* A process that looks chains up, one after the other, until it is stopped. */
struct looker {
	pid_t pid;
};

/*
 * The last chains of those that were written, each by itself at random. found counts lookups that
 * found all of theirs, missed the others; both are memory shared with the process.
 */
int looker_start(struct looker *l, struct full *c, volatile uint64_t *found,
		 volatile uint64_t *missed);
void looker_stop(struct looker *l);

/* The daemon's own memory, in bytes, and its control region's; 0 or -errno. */
int full_memory(const struct private_daemon *d, uint64_t *ret_own, uint64_t *ret_control);

/* The cases in other files. Return 0 or -errno. */
int full_clients(struct full *c);
int full_overhead(struct full *c);

#endif
