/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader that holds a lease on P extends it to C, while the daemon evicts, flushes, and publishes
 * both again in other descriptors. The daemon looks at one hazard word after the other.
 *
 * Models the extension of a lease: lookup_pin by a second hazard word, lookup_resolve with first >
 * 0, lookup_unpin of the first word; evict_mark, pinset_scan and evict_settle, doom_mark and
 * doom_settle. Descriptors: 0 is P, 1 is C; 2 and 3 are P and C of the second publication.
 * Asserted: what the lease has in use is there.
 *
 * BROKEN_OVERWRITE	the hazard word of the lease is overwritten with the deeper block's
 * BROKEN_CLEAR_EARLY	the first word is cleared before the second one is validated
 * BROKEN_OTHER_PREFIX	that C's link names another copy of P than the lease's does not stop it
 * BROKEN_NO_READER_FENCE	as in pin.pml
 */
#define CPUS 2
#define READER 0
#define DAEMON 1

#define WORD(d)   (d)
#define HAZARD(i) (4 + (i))	/* of the lease: descriptor + 1 */
#define ENTRY     6		/* index: where C is found, descriptor + 1 */
#define CELLS     7

#define FREE 0
#define COMMITTED 1
#define EVICTING 2
#define DOOMED 3

#include "memory.inc"

inline look(first, second) {
	load(DAEMON, HAZARD(first), h);
	load(DAEMON, HAZARD(second), g);
	pinned_c = h == 2 || g == 2;
	pinned_p = h == 1 || g == 1 || pinned_c
}

/* The words of a session stand in either order. */
inline snapshot() {
	if
	:: look(0, 1)
	:: look(1, 0)
	fi
}

inline set(d, state) {
	store_release(DAEMON, WORD(d), state)
}

proctype evicting_daemon() {
	byte h, g;
	bool pinned_p, pinned_c;

	set(1, EVICTING);
	set(0, EVICTING);
	fence_seq_cst(DAEMON);
	snapshot();
	if
	:: pinned_p -> set(0, COMMITTED)
	:: else
	fi;
	if
	:: pinned_c -> set(1, COMMITTED)
	:: else -> store_release(DAEMON, ENTRY, 0); set(1, FREE)
	fi;
	if
	:: !pinned_p -> set(0, FREE)
	:: else
	fi
}

proctype flushing_daemon() {
	byte h, g, round;
	bool pinned_p, pinned_c;

	set(1, DOOMED);
	set(0, DOOMED);
	store_release(DAEMON, ENTRY, 0);
	fence_seq_cst(DAEMON);
	snapshot();
	/* published again while the old copy waits for its readers */
	set(2, COMMITTED);
	set(3, COMMITTED);
	store_release(DAEMON, ENTRY, 4);
	do
	:: round < 2 ->
		round++;
		if
		:: !pinned_c -> set(1, FREE)
		:: else
		fi;
		if
		:: !pinned_p -> set(0, FREE); break
		:: else -> snapshot()
		fi
	:: else -> break
	od
}

/* d is there, whatever else it is */
inline use(d) {
	load(READER, WORD(d), w);
	assert(w != FREE)
}

proctype reader() {
	byte c, w;

	load(READER, ENTRY, c);
	if
	:: c == 0 -> goto shallow
	:: else -> c--
	fi;
	load(READER, WORD(c), w);
	if
	:: w != COMMITTED -> goto shallow
	:: else
	fi;
#ifdef BROKEN_OVERWRITE
	store_release(READER, HAZARD(0), c + 1);
	fence_seq_cst(READER);
	load(READER, WORD(c), w);
	if
	:: w != COMMITTED -> store_release(READER, HAZARD(0), 1); goto shallow
	:: else -> goto deep
	fi;
#else
	store_release(READER, HAZARD(1), c + 1);
#ifdef BROKEN_CLEAR_EARLY
	store_release(READER, HAZARD(0), 0);
#endif
#ifndef BROKEN_NO_READER_FENCE
	fence_seq_cst(READER);
#endif
	load(READER, WORD(c), w);
	if
	:: w != COMMITTED -> store_release(READER, HAZARD(1), 0); goto shallow
	:: else
	fi;
#ifndef BROKEN_OTHER_PREFIX
	if
	:: c == 3 -> reached(); store_release(READER, HAZARD(1), 0); goto shallow
	:: else				/* LOOKUP_OTHER_PREFIX */
	fi;
#endif
	store_release(READER, HAZARD(0), 0);
	goto deep;
#endif
deep:
	use(0);
	use(c);
	use(0);
	goto out;
shallow:
	use(0);
	use(0);
out:
	skip
}

init {
	atomic {
		mem[WORD(0)] = COMMITTED;
		mem[WORD(1)] = COMMITTED;
		mem[HAZARD(0)] = 1;	/* the lease was given before all this */
		mem[ENTRY] = 2;
		run memory_of(READER);
		run memory_of(DAEMON);
		run reader();
		if
		:: run evicting_daemon()
		:: run flushing_daemon()
		fi
	}
}
