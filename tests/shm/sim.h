/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated machine: actors that take turns at every access to shared memory, in an order that
 * follows from a seed, over memory that shows them each other's stores late.
 *
 * Code is compiled with tests/shm/hooks.h in place of the atomic macros; what it loads and stores
 * then comes here. An actor is a coroutine. Outside of actors (set-up, ticks) accesses go straight
 * to memory.
 */
#ifndef KVP_TESTS_SHM_SIM_H
#define KVP_TESTS_SHM_SIM_H

#include <stddef.h>
#include <stdint.h>

#define SIM_ACTORS 6u

enum sim_memory {
	/* Every store is seen by all at once. */
	SIM_STRONG,
	/* A store buffer for each actor, first in, first out: x86. */
	SIM_TSO,
	/*
	 * The C11 model without its out-of-thin-air corner: a load may return any value that is not
	 * older than what the actor must have seen, by what it has read with acquire and passed in
	 * fences. Weaker than any processor: only the orders that the code names count.
	 */
	SIM_C11,
	SIM_MEMORIES,
};

void sim_init(uint64_t seed, enum sim_memory memory);

/* Starts actor a, which must not be running. It has seen all that there is. */
void sim_start(unsigned int a, void (*main)(void *arg), void *arg);

/* Ends it where it stands. What it has stored is stored. */
void sim_kill(unsigned int a);
int sim_alive(unsigned int a);

/* How many of its stores have not reached memory. */
unsigned int sim_pending(unsigned int a);

/* The running actor gets a message from the others: it has seen all that there is. */
void sim_message(void);

/* The running actor gives its turn away. */
void sim_pass(void);

/* Runs until n turns are over; tick is called between turns, outside of the actors. */
void sim_run(uint64_t n, void (*tick)(void *ctx), void *ctx);

/* Turns since sim_init, and a number from the same seed. */
uint64_t sim_now(void);
uint32_t sim_random(uint32_t below);

uint64_t sim_load(const void *p, size_t size, int acquire);
/* The same without passing the turn on, for bookkeeping that is of no interest. */
uint64_t sim_peek(const void *p, size_t size);
void sim_store(void *p, size_t size, uint64_t value, int release);
void sim_fence_release(void);
void sim_fence_full(void);
uint64_t sim_add(void *p, size_t size, uint64_t value);

#endif
