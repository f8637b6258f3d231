/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor is used again for another key, and once more for the first, while a reader that
 * found it in its first life pins it.
 *
 * Models desc_reserve, desc_commit, desc_free, evict_mark and evict_settle; entry_matches
 * (index_probe) and pin_one (lookup_pin). Asserted: a validated pin is on the key that was looked
 * for, and on its bytes.
 *
 * BROKEN_GEN_KEPT	gen is not raised when the descriptor is reserved
 * BROKEN_COMMIT_FIRST	COMMITTED is stored without release: it overtakes the bytes (with WEAK)
 * BROKEN_WORD_ONCE	the word is not loaded again behind the fence
 */
#define CPUS 2
#define READER 0
#define DAEMON 1

#define WORD 0
#define KEY_LOW 1
#define KEY_HIGH 2
#define HAZARD 3
#define BYTES 4
#define CELLS 5

/* word = gen * 8 + state */
#define RESERVED 1
#define COMMITTED 2
#define EVICTING 3
#define FREE 4
#define state_of(w) ((w) % 8)
#define gen_of(w) ((w) / 8)

#define MINE 1
#define OTHERS 2

#include "memory.inc"

byte gen;

proctype reader() {
	byte w, again, key, b;

	load(READER, WORD, w);				/* entry_matches */
	if
	:: state_of(w) != COMMITTED -> goto out
	:: else
	fi;
	load(READER, KEY_LOW, key);
	if
	:: key != MINE -> goto out
	:: else
	fi;
	load(READER, KEY_HIGH, key);
	if
	:: key != MINE -> goto out
	:: else
	fi;
	store_release(READER, HAZARD, 1);		/* pin_one */
	fence_seq_cst(READER);
#ifdef BROKEN_WORD_ONCE
	again = w;
#else
	load(READER, WORD, again);
#endif
	if
	:: gen_of(again) == gen_of(w) && state_of(again) == COMMITTED ->
		load(READER, KEY_LOW, key);
		assert(key == MINE);
		load(READER, KEY_HIGH, key);
		assert(key == MINE);
		load(READER, BYTES, b);
		assert(b == MINE);
		reached()
	:: else
	fi;
	store_release(READER, HAZARD, 0);
out:
	skip
}

/* desc_reserve, the writer's bytes, desc_commit */
inline publish(key) {
#ifndef BROKEN_GEN_KEPT
	gen++;
#endif
	store_release(DAEMON, WORD, gen * 8 + RESERVED);
	fence_release(DAEMON);
	store_relaxed(DAEMON, KEY_LOW, key);
	store_relaxed(DAEMON, KEY_HIGH, key);
	store_relaxed(DAEMON, BYTES, key);
#ifdef BROKEN_COMMIT_FIRST
	store_relaxed(DAEMON, WORD, gen * 8 + COMMITTED)
#else
	store_release(DAEMON, WORD, gen * 8 + COMMITTED)
#endif
}

/* evict_mark, pinset_scan, evict_settle */
inline evict(freed) {
	store_release(DAEMON, WORD, gen * 8 + EVICTING);
	fence_seq_cst(DAEMON);
	load(DAEMON, HAZARD, freed);
	freed = !freed;
	if
	:: freed -> store_release(DAEMON, WORD, gen * 8 + FREE)
	:: else -> store_release(DAEMON, WORD, gen * 8 + COMMITTED)
	fi
}

proctype daemon() {
	byte freed;

	publish(MINE);
	evict(freed);
	if
	:: freed ->
		publish(OTHERS);
		evict(freed);
		if
		:: freed -> publish(MINE)
		:: else
		fi
	:: else
	fi
}

init {
	atomic {
		mem[WORD] = FREE;
		run memory_of(READER);
		run memory_of(DAEMON);
		run reader();
		run daemon()
	}
}
