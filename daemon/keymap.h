/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key -> descriptor, the daemon's own map: the authority that the shared index is repaired from.
 *
 * It names the block that lives under a key: RESERVED, COMMITTED or EVICTING. A DOOMED block and
 * one in QUARANTINE are in it no more, so their key can be reserved again at once.
 *
 * Open addressing, linear probing, at most three quarters full. An entry is 8 bytes: half of it a
 * hash, so that a probe touches the descriptor's line only when it is nearly surely the right one,
 * and an entry can be moved without looking at its key.
 */
#ifndef KVP_DAEMON_KEYMAP_H
#define KVP_DAEMON_KEYMAP_H

#include "shm/control.h"

struct keymap {
	uint64_t *entry; /* hash:32 | descriptor + 1:32, from high to low; 0 is empty */
	uint64_t mask;
	uint64_t salt; /* known to nobody: a client can't make keys that collide */
	const struct control *control;
};

/* Room for max_blocks entries (at most 2^30). Returns 0 or -ENOMEM. */
int keymap_init(struct keymap *m, uint32_t max_blocks, const struct control *control,
		uint64_t salt);
void keymap_fini(struct keymap *m);

/* The same for equal keys only, as far as a client can tell. */
uint32_t keymap_hash(const struct keymap *m, const struct block_key *key);

/* The descriptor under key, or DESC_NONE. */
uint32_t keymap_find(const struct keymap *m, const struct block_key *key);

/* Loads what a find of key will read first. */
void keymap_prefetch(const struct keymap *m, const struct block_key *key);

/* The key of d, which is not in the map. */
void keymap_add(struct keymap *m, uint32_t d);

/* d is in the map under the key that its descriptor still has. */
void keymap_remove(struct keymap *m, uint32_t d);

#endif
