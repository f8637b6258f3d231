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

#define BENCH_NAME       "kvpool-bench"
#define BENCH_ROUNDS_MIN 5 /* fewer do not count */
#define BENCH_ROUNDS_MAX 64
#define BENCH_CASES_MAX  6 /* of one group */

struct bench_options {
	unsigned int rounds;
	uint64_t descriptors; /* other blocks in the pool during lookups */
	const char *daemon;   /* path of kvpoold */
	const char *model;    /* GGUF file of the llama cases; NULL: find one */
	const char *text;     /* file that their prompts are taken from; NULL: find one */
};

/* What a result was measured with: the "with" object. A pid of 0: there was no such process. */
struct bench_with {
	uint64_t descriptors;
	pid_t writer_pid, reader_pid;
	int pool_full;
	unsigned int cpus, rounds;
	uint64_t page_bytes;
	uint64_t syscalls; /* during the measured part, when they were counted */
	int syscalls_counted;

	/* Of the llama cases; otherwise NULL and 0. */
	const char *model;
	uint32_t tokens, reused_tokens;
};

enum bench_sense {
	BENCH_AT_MOST,  /* ratio is value / limit; holds when it is <= bar */
	BENCH_AT_LEAST, /* ratio is limit / value; holds when it is >= bar */
};

struct bench_result {
	const char *name;
	const char *unit; /* "ns", "us" or "ms", of seconds; or "B", "MiB", of themselves */
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

/* The same from what was measured elsewhere: n rounds of each, which it sorts. */
void bench_fill(struct bench_result *r, double *value, double *limit, unsigned int n);

/* Where results go: with json they are kept for bench_write_json(), otherwise rows of a table. */
void bench_emit_to(int json);

/* Puts a finished result out. */
void bench_emit(struct bench_result *r);

/* Says in one line why a group did not run. */
void bench_not_run(const char *group, const char *why);

/* How many bars did not hold so far. */
int bench_missed(void);

/* Writes kvpool.bench/1 to file, or to stdout when it is NULL. Returns 0, or -1 with words. */
int bench_write_json(const char *file);

/*
 * A group of cases that share a daemon. run emits their results; it returns 0, or -errno when it
 * could not run, or BENCH_NOT_RUN when something is not installed that it needs: then it has called
 * bench_not_run().
 */
#define BENCH_NOT_RUN 1

struct bench_group {
	const char *name;
	const char *cases[BENCH_CASES_MAX + 1]; /* any of them chooses the group as well */
	int (*run)(const struct bench_options *opt);
};

extern const struct bench_group bench_lookup, bench_hash, bench_turn, bench_copy, bench_zero_copy,
	bench_full, bench_llama;

double bench_now(void);
uint64_t bench_random(uint64_t *state);

/* A connected handle. Returns 0 or -errno, with words on stderr. */
int bench_connect(const struct private_daemon *d, const char *name, struct kvpool **ret);

/* A handle that never connects: hashing needs no daemon. Returns 0 or -errno. */
int bench_offline(struct kvpool **ret);

/* A namespace of blocks of block_bytes. Returns 0 or -errno, with words on stderr. */
int bench_namespace(struct kvpool *pool, const char *model, uint32_t block_tokens,
		    uint64_t block_bytes, struct kvpool_ns **ret);

/* Tokens at random, as of a vocabulary of 50 000. */
void bench_tokens(uint64_t *seed, int32_t *tokens, size_t n);

/* Keys of a made-up chain: any 32 bytes are a key. Chain number c of the run seed. */
void bench_chain(uint64_t seed, uint64_t c, struct kvpool_key *keys, size_t n);

/* Stores blocks under the keys of a new chain; all must fit. Returns 0 or -errno. */
int bench_write_chain(struct kvpool_ns *ns, const struct kvpool_key *keys, uint32_t n);

/*
 * Runs fn(ctx) in a child process and waits for it to say that it is done; the child lives on,
 * holding what it opened, until bench_child_stop. Returns 0 or -errno, what fn returned included.
 */
struct bench_child {
	pid_t pid;
	int hold;
};

int bench_child_start(struct bench_child *child, int (*fn)(void *ctx), void *ctx);
void bench_child_stop(struct bench_child *child);

/* Limits. */

/* Memory of a memfd, like the pool's: all of it touched. */
void *bench_shared_memory(uint64_t bytes);

/* Copies with non-temporal stores, the widest that the CPU has. */
void bench_copy_nt(void *dst, const void *src, size_t n);

#endif
