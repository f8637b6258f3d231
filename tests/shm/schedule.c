/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol at random: a daemon and three readers on a simulated machine (tests/shm/sim.h) take
 * turns at every access to shared memory. Readers and the daemon are killed anywhere; the checker
 * looks at what a kill left, and a successor takes over while the readers go on. Every answer is
 * compared with a reference model, and every byte that a reader reads with what it must be.
 *
 * 	schedule [-x] [SEEDS [FIRST [TURNS]]]
 *
 * One seed is one run in a process of its own; memory is strong, TSO or C11 by turns. -x: one of
 * the rules is compiled away, and some seed must fail.
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/checker.h"
#include "tests/shm/schedule_reader.h"
#include "tests/shm/successor.h"

#define DAEMON  0u
#define READERS 3u /* actors 1 to READERS, sessions 0 to READERS - 1 */

/* A run in continuous integration: what it takes for each kind of event to happen some times. */
#define SEEDS 60u
#define TURNS 300000u

/* Kills, one in so many turns; a dead reader's session is reaped, and a new one starts. */
#define KILL_DAEMON_ONE_IN 3000
#define KILL_READER_ONE_IN 4000
#define REAP_ONE_IN        500
/* The strict check, one in so many turns at which the daemon rests. */
#define CHECK_ONE_IN       5

static struct world w;
static uint64_t ops, kills, reader_kills, checks;

static void finding(void *ctx, const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
	assert(!"finding");
}

static void check(enum checker_mode mode)
{
	static uint64_t scratch[64];
	struct checker k = {
		.mode = mode, .scratch = scratch, .scratch_bytes = sizeof(scratch),
		.max_findings = 1, .found = finding,
	};

	assert(checker_run(&k, w.r.base, w.r.bytes) == 0);
	checks++;
}

/* Stronger than what the checker asks for: no kill leaves an entry that is of no use. */
static void check_entries_current(void)
{
	for (uint64_t b = 0; b <= w.r.c.bucket_mask; b++)
		for (unsigned int i = 0; i < BUCKET_ENTRIES; i++) {
			uint64_t e = load_relaxed(&w.r.c.index[b].entry[i]);
			uint64_t word = e ? load_relaxed(&w.r.c.desc[entry_desc(e)].word) : 0;

			assert(!e || (entry_gen(e) == (word_gen(word) & 0xffff) &&
				      word_state(word) != DESC_FREE));
		}
}

/* Back to the event loop, which is a system call; tick has a look at the region. */
static void rest(void)
{
	sim_message();
	reference_refresh(&w);
	w.daemon_busy = 0;
	sim_pass();
	w.daemon_busy = 1;
}

static void daemon_ops(void)
{
	for (;; ops++) {
		struct tree_op op = tree_pick(&w.t);
		uint8_t in[TREE_NODES];

		tree_affected(&w.t, &op, in);
		reference_unsure(&w, in);
		tree_do(&w.t, &op);
		if (!sim_random(8))
			take_touches(&w, sim_random(READERS));
		rest();
	}
}

static void daemon_main(void *arg)
{
	rest();
	daemon_ops();
}

static void successor_main(void *arg)
{
	successor_take_over(&w.t);
	rest();
	daemon_ops();
}

static void kill_daemon(void)
{
	sim_kill(DAEMON);
	check(CHECKER_AFTER_KILL);
	check_entries_current();
	w.daemon_busy = 1;
	sim_start(DAEMON, successor_main, NULL);
	kills++;
}

/* Its hazard words stay where they are; nobody reads by them any more. */
static void kill_reader(unsigned int i)
{
	sim_kill(1 + i);
	w.reader[i].held = 0;
	reader_kills++;
}

static void reap_reader(unsigned int i)
{
	for (unsigned int h = 0; h < REGION_HAZARDS; h++)
		store_release(&w.r.session[i].hazard[h], 0);
	sim_start(1 + i, reader_main, &w.reader[i]);
}

static void tick(void *ctx)
{
	unsigned int i = sim_random(READERS);

	leases_check(&w, READERS);
	if (!w.daemon_busy && !sim_random(CHECK_ONE_IN))
		check(CHECKER_QUIET);
	if (!sim_random(KILL_DAEMON_ONE_IN))
		kill_daemon();
	if (sim_alive(1 + i) ? !sim_random(KILL_READER_ONE_IN) : !sim_random(REAP_ONE_IN)) {
		if (sim_alive(1 + i))
			kill_reader(i);
		else
			reap_reader(i);
	}
}

static void run_seed(uint64_t seed, uint64_t turns)
{
	struct region_config cfg = {
		.max_blocks = 12, .sessions = READERS, .touches = 2, .promised = 5,
	};

	sim_init(seed, (enum sim_memory)(seed % SIM_MEMORIES));
	region_init(&w.r, &cfg);
	tree_init(&w.t, &w.r, seed);
	reference_init(&w);
	sim_start(DAEMON, daemon_main, NULL);
	for (unsigned int i = 0; i < READERS; i++) {
		w.reader[i] = (struct reader){ .w = &w, .number = i };
		sim_start(1 + i, reader_main, &w.reader[i]);
	}
	sim_run(turns, tick, NULL);
}

/* What a run was made of, for its parent. */
struct totals {
	uint64_t ops, kills, reader_kills, checks, moved;
	uint64_t lookups, hits, raced, extended, other_prefix;
};

static struct totals sum_up(void)
{
	struct totals t = { ops, kills, reader_kills, checks, w.r.c.head->moved, 0, 0, 0, 0, 0 };

	for (unsigned int i = 0; i < READERS; i++) {
		t.lookups += w.reader[i].lookups;
		t.hits += w.reader[i].hits;
		t.raced += w.reader[i].raced;
		t.extended += w.reader[i].extended;
		t.other_prefix += w.reader[i].other_prefix;
	}
	return t;
}

/* 1: it failed, and said so. */
static int fork_seed(uint64_t seed, uint64_t turns, struct totals *total)
{
	struct totals t;
	int p[2], status;

	assert(pipe(p) == 0);
	fflush(stdout);
	if (!fork()) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		alarm(120);
		run_seed(seed, turns);
		t = sum_up();
		_exit(write(p[1], &t, sizeof(t)) != sizeof(t));
	}
	close(p[1]);
	assert(wait(&status) > 0);
	if (status || read(p[0], &t, sizeof(t)) != sizeof(t)) {
		close(p[0]);
		printf("seed %llu failed, run again with: schedule 1 %llu %llu\n",
		       (unsigned long long)seed, (unsigned long long)seed,
		       (unsigned long long)turns);
		return 1;
	}
	close(p[0]);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(uint64_t); i++)
		((uint64_t *)total)[i] += ((uint64_t *)&t)[i];
	return 0;
}

static int idle(const struct totals *t)
{
	const uint64_t *n = (const uint64_t *)t;
	int zeros = 0;

	for (unsigned int i = 0; i < sizeof(*t) / sizeof(*n); i++)
		zeros += !n[i];
	return zeros;
}

int main(int argc, char **argv)
{
	int must_fail = argc > 1 && !strcmp(argv[1], "-x");
	uint64_t seeds, first, turns, failed = 0;
	struct totals t = { 0 };

	argv += must_fail;
	argc -= must_fail;
	seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : SEEDS;
	first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	turns = argc > 3 ? strtoull(argv[3], NULL, 0) : TURNS;
	for (uint64_t i = 0; i < seeds && !(must_fail && failed); i++)
		failed += (uint64_t)fork_seed(first + i, turns, &t);
	printf("%llu seeds, %llu failed\n", (unsigned long long)seeds, (unsigned long long)failed);
	printf("daemon: %llu operations, killed %llu times, %llu moved entries, %llu checks\n",
	       (unsigned long long)t.ops, (unsigned long long)t.kills, (unsigned long long)t.moved,
	       (unsigned long long)t.checks);
	printf("readers: %llu lookups, %llu hits, %llu raced, %llu extended, %llu of other prefix, "
	       "killed %llu times\n", (unsigned long long)t.lookups, (unsigned long long)t.hits,
	       (unsigned long long)t.raced, (unsigned long long)t.extended,
	       (unsigned long long)t.other_prefix, (unsigned long long)t.reader_kills);
	if (must_fail)
		return !failed;
	if (seeds >= SEEDS && idle(&t))
		printf("something never happened: this run shows less than it should\n");
	return failed || (seeds >= SEEDS && idle(&t));
}
