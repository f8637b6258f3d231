/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon is killed while it reserves a descriptor, and its successor takes over.
 *
 * Models desc_reserve. The descriptor has lived before, in a slot that another block has by now.
 * The successor learns which slots are in use from the descriptors, and gives the slot of a
 * RESERVED one back when its quarantine ends. Asserted: it never gives away a slot that another
 * block has.
 *
 * BROKEN_OLD_SLOT	the slot of the last life stays in the field until the new one is stored
 * BROKEN_SLOT_EARLY	the new slot is stored before the key: a reservation with a slot need not be
 *			whole
 */
#include "witness.inc"

#define NONE 9
#define OLD 0		/* the slot of the last life: another block has it */
#define NEW 1

#define FREE 0
#define RESERVED 1
#define QUARANTINE 2

byte word = FREE, slot = OLD, key = 0;
bool killed, used[2];

#define maybe_die if :: killed = true; goto dead :: skip fi

active proctype daemon() {
	used[OLD] = true;
#ifndef BROKEN_OLD_SLOT
	slot = NONE;
	maybe_die;
#endif
	word = RESERVED;
	maybe_die;
#ifdef BROKEN_SLOT_EARLY
	slot = NEW;
	maybe_die;
#endif
	key = 1;
	maybe_die;
	slot = NEW;
	maybe_die;
	killed = true;
dead:
	skip
}

active proctype successor() {
	killed;
	if
	:: word == RESERVED && slot == NONE -> word = FREE	/* half-made */
	:: word == RESERVED && slot != NONE ->
		assert(key == 1);
		word = QUARANTINE;
		reached();
		/* its writer is surely gone: the slot is given to somebody else */
		assert(!used[slot]);
		word = FREE
	:: else
	fi
}
