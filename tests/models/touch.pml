/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client appends touch records to a full ring while the daemon reads them.
 *
 * Models touch_push and touch_read (touch_pop), for one record of the ring that is written over.
 * The client is honest here: what a hostile one writes is only ever a hint. Asserted: a record that
 * the daemon takes is one that was appended, not half of one and half of another.
 *
 * BROKEN_NO_CLEAR	seq of the old record stays while the new one is written
 * BROKEN_NO_FENCE	the new fields are not kept behind the clearing of seq (with WEAK)
 * BROKEN_NO_RECHECK	the daemon does not look at seq again
 * BROKEN_SEQ_RELAXED	seq is stored without release (with WEAK)
 */
#define CPUS 2
#define CLIENT 0
#define DAEMON 1

#define SEQ 0
#define LOW 1
#define HIGH 2
#define CELLS 3

#include "memory.inc"

inline push(record) {
#ifndef BROKEN_NO_CLEAR
	store_relaxed(CLIENT, SEQ, 0);
#endif
#ifndef BROKEN_NO_FENCE
	fence_release(CLIENT);
#endif
	store_relaxed(CLIENT, LOW, record);
	store_relaxed(CLIENT, HIGH, record);
#ifdef BROKEN_SEQ_RELAXED
	store_relaxed(CLIENT, SEQ, record)
#else
	store_release(CLIENT, SEQ, record)
#endif
}

proctype client() {
	push(1);
	push(2);
	push(3)
}

proctype daemon() {
	byte seq, low, high, again;

	load(DAEMON, SEQ, seq);
	if
	:: seq == 0 -> goto out
	:: else
	fi;
	load(DAEMON, LOW, low);
	load(DAEMON, HIGH, high);
#ifdef BROKEN_NO_RECHECK
	again = seq;
#else
	load(DAEMON, SEQ, again);
#endif
	if
	:: again == seq ->
		assert(low == seq && high == seq);
		if
		:: seq == 2 -> reached()
		:: else
		fi
	:: else
	fi;
out:
	skip
}

init {
	atomic {
		run memory_of(CLIENT);
		run client();
		run daemon()
	}
}
