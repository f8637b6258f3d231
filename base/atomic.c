/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"

#ifdef KVP_TSAN
uint64_t kvp_tsan_fence;
#endif
