/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two writers reserve the same run of keys, and the first one dies.
 *
 * Models the run rule of a reserve: after the first BUSY (or FULL) of a run every deeper key gets
 * that answer too. shm/ has only the primitives (desc_reserve, desc_commit); the daemon answers.
 * The run is k1, k2, below a parent that is there; S1 holds k1 RESERVED. Asserted: k2 is COMMITTED
 * only above k1.
 *
 * BROKEN_GRANTED_BEHIND_BUSY	each key of a run is answered for itself
 */
#include "witness.inc"

#define FREE 0
#define RESERVED 1
#define COMMITTED 2
#define QUARANTINE 3

byte k1 = FREE, k2 = FREE;

active proctype s1() {
	atomic { k1 == FREE -> k1 = RESERVED };
	if
	:: k1 = COMMITTED
	:: k1 = QUARANTINE		/* it died */
	fi
}

active proctype s2() {
	if
	:: atomic { k1 == COMMITTED && k2 == FREE -> k2 = RESERVED }
#ifdef BROKEN_GRANTED_BEHIND_BUSY
	:: atomic { k1 == RESERVED && k2 == FREE -> k2 = RESERVED }
#endif
	:: k1 == QUARANTINE -> goto out
	fi;
	k2 = COMMITTED;
	assert(k1 == COMMITTED);
	reached();
out:
	skip
}
