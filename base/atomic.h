/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic access to memory that other processes read or write at the same time.
 *
 * Shared structures are plain integers in a layout that both sides agree on; every access to them
 * goes through these macros, so that each load and store says its order at the place where it is
 * made.
 */
#ifndef KVP_BASE_ATOMIC_H
#define KVP_BASE_ATOMIC_H

#include <stdint.h>

#define load_relaxed(p)      __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)      __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define add_relaxed(p, v)    __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define add_acq_rel(p, v)    __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define or_acq_rel(p, v)     __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define xchg_acq_rel(p, v)   __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

/* Compare and swap: true when *p was *expected and is now v; otherwise *expected is what *p was. */
#define cas_acq_rel(p, expected, v) \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Keeps the compiler, not the processor, from moving or merging accesses across it. */
#define compiler_barrier() __asm__ volatile("" : : : "memory")

/*
 * Brings the line of a 64-bit word nearer by loading it, for a reader that needs it soon. A prefetch
 * instruction would not do: some processors drop it where the address is in no TLB, which is the
 * rule in a table of many pages. Independent loads in a short loop are on their way together.
 */
#define touch_line(p) __asm__ volatile("" : : "r"(load_relaxed(p)))

/*
 * fence_seq_cst() orders every access before it against every access after it, against the other
 * side's fence_seq_cst(). ThreadSanitizer does not model fences, so in a build for it a
 * sequentially consistent read-modify-write on one global stands in: all of those are totally
 * ordered and synchronise with each other, which is the property that the callers need.
 *
 * fence_release() orders what is before it against stores after it.
 */
#if defined(__SANITIZE_THREAD__)
#define KVP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KVP_TSAN 1
#endif
#endif

#ifdef KVP_TSAN
extern uint64_t kvp_tsan_fence;
#define fence_seq_cst() ((void)__atomic_fetch_add(&kvp_tsan_fence, 1, __ATOMIC_SEQ_CST))
#define fence_release() fence_seq_cst()
#else
#define fence_seq_cst() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif

#endif
