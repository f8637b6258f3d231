/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One copy of a block that stays COMMITTED is dropped from a tier and made again elsewhere in it;
 * the daemon may be killed in between.
 *
 * Models the rules that shm/layout.h sets down for the tier bits and slots of struct desc, on which
 * lookup_pin and lookup_resolve rely already (the slot is read behind the validation). The word is
 * the same before and after: gen changes on reuse only. Asserted: a reader that pinned the block in
 * the tier reads its bytes.
 *
 * BROKEN_SLOT_NOTED	the reader notes the slot when it finds the block
 * BROKEN_SLOT_UNORDERED	the slot is read between the fence and the second look at the word
 * BROKEN_CLEAR_IS_FREE	a successor takes a slot whose bit is clear for free
 */
#include "witness.inc"

#define NONE 9
#define MINE 1
#define OTHERS 2

bool present = true;	/* the tier bit */
byte slot = 0, bytes[2];
bool hazard, killed, ready;

#define maybe_die			\
	if				\
	:: killed = true; goto dead	\
	:: skip				\
	fi

inline drop(pinned) {
	pinned = hazard;		/* one snapshot */
	if
	:: pinned -> present = true
	:: else -> slot = NONE; bytes[0] = OTHERS
	fi
}

active proctype daemon() {
	bool pinned;

	bytes[0] = MINE;
	ready = true;
	present = false;
	maybe_die;
	drop(pinned);
	if
	:: !pinned -> bytes[1] = MINE; slot = 1; present = true
	:: else
	fi;
	goto out;
dead:
	/* the successor */
#ifdef BROKEN_CLEAR_IS_FREE
	bytes[0] = OTHERS;
#else
	if
	:: !present && slot != NONE -> drop(pinned)	/* an eviction in flight */
	:: else
	fi;
#endif
out:
	skip
}

active proctype reader() {
	byte s;

	ready;
	if
	:: !present -> goto out
	:: else
	fi;
#ifdef BROKEN_SLOT_NOTED
	s = slot;
#endif
	hazard = true;
#ifdef BROKEN_SLOT_UNORDERED
	s = slot;
#endif
	if
	:: present ->
#if !defined(BROKEN_SLOT_NOTED) && !defined(BROKEN_SLOT_UNORDERED)
		s = slot;
#endif
		assert(s != NONE);
		assert(bytes[s] == MINE);
		assert(bytes[s] == MINE);
		if
		:: s == 1 -> reached()
		:: else
		fi
	:: else
	fi;
	hazard = false;
out:
	skip
}
