/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader pins the deepest block of a chain and reads its ancestor, while the daemon evicts both,
 * gives their slots away and publishes the chain again elsewhere. The whole path, with weak memory.
 *
 * Models lookup_scan, lookup_pin and lookup_resolve; evict_mark, pinset_scan and evict_settle,
 * index_remove, desc_reserve, desc_commit and index_publish. The chain is P <- C. Asserted: the
 * bytes that the reader takes for P's are P's, and so with C.
 *
 * BROKEN_SLOT_NOTED	the slot of P is read in the probing pass, before the pin
 * BROKEN_DESC_NOTED	the descriptor of P is the one that the probing pass found, if gen and key
 *			are still the same: not the one that C's link names
 * BROKEN_SLOT_EARLY	the slot of C is read before its pin is validated, and gen is not looked at
 * BROKEN_NO_READER_FENCE, BROKEN_NO_DAEMON_FENCE, BROKEN_NO_ANCESTORS	as in pin.pml and batch.pml
 */
#define CPUS 2
#define READER 0
#define DAEMON 1

/* Three descriptors of four cells each. */
#define WORD(d)   ((d) * 4)
#define KEY(d)    ((d) * 4 + 1)
#define PARENT(d) ((d) * 4 + 2)
#define SLOT(d)   ((d) * 4 + 3)
#define BYTES(s)  (12 + (s))
#define ENTRY(k)  (16 + (k))	/* index: descriptor + 1 of key k */
#define HAZARD    18
#define CELLS     19

#define RESERVED 1
#define COMMITTED 2
#define EVICTING 3
#define FREE 4
#define state_of(w) ((w) % 8)
#define gen_of(w) ((w) / 8)

#define P 0		/* keys, which are what the bytes of a block say */
#define C 1
#define OTHERS 2
#define NONE 9

#include "memory.inc"

byte gen[3];

/* index_probe and the state: d and its word, or the way out */
inline find(key, d, w) {
	load(READER, ENTRY(key), d);
	if
	:: d == 0 -> goto out
	:: else -> d--
	fi;
	load(READER, WORD(d), w);
	load(READER, KEY(d), x);
	if
	:: state_of(w) != COMMITTED || x != key -> goto out
	:: else
	fi
}

inline read_slot(d, s) {
	load(READER, SLOT(d), s)
}

proctype reader() {
	byte dp, wp, dc, wc, w, x, sp, sc;

	find(P, dp, wp);
#ifdef BROKEN_SLOT_NOTED
	read_slot(dp, sp);
#endif
	if
	:: goto parent_only					/* a prompt that ends with P */
	:: skip
	fi;
	find(C, dc, wc);
	store_release(READER, HAZARD, dc + 1);		/* pin_one */
#ifndef BROKEN_NO_READER_FENCE
	fence_seq_cst(READER);
#endif
#ifdef BROKEN_SLOT_EARLY
	read_slot(dc, sc);
#endif
	load(READER, WORD(dc), w);
#ifdef BROKEN_SLOT_EARLY
	if
	:: state_of(w) != COMMITTED -> goto unpin
	:: else
	fi;
#else
	if
	:: state_of(w) != COMMITTED || gen_of(w) != gen_of(wc) -> goto unpin
	:: else
	fi;
	read_slot(dc, sc);				/* lookup_resolve */
#endif
#ifdef BROKEN_DESC_NOTED
	load(READER, WORD(dp), w);
	load(READER, KEY(dp), x);
	if
	:: gen_of(w) != gen_of(wp) || x != P -> goto unpin
	:: else
	fi;
#else
	load(READER, PARENT(dc), dp);
#endif
#ifndef BROKEN_SLOT_NOTED
	read_slot(dp, sp);
#endif
	load(READER, BYTES(sp), x);
	assert(x == P);
	load(READER, BYTES(sc), x);
	assert(x == C);
	if
	:: gen_of(wc) > 0 -> reached()
	:: else
	fi;
	goto unpin;
parent_only:
	store_release(READER, HAZARD, dp + 1);
#ifndef BROKEN_NO_READER_FENCE
	fence_seq_cst(READER);
#endif
	load(READER, WORD(dp), w);
	if
	:: state_of(w) == COMMITTED && gen_of(w) == gen_of(wp) ->
		read_slot(dp, sp);
		load(READER, BYTES(sp), x);
		assert(x == P)
	:: else
	fi;
unpin:
	store_release(READER, HAZARD, 0);
out:
	skip
}

inline publish(key, d, parent, slot) {
	gen[d]++;
	store_release(DAEMON, WORD(d), gen[d] * 8 + RESERVED);
	fence_release(DAEMON);
	store_relaxed(DAEMON, KEY(d), key);
	store_relaxed(DAEMON, PARENT(d), parent);
	store_release(DAEMON, SLOT(d), slot);
	store_relaxed(DAEMON, BYTES(slot), key);
	store_release(DAEMON, WORD(d), gen[d] * 8 + COMMITTED);
	if
	:: key != OTHERS -> store_release(DAEMON, ENTRY(key), d + 1)
	:: else
	fi
}

inline set(d, state) {
	store_release(DAEMON, WORD(d), gen[d] * 8 + state)
}

inline free(key, d) {
	store_release(DAEMON, ENTRY(key), 0);
	set(d, FREE)
}

proctype daemon() {
	byte h;

	/* The chain stands in descriptors 0 and 1, slots 0 and 1. */
	set(1, EVICTING);				/* evict_mark: deepest first */
	set(0, EVICTING);
#ifndef BROKEN_NO_DAEMON_FENCE
	fence_seq_cst(DAEMON);
#endif
	load(DAEMON, HAZARD, h);			/* one snapshot */
	if						/* evict_settle */
	:: h == 2 ->
#ifdef BROKEN_NO_ANCESTORS
		set(1, COMMITTED);
		free(P, 0);
		publish(OTHERS, 2, NONE, 0)
#else
		set(0, COMMITTED);
		set(1, COMMITTED)
#endif
	:: h == 1 ->
		set(0, COMMITTED);
		free(C, 1);
		publish(C, 1, 0, 2)
	:: else ->
		free(C, 1);
		free(P, 0);
		if
		:: publish(OTHERS, 1, NONE, 0);		/* in the slot of P, the descriptor of C */
		   publish(P, 2, NONE, 2);
		   publish(C, 0, 2, 3)
		:: store_relaxed(DAEMON, BYTES(0), OTHERS);	/* a writer's that goes on */
		   publish(P, 2, NONE, 2);
		   publish(C, 1, 2, 3)
		fi
	fi
}

init {
	atomic {
		mem[WORD(0)] = COMMITTED;
		mem[KEY(0)] = P;
		mem[PARENT(0)] = NONE;
		mem[SLOT(0)] = 0;
		mem[WORD(1)] = COMMITTED;
		mem[KEY(1)] = C;
		mem[PARENT(1)] = 0;
		mem[SLOT(1)] = 1;
		mem[WORD(2)] = FREE;
		mem[BYTES(0)] = P;
		mem[BYTES(1)] = C;
		mem[ENTRY(P)] = 1;
		mem[ENTRY(C)] = 2;
		run memory_of(READER);
		run memory_of(DAEMON);
		run reader();
		run daemon()
	}
}
