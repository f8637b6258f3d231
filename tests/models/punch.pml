/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extent is taken from one namespace, punched and handed to another, while a writer of the first
 * one still copies into a slot of it.
 *
 * Models the daemon's rule for struct granule (shm/layout.h), whose fields it writes: an extent is
 * punched only when none of its slots is RESERVED or in QUARANTINE. Asserted: who reads a block of
 * the new namespace reads its bytes.
 *
 * BROKEN_UNDER_WRITER	voiding the reservation is taken for the end of the writer
 */
#include "witness.inc"

#define NOBODYS 0
#define OLD 1
#define NEW 2

byte bytes = NOBODYS;
bool voided, writer_done, given, committed;

active proctype old_writer() {
	bytes = OLD;
	bytes = OLD;
	writer_done = true
}

active proctype daemon() {
	voided = true;		/* its commit will be STALE; its slot goes to QUARANTINE */
#ifndef BROKEN_UNDER_WRITER
	writer_done;		/* it said so, or its process is gone and the grace is over */
#endif
	bytes = NOBODYS;	/* punched */
	given = true
}

active proctype new_writer() {
	given;
	bytes = NEW;
	committed = true
}

active proctype reader() {
	committed;
	assert(bytes == NEW);
	assert(bytes == NEW);
	reached()
}
