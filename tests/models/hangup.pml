/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is dropped while a thread of its client reads a block that it pinned.
 *
 * Models the end of a session: its hazard words count in every snapshot (pinset_scan) until nobody
 * maps its region writable any more. Asserted: the bytes stay while the thread reads.
 *
 * BROKEN_AT_ONCE	hanging up takes the pins along
 */
#include "witness.inc"

#define MINE 1
#define OTHERS 2

byte bytes = MINE;
bool hazard = true, mapped = true;

active proctype client() {
	assert(bytes == MINE);
	assert(bytes == MINE);
	hazard = false;		/* released by its thread; or the process ends with it in place: */
	mapped = false		/* then the kernel unmaps the region */
}

active proctype daemon() {
	bool pinned;

	do
	:: atomic {
#ifdef BROKEN_AT_ONCE
		pinned = false;
#else
		pinned = hazard && mapped;
#endif
		if
		:: pinned -> skip
		:: else -> bytes = OTHERS; reached(); break
		fi }
	od
}
