/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon restarts under a living writer, which asks for its reservation back.
 *
 * Models the rule for QUARANTINE -> RESERVED at a RESUME: only when the parent is COMMITTED and
 * nobody else holds the key by then. The chain is P <- C; c1 is the writer's reservation of C, c2
 * another one for the same key. The daemon is one thread: each step is one event. Asserted: C is
 * COMMITTED only above P, and only once.
 *
 * BROKEN_BLIND		the reservation is given back as it was
 */
#include "witness.inc"

#define FREE 0
#define RESERVED 1
#define COMMITTED 2
#define QUARANTINE 3

byte P = COMMITTED, c1 = RESERVED, c2 = FREE;

#define held(c) (c == RESERVED || c == COMMITTED)
#ifdef BROKEN_BLIND
#define may_resume true
#else
#define may_resume (P == COMMITTED && !held(c2))
#endif

active proctype daemon() {
	byte step;

	c1 = QUARANTINE;	/* the restart */
	do
	:: step < 8 ->
		step++;
		if
		:: atomic { P == COMMITTED && c2 == FREE && !held(c1) -> c2 = RESERVED }
		:: atomic { c2 == RESERVED -> c2 = COMMITTED }
		:: atomic { c2 == COMMITTED -> c2 = FREE }
		:: atomic { P == COMMITTED && !held(c1) && c2 == FREE -> P = FREE }
		:: atomic { c1 == QUARANTINE && may_resume -> c1 = RESERVED }
		:: atomic { c1 == RESERVED -> c1 = COMMITTED; reached() }
		:: skip
		fi;
		assert(!(held(c1) && P != COMMITTED));
		assert(!(c1 == COMMITTED && c2 == COMMITTED))
	:: else -> break
	od
}
