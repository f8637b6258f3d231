/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch of a parent and its child, a daemon that may be killed between any two stores, and a
 * successor that finishes what it finds EVICTING by the same code.
 *
 * Models evict_mark and evict_settle. The chain is P <- C; the fences are pin.pml's business.
 * Asserted: who has pinned C can read P; and after the successor C is not there without P, so that
 * a later pin on C holds P too.
 *
 * BROKEN_NO_ANCESTORS		what is pinned is restored, its ancestor in the batch is freed
 * BROKEN_CHILD_FIRST		restored deepest first
 * BROKEN_PARENT_FREED_FIRST	freed parents first
 * BROKEN_PARENT_MARKED_FIRST	marked parents first
 * BROKEN_TWO_SNAPSHOTS		each block is decided by a look of its own
 */
#include "witness.inc"

#define COMMITTED 1
#define EVICTING 2
#define FREE 3

byte P = COMMITTED, C = COMMITTED;
bool hazard_on_c;
bool killed, taken_over;

#define maybe_die(who)					\
	if						\
	:: who == 0 -> killed = true; goto dead		\
	:: skip						\
	fi

inline restore(block, keep, who) {
	if
	:: keep -> block = COMMITTED; maybe_die(who)
	:: else
	fi
}

inline free(block, keep, who) {
	if
	:: block == EVICTING && !keep -> block = FREE; maybe_die(who)
	:: else
	fi
}

/* The batch is what is EVICTING. A pin on C is one on P too, where C is in the batch. */
inline settle(who) {
	d_step {
		keep_c = C == EVICTING && hazard_on_c;
		keep_p = P == EVICTING && keep_c
	}
#ifdef BROKEN_TWO_SNAPSHOTS
	keep_p = P == EVICTING && hazard_on_c;
#endif
#ifdef BROKEN_NO_ANCESTORS
	keep_p = false;
#endif
#ifdef BROKEN_CHILD_FIRST
	restore(C, keep_c, who);
	restore(P, keep_p, who);
#else
	restore(P, keep_p, who);
	restore(C, keep_c, who);
#endif
#ifdef BROKEN_PARENT_FREED_FIRST
	free(P, keep_p, who);
	free(C, keep_c, who)
#else
	free(C, keep_c, who);
	free(P, keep_p, who)
#endif
}

active proctype daemon() {
	bool keep_c, keep_p;

#ifdef BROKEN_PARENT_MARKED_FIRST
	P = EVICTING;
	maybe_die(0);
	C = EVICTING;
#else
	C = EVICTING;
	maybe_die(0);
	P = EVICTING;
#endif
	maybe_die(0);
	settle(0);
	killed = true;
dead:
	skip
}

active proctype successor() {
	bool keep_c, keep_p;

	killed;
	settle(1);
	taken_over = true;
	assert(!(C == COMMITTED && P != COMMITTED));
dead:
	skip
}

active proctype reader() {
	byte round;

	do
	:: round < 2 ->
		round++;
		if
		:: C != COMMITTED -> break
		:: else
		fi;
		hazard_on_c = true;
		if
		:: C == COMMITTED ->
			assert(P != FREE);
			assert(P != FREE);
			if
			:: taken_over -> reached()
			:: else
			fi
		:: else
		fi;
		hazard_on_c = false
	:: else -> break
	od
}
