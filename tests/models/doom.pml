/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subtree is flushed under readers.
 *
 * Models doom_mark and doom_settle, with lookup_pin on the other side. The chain is P <- C, all of
 * it doomed, or C doomed first and P later. Asserted: who has pinned C can read P and C until it
 * lets go.
 *
 * BROKEN_BLOCKWISE	block by block from the top: doomed, looked at, freed, and then the next one
 * BROKEN_EARLY_LOOK	the pins are looked at before the whole subtree is marked
 * BROKEN_SEPARATE	C was doomed by an earlier flush and is left out of the batch of P
 */
#include "witness.inc"

#define COMMITTED 1
#define DOOMED 2
#define FREE 3

byte P = COMMITTED, C = COMMITTED;
bool hazard_on_c;

/* doom_settle until nothing stays: pins are on C, and hold what is above it in the same batch */
inline settle_both() {
	do
	:: C == DOOMED && !hazard_on_c -> C = FREE
	:: C == FREE && P == DOOMED -> P = FREE
	:: C == FREE && P == FREE -> break
	od
}

active proctype daemon() {
	bool nobody;

#ifdef BROKEN_BLOCKWISE
	P = DOOMED;
	P = FREE;			/* nobody pins P itself */
	C = DOOMED;
	!hazard_on_c;
	C = FREE
#else
#ifdef BROKEN_EARLY_LOOK
	P = DOOMED;
	nobody = !hazard_on_c;
	C = DOOMED;
	if
	:: nobody -> C = FREE; P = FREE
	:: else -> settle_both()
	fi
#else
	if
	:: C = DOOMED; P = DOOMED		/* one flush */
	:: C = DOOMED;				/* two of them */
	   if
	   :: !hazard_on_c -> C = FREE
	   :: else
	   fi;
	   P = DOOMED;
#ifdef BROKEN_SEPARATE
	   P = FREE;			/* a batch of P alone: nobody pins P itself */
#endif
	fi;
	settle_both()
#endif
#endif
}

active proctype reader() {
	if
	:: C != COMMITTED -> goto out
	:: else
	fi;
	hazard_on_c = true;
	if
	:: C == COMMITTED ->
		assert(P != FREE && C != FREE);
		assert(P != FREE && C != FREE);
		if
		:: P == DOOMED -> reached()
		:: else
		fi
	:: else
	fi;
	hazard_on_c = false;
out:
	skip
}
