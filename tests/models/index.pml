/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key is listed all the time, but its entry moves between its two places while a reader looks.
 *
 * Models index_publish, bucket_displace (index_claim), index_probe and lookup_find. Each place is a
 * bucket; the reader looks into bucket 0, then 1. Asserted: the key is found, and what is found is
 * COMMITTED.
 *
 * BROKEN_NO_COUNTER	the counter is not raised
 * BROKEN_COUNTER_LATE	the counter is raised after the old place was cleared
 * BROKEN_CLEAR_FIRST	the old place is cleared before the entry is copied
 * BROKEN_ONE_LOOK	a reader that misses does not look at the counter
 * BROKEN_LIST_FIRST	the entry is stored before the descriptor is COMMITTED
 */
#define CPUS 2
#define READER 0
#define DAEMON 1

#define MOVED 0
#define BUCKET 1	/* and BUCKET + 1 */
#define WORD 3
#define CELLS 4

#define RESERVED 0
#define COMMITTED 1

#define MOVES 2
#define TRIES 3		/* MISS_TRIES in shm/lookup.c: one more than the moves here */

#include "memory.inc"

bool listed;

inline move(from, to) {
#ifdef BROKEN_CLEAR_FIRST
	store_release(DAEMON, BUCKET + from, 0);
#endif
	store_release(DAEMON, BUCKET + to, 1);
#if !defined(BROKEN_NO_COUNTER) && !defined(BROKEN_COUNTER_LATE)
	n++;
	store_release(DAEMON, MOVED, n);
#endif
#ifndef BROKEN_CLEAR_FIRST
	store_release(DAEMON, BUCKET + from, 0);
#endif
#ifdef BROKEN_COUNTER_LATE
	n++;
	store_release(DAEMON, MOVED, n)
#endif
}

proctype daemon() {
	byte n, done;

#ifdef BROKEN_LIST_FIRST
	store_release(DAEMON, BUCKET + 1, 1);
	store_release(DAEMON, WORD, COMMITTED);
#else
	store_release(DAEMON, WORD, COMMITTED);		/* desc_commit */
	store_release(DAEMON, BUCKET + 1, 1);		/* index_publish */
#endif
	fence_seq_cst(DAEMON);				/* the answer to the commit */
	listed = true;
	do
	:: done < MOVES ->
		if
		:: done % 2 == 0 -> move(1, 0)
		:: else -> move(0, 1)
		fi;
		done++
	:: else -> break
	od
}

proctype reader() {
	byte e, w, moved, now, try;
	bool sure;

	sure = listed;		/* or the reader may as well be too early */
	load(READER, MOVED, moved);
	do
	:: try < TRIES ->
		try++;
		load(READER, BUCKET, e);
		if
		:: e == 0 -> load(READER, BUCKET + 1, e)
		:: else
		fi;
		if
		:: e != 0 ->
			load(READER, WORD, w);
			assert(w == COMMITTED);
			break
		:: else
		fi;
#ifdef BROKEN_ONE_LOOK
		break;
#endif
		load(READER, MOVED, now);
		if
		:: now == moved -> break
		:: else -> moved = now
		fi
	:: else -> break
	od;
	assert(e != 0 || !sure);
	if
	:: e != 0 && try > 1 -> reached()
	:: else
	fi
}

init {
	atomic {
		run memory_of(READER);
		run memory_of(DAEMON);
		run reader();
		run daemon()
	}
}
