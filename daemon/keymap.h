/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key -> descriptor of RESERVED blocks, which no index lists. What is COMMITTED is found through
 * the index: the daemon alone writes it, so the daemon can believe it. block_find asks both. A
 * DOOMED block and one in QUARANTINE are in neither, so their key can be reserved again at once.
 *
 * Open addressing, linear probing, at most three quarters full. It grows with the reservations and
 * shrinks when they are over. An entry is 8 bytes: half of it a hash, so that a probe touches the
 * descriptor's line only when it is nearly surely the right one, and an entry can be moved without
 * looking at its key.
 */
#ifndef KVP_DAEMON_KEYMAP_H
#define KVP_DAEMON_KEYMAP_H

#include "daemon/keyhash.h"
#include "shm/control.h"

struct keymap {
	/* hash:32 | second:1 | descriptor + 1:31, from high to low; 0 is empty */
	uint64_t *entry;
	uint64_t mask;
	uint64_t used;
	struct keyhash hash;
	const struct control *control;
};

#define KEYMAP_SECOND UINT64_C(0x80000000)

/* What an entry that is not empty says. */
static inline uint32_t keymap_desc(uint64_t entry, int *ret_second)
{
	*ret_second = (entry & KEYMAP_SECOND) != 0;
	return (uint32_t)(entry & ~KEYMAP_SECOND) - 1;
}

/* Returns 0 or -ENOMEM. */
int keymap_init(struct keymap *m, const struct control *control, const struct keyhash *hash);
void keymap_fini(struct keymap *m);

/* The same for equal keys only, as far as a client can tell. */
uint32_t keymap_hash(const struct keymap *m, const struct block_key *key);

/* The descriptor under key, or DESC_NONE. */
uint32_t keymap_find(const struct keymap *m, const struct block_key *key);

/* Room for one more. Returns 0, or -ENOMEM with the map as it was. */
int keymap_reserve(struct keymap *m);

/*
 * key is that of d, and not in the map; there is room. second: the index place that it was promised
 * is in the second of its two buckets.
 */
void keymap_add(struct keymap *m, const struct block_key *key, uint32_t d, int second);

/* d is in the map under key. Returns what keymap_add got. */
int keymap_remove(struct keymap *m, const struct block_key *key, uint32_t d);

#endif
