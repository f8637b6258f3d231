/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as other processors see it: a store waits in the buffer of its processor, and loads of
 * the others do not see it before it drains. Spin itself is sequentially consistent, and cannot
 * tell a protocol with fences from one without.
 *
 * A model defines CPUS and CELLS and includes this. -DWEAK chooses the order in which a buffer
 * drains:
 *
 *	without	first in, first out: x86 (TSO)
 *	with	any order, but two stores to one cell stay in order, and no store passes a release
 *		(a release store, or a release fence) that stands before it: aarch64 and the like
 *
 * Loads are made in the order in which they stand: where the code has a relaxed load, an acquire
 * load or a full fence stands between it and what its order matters for. A processor finds its own
 * waiting stores. A killed process's stores drain as all others do.
 */
#include "witness.h"

#define DEPTH 4		/* stores that wait at once; a further one waits for room */

typedef buffer {
	byte n;
	byte cell[DEPTH];
	byte value[DEPTH];
	byte group[DEPTH];	/* a store waits until none of a lower group is left */
	byte now		/* group of the next store */
};

byte mem[CELLS];
buffer sb[CPUS];
hidden byte k_;

inline put_(cpu, at, v) {
	sb[cpu].cell[sb[cpu].n] = at;
	sb[cpu].value[sb[cpu].n] = v;
	sb[cpu].group[sb[cpu].n] = sb[cpu].now;
	sb[cpu].n++
}

inline store_relaxed(cpu, at, v) {
	atomic { sb[cpu].n < DEPTH -> put_(cpu, at, v) }
}

inline fence_release(cpu) {
	atomic {
		if
		:: sb[cpu].n > 0 -> sb[cpu].now++
		:: else
		fi
	}
}

inline store_release(cpu, at, v) {
	atomic {
		sb[cpu].n < DEPTH ->
		if
		:: sb[cpu].n > 0 -> sb[cpu].now++
		:: else
		fi;
		put_(cpu, at, v)
	}
}

inline fence_seq_cst(cpu) {
	sb[cpu].n == 0
}

/* x = what cpu reads from cell at */
inline load(cpu, at, x) {
	d_step {
		x = mem[at];
		k_ = 0;
		do
		:: k_ < sb[cpu].n ->
			if
			:: sb[cpu].cell[k_] == at -> x = sb[cpu].value[k_]
			:: else
			fi;
			k_++
		:: else -> break
		od
	}
}

/* Store i of cpu goes to memory, and the ones behind it move up. */
inline drain_(cpu, i) {
	mem[sb[cpu].cell[i]] = sb[cpu].value[i];
	k_ = i;
	do
	:: k_ + 1 < sb[cpu].n ->
		sb[cpu].cell[k_] = sb[cpu].cell[k_ + 1];
		sb[cpu].value[k_] = sb[cpu].value[k_ + 1];
		sb[cpu].group[k_] = sb[cpu].group[k_ + 1];
		k_++
	:: else -> break
	od;
	sb[cpu].n--;
	sb[cpu].cell[sb[cpu].n] = 0;
	sb[cpu].value[sb[cpu].n] = 0;
	sb[cpu].group[sb[cpu].n] = 0;
	/*
	 * Only whether groups are equal counts: start anew, so that equal buffers are equal states.
	 */
	if
	:: sb[cpu].n == 0 -> sb[cpu].now = 0
	:: else
	fi
}

/* No earlier store of cpu to the cell of store i. */
#define first_(cpu, i, j) (i <= j || sb[cpu].cell[j] != sb[cpu].cell[i])

#ifdef WEAK
#define may_drain_(cpu, i) (sb[cpu].n > i && sb[cpu].group[i] == sb[cpu].group[0] && \
	first_(cpu, i, 0) && first_(cpu, i, 1) && first_(cpu, i, 2))
#else
#define may_drain_(cpu, i) (i == 0 && sb[cpu].n > 0)
#endif

proctype memory_of(byte cpu) {
end:	do
	:: d_step { may_drain_(cpu, 0) -> drain_(cpu, 0) }
	:: d_step { may_drain_(cpu, 1) -> drain_(cpu, 1) }
	:: d_step { may_drain_(cpu, 2) -> drain_(cpu, 2) }
	:: d_step { may_drain_(cpu, 3) -> drain_(cpu, 3) }
	od
}
