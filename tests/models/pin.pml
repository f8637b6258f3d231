/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader pins a block while the daemon evicts it: the handshake at the heart of everything.
 *
 * Models pin_one (lookup_pin), lookup_unpin; evict_mark, pinset_scan, evict_settle, and the doom
 * functions, which fence and look alike. Asserted: what a reader reads between a validated pin and
 * its end are the bytes of the block that it pinned.
 *
 * BROKEN_NO_READER_FENCE	the hazard word waits in a buffer while the reader validates
 * BROKEN_NO_DAEMON_FENCE	EVICTING waits in a buffer while the daemon looks for pins
 * BROKEN_LOOK_FIRST		the daemon looks for pins, then marks
 * BROKEN_NO_VALIDATION		the reader takes its first look at the word for good
 */
#define CPUS 2
#define READER 0
#define DAEMON 1

#define WORD 0
#define HAZARD 1
#define BYTES 2
#define CELLS 3

#define COMMITTED 1
#define EVICTING 2
#define FREE 3

#define MINE 1
#define OTHERS 2

#include "memory.inc"

proctype reader() {
	byte w, b, round;

	do
	:: round < 2 ->
		round++;
		load(READER, WORD, w);		/* lookup_find */
		if
		:: w != COMMITTED -> break
		:: else
		fi;
		store_release(READER, HAZARD, 1);
#ifndef BROKEN_NO_READER_FENCE
		fence_seq_cst(READER);
#endif
#ifndef BROKEN_NO_VALIDATION
		load(READER, WORD, w);
#endif
		if
		:: w == COMMITTED ->
			load(READER, BYTES, b);
			assert(b == MINE);
			load(READER, BYTES, b);
			assert(b == MINE);
			reached()
		:: else
		fi;
		store_release(READER, HAZARD, 0)
	:: else -> break
	od
}

proctype daemon() {
	byte h, round;

	do
	:: round < 3 ->
		round++;
#ifdef BROKEN_LOOK_FIRST
		load(DAEMON, HAZARD, h);
#endif
		store_release(DAEMON, WORD, EVICTING);	/* evict_mark */
#ifndef BROKEN_NO_DAEMON_FENCE
		fence_seq_cst(DAEMON);
#endif
#ifndef BROKEN_LOOK_FIRST
		load(DAEMON, HAZARD, h);		/* pinset_scan */
#endif
		if					/* evict_settle */
		:: h != 0 -> store_release(DAEMON, WORD, COMMITTED)
		:: else ->
			store_release(DAEMON, WORD, FREE);
			/* The slot is given to a writer. */
			store_relaxed(DAEMON, BYTES, OTHERS);
			break
		fi
	:: else -> break
	od
}

init {
	atomic {
		mem[WORD] = COMMITTED;
		mem[BYTES] = MINE;
		run memory_of(READER);
		run memory_of(DAEMON);
		run reader();
		run daemon()
	}
}
