/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The macros of base/atomic.h over a simulated machine (tests/shm/sim.h). Included before anything
 * else by the compiler's command line; the sources of shm/ are compiled as they are.
 */
#ifndef KVP_TESTS_SHM_HOOKS_H
#define KVP_TESTS_SHM_HOOKS_H

#define KVP_SIMULATED

#include "base/atomic.h"
#include "tests/shm/sim.h"

#undef load_relaxed
#undef load_acquire
#undef store_relaxed
#undef store_release
#undef add_relaxed
#undef fence_seq_cst
#undef fence_release

#define load_relaxed(p)     ((__typeof__(+*(p)))sim_load((p), sizeof(*(p)), 0))
#define load_acquire(p)     ((__typeof__(+*(p)))sim_load((p), sizeof(*(p)), 1))
#define store_relaxed(p, v) sim_store((p), sizeof(*(p)), (v), 0)
#define store_release(p, v) sim_store((p), sizeof(*(p)), (v), 1)
#define add_relaxed(p, v)   ((__typeof__(+*(p)))sim_add((p), sizeof(*(p)), (v)))
#define fence_seq_cst()     sim_fence_full()
#define fence_release()     sim_fence_release()

/* The bytes of blocks, which are plain memory elsewhere. */
#define REGION_LOAD(p)     load_relaxed(p)
#define REGION_STORE(p, v) store_relaxed(p, v)
#define REGION_PEEK(p)     ((__typeof__(+*(p)))sim_peek((p), sizeof(*(p))))

#endif
