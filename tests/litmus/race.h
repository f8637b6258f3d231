/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes on two processors that do one step each at the same moment, many times over.
 *
 * The one that drives prepares a round, both wait for the same tick of the clock, the driver with a
 * skew that follows the outcome: whoever came first comes a little later next time, so that most
 * rounds are close to a tie, where the order of two stores and two loads is decided.
 */
#ifndef KVP_TESTS_LITMUS_RACE_H
#define KVP_TESTS_LITMUS_RACE_H

#include <stdint.h>

#include "tests/shm/random.h"

struct race {
	_Alignas(64) uint64_t round; /* the driver has prepared it */
	_Alignas(64) uint64_t ready; /* so has the other one */
	_Alignas(64) uint64_t at;    /* when it starts; 0: not known yet */
	_Alignas(64) uint64_t done;  /* the other one has finished it */
	_Alignas(64) uint64_t result;
};

/* The driver's side of it. */
struct race_driver {
	struct race *race; /* shared */
	struct random rnd;
	int64_t skew;
};

/*
 * Takes the first two processors that this process may run on. Returns 0, or -1 and says why when
 * there is only one: the caller exits with 77.
 */
int race_processors(int cpu[2]);
void race_run_on(int cpu);

/*
 * Starts the other one: a process that calls step for each round, from 1 to rounds. step returns
 * what race_result hands to the driver; race_wait in it waits for the start of the round.
 */
struct race_driver race_start(const int cpu[2], uint64_t rounds,
			      uint64_t (*step)(struct race *race, void *ctx), void *ctx);
void race_wait(struct race *race);

/*
 * The driver: starts a round and returns at its time, give or take; waits for the other's result.
 */
void race_go(struct race_driver *d);
uint64_t race_result(struct race_driver *d);

/* The other one came first: it gets less of a lead next time; or the driver does. */
void race_came_first(struct race_driver *d, int other);

/* Waits for the process; its exit status must be 0. */
void race_end(struct race_driver *d);

#endif
