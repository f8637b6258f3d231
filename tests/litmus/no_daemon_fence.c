/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's half of the handshake with its fence compiled away: tests/litmus/pin.c must lose
 * pins.
 */
#include "base/atomic.h"

#undef fence_seq_cst
#define fence_seq_cst() compiler_barrier()

#include "shm/evict.c"
