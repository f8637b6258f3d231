/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon does first with a region that another one left behind, killed at any instruction.
 */
#ifndef KVP_TESTS_SHM_SUCCESSOR_H
#define KVP_TESTS_SHM_SUCCESSOR_H

#include "tests/shm/tree.h"

/*
 * Brings the region of t in order while readers go on, by nothing but what stands in it and in the
 * session regions, and makes the bookkeeping of t and its region anew. The writers are gone.
 */
void successor_take_over(struct tree *t);

#endif
