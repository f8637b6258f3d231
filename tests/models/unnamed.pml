/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer decodes into its own slot, commits it under its key, and goes on reading it.
 *
 * Models the hazard word on a RESERVED descriptor: hazard_make and a release store before the
 * commit is sent; desc_commit, then evict_mark, pinset_scan and evict_settle at any time after.
 * Asserted: the bytes stay the writer's while it reads.
 *
 * BROKEN_LATE_PIN	the writer pins its block when the answer to the commit is there
 */
#include "witness.inc"

#define RESERVED 1
#define COMMITTED 2
#define EVICTING 3
#define FREE 4

#define MINE 1
#define OTHERS 2

byte word = RESERVED, bytes = MINE;
bool hazard, sent, answered;

active proctype daemon() {
	sent;
	word = COMMITTED;
	answered = true;
	word = EVICTING;
	if
	:: hazard -> word = COMMITTED
	:: else -> word = FREE; bytes = OTHERS
	fi
}

active proctype writer() {
#ifndef BROKEN_LATE_PIN
	hazard = true;
#endif
	sent = true;
	answered;
#ifdef BROKEN_LATE_PIN
	hazard = true;
#endif
	assert(bytes == MINE);
	assert(bytes == MINE);
	reached()
}
