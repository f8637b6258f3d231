/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer names two of its own slots in one commit, the second below the first, and goes on
 * reading what was stored. The daemon may refuse the second one: no place in the index.
 *
 * Models hold_pin, a word for each block of the message; pool_commit_named; then hold_keep: the
 * word of the deepest block that was stored stays in its place, and the others are cleared. The
 * daemon evicts at any time: evict_mark deepest first, pinset_scan word by word, evict_settle with
 * the ancestors of what is pinned. Asserted: what was stored stays the writer's while it reads.
 *
 * BROKEN_ONE_WORD	only the deepest block of the message has a word
 * BROKEN_MOVED		the word that stays is moved to another place
 */
#include "witness.inc"

#define RESERVED 1
#define COMMITTED 2
#define EVICTING 3
#define FREE 4

byte word[3]; /* blocks 1 and 2 */
bool mine[3];
byte hazard[3]; /* places; the block that each names */
bool sent, answered;

/* Everything that is COMMITTED goes, but for what is pinned and what is above it. */
inline evict() {
	if
	:: word[2] == COMMITTED -> word[2] = EVICTING
	:: else
	fi;
	word[1] = EVICTING;
	pinned[1] = false; pinned[2] = false;
	place = 0;
	do
	:: place < 3 ->
		seen = hazard[place]; /* alone: spin takes an index for local */
		pinned[seen] = true; place++
	:: else -> break
	od;
	if
	:: word[2] == EVICTING && pinned[2] -> pinned[1] = true
	:: else
	fi;
	if
	:: pinned[1] -> word[1] = COMMITTED
	:: else
	fi;
	if
	:: word[2] == EVICTING && pinned[2] -> word[2] = COMMITTED
	:: word[2] == EVICTING && !pinned[2] -> mine[2] = false; word[2] = FREE
	:: else
	fi;
	if
	:: !pinned[1] -> mine[1] = false; word[1] = FREE
	:: else
	fi
}

active proctype daemon() {
	bool pinned[3];
	byte place, seen;

	sent;
	word[1] = COMMITTED;
	if
	:: word[2] = COMMITTED
	:: skip
	fi;
	answered = true;
	evict();
	if
	:: word[1] == COMMITTED -> evict()
	:: else
	fi
}

active proctype writer() {
	word[1] = RESERVED; word[2] = RESERVED;
	mine[1] = true; mine[2] = true;
#ifndef BROKEN_ONE_WORD
	hazard[1] = 1;
#endif
	hazard[2] = 2;
	sent = true;
	answered;
	if
	:: word[2] != RESERVED ->
#ifdef BROKEN_MOVED
		hazard[0] = 2;
		hazard[2] = 0;
#endif
		hazard[1] = 0;
		assert(mine[1] && mine[2]);
		assert(mine[1] && mine[2])
	:: else ->
		hazard[2] = 0;
		assert(mine[1]);
		assert(mine[1])
	fi;
	reached()
}
