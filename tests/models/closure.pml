/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving, committing, evicting and dooming a child while its parent may be evicted: whatever is
 * there, reserved or pinned, has its parent.
 *
 * Models what evict_mark asks of its batch (shm/evict.h: closed below), desc_reserve and
 * desc_commit under a parent, and doom_mark and doom_settle of the child alone. The chain is P <-
 * C; each step of the daemon is one event, since one thread makes them. Asserted: a COMMITTED child
 * has a COMMITTED parent, and who has pinned C can read P.
 *
 * BROKEN_RESERVED_CHILD	a RESERVED child does not hold its parent
 * BROKEN_DOOMED_CHILD		a DOOMED child does not hold its parent, as nobody finds it any more
 */
#include "witness.inc"

#define FREE 0
#define RESERVED 1
#define COMMITTED 2
#define DOOMED 3

byte P = COMMITTED, C = FREE;
bool hazard_on_c;

#ifdef BROKEN_RESERVED_CHILD
#define held_by_reservation false
#else
#define held_by_reservation (C == RESERVED)
#endif
#ifdef BROKEN_DOOMED_CHILD
#define held_by_doomed false
#else
#define held_by_doomed (C == DOOMED)
#endif

active proctype daemon() {
	byte step;

	do
	:: step < 8 ->
		step++;
		if
		:: atomic { C == FREE && P == COMMITTED -> C = RESERVED }
		:: atomic { C == RESERVED -> C = COMMITTED }
		:: atomic { C == RESERVED -> C = FREE }			/* abort */
		:: atomic { C == COMMITTED && !hazard_on_c -> C = FREE }	/* evict the leaf */
		:: atomic { C == COMMITTED -> C = DOOMED }
		:: atomic { C == DOOMED && !hazard_on_c -> C = FREE }
		:: atomic { P == COMMITTED && C != COMMITTED && !held_by_reservation &&
			    !held_by_doomed -> P = FREE }		/* evict P, a leaf now */
		:: atomic { P == FREE && C == FREE -> P = COMMITTED }
		:: skip
		fi;
		assert(C != COMMITTED || P == COMMITTED)
	:: else -> break
	od
}

active proctype reader() {
	do
	:: C == COMMITTED ->
		hazard_on_c = true;
		if
		:: C == COMMITTED ->
			assert(P != FREE);
			assert(P != FREE);
			if
			:: C == DOOMED -> reached()
			:: else
			fi
		:: else
		fi;
		hazard_on_c = false
	:: true -> break
	od
}
