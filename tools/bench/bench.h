/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvpool-bench: what the pool costs, each case against a limit that is measured in the same run.
 *
 * A case and its limit take turns, so that what else the machine does hits both; the ratio is best
 * over best. A case says what it ran with, and whether that is what the bar was set for: a run that
 * is smaller than that never holds.
 */
#ifndef KVP_TOOLS_BENCH_H
#define KVP_TOOLS_BENCH_H

#include <stdint.h>
#include <sys/types.h>

#include "client/kvpool.h"
#include "tools/private_daemon.h"

#define BENCH_NAME	 "kvpool-bench"
#define BENCH_ROUNDS_MAX 64

struct bench_options {
	unsigned int rounds;
	uint64_t descriptors; /* other blocks in the pool during lookups */
	const char *daemon;   /* path of kvpoold */
};

/* What a result was measured with: the "with" object. */
struct bench_with {
	uint64_t descriptors;
	pid_t writer_pid, reader_pid;
	int pool_full;
	unsigned int cpus, rounds;
	uint64_t page_bytes;
	uint64_t syscalls; /* during the measured part, when they were counted */
	int syscalls_counted;
};

enum bench_sense {
	BENCH_AT_MOST,	/* holds when the ratio is <= bar */
	BENCH_AT_LEAST, /* holds when it is >= bar */
};

struct bench_result {
	const char *name;
	const char *unit;
	double value, value_median;
	const char *limit; /* what the limit is, in words */
	double limit_value, limit_median;
	double ratio;
	double bar; /* 0: reported only */
	enum bench_sense sense;
	int holds;
	const char *why_not; /* NULL, or what spoils it besides the ratio */
	struct bench_with with;
};

/* One measured quantity: returns seconds for one operation, or a negative errno. */
typedef double (*bench_run)(void *ctx);

/* Takes turns of value and limit, rounds each, and fills the numbers of r. Returns 0 or -errno. */
int bench_measure(struct bench_result *r, const struct bench_options *opt, bench_run value,
		  bench_run limit, void *ctx);

/* Puts a finished result out. */
void bench_emit(struct bench_result *r);

/*
 * A group of cases that share a daemon. Each emits its results; 0, or -errno when it could not run.
 */
struct bench_group {
	const char *name; /* "lookup": chosen by this, or by "lookup/…" */
	int (*run)(const struct bench_options *opt);
};

extern const struct bench_group bench_lookup, bench_hash, bench_copy, bench_zero_copy;

double bench_now(void);
uint64_t bench_random(uint64_t *state);

/*
 * A connected handle and a namespace of blocks of block_bytes. Returns 0 or -errno, with words on
 * stderr.
 */
int bench_connect(const struct private_daemon *d, const char *name, struct kvpool **ret);
int bench_namespace(struct kvpool *pool, const char *model, uint32_t block_tokens,
		    uint64_t block_bytes, struct kvpool_ns **ret);

/* Keys of a made-up chain: any 32 bytes are a key. Chain number c of the run seed. */
void bench_chain(uint64_t seed, uint64_t c, struct kvpool_key *keys, size_t n);

/*
 * Runs fn(ctx) in a child process and waits for it to say that it is done; the child lives on,
 * holding what it opened, until bench_writer_stop. Returns 0 or -errno.
 */
struct bench_writer {
	pid_t pid;
	int hold;
};

int bench_writer_start(struct bench_writer *w, int (*fn)(void *ctx), void *ctx);
void bench_writer_stop(struct bench_writer *w);

/* Limits. */

/* Memory of a memfd, like the pool's: all of it touched. */
void *bench_shared_memory(uint64_t bytes);

/* Copies with non-temporal stores, the widest that the CPU has. */
void bench_copy_nt(void *dst, const void *src, size_t n);

#endif
