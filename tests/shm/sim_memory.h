/* SPDX-License-Identifier: Apache-2.0 */
/* What the actors of a simulated machine see of each other's stores: see enum sim_memory. */
#ifndef KVP_TESTS_SHM_SIM_MEMORY_H
#define KVP_TESTS_SHM_SIM_MEMORY_H

#include "tests/shm/sim.h"

void memory_init(enum sim_memory model);

/* Actor a has seen all that there is, and all that it has stored is seen. */
void memory_sync(unsigned int a);

/* A store from outside of the actors. */
void memory_poke(void *p, size_t size, uint64_t value);

uint64_t memory_load(unsigned int a, const void *p, size_t size, int acquire);
void memory_store(unsigned int a, void *p, size_t size, uint64_t value, int release);
void memory_fence_release(unsigned int a);
void memory_fence_full(unsigned int a);
uint64_t memory_add(unsigned int a, void *p, size_t size, uint64_t value);

/* Lets one waiting store of a reach memory, if there is one. */
void memory_drain(unsigned int a);
unsigned int memory_pending(unsigned int a);

#endif
