/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of a key for the daemon's own tables. All of the key counts, since its words are the
 * client's choice; and with a salt that nobody knows, nobody can make keys that collide.
 */
#ifndef KVP_DAEMON_KEYHASH_H
#define KVP_DAEMON_KEYHASH_H

#include "base/hash.h"
#include "shm/layout.h"

struct keyhash {
	uint64_t salt[KEY_WORDS];
};

static inline uint64_t keyhash(const struct keyhash *k, const struct block_key *key)
{
	const uint64_t *s = k->salt, *w = key->w;

	return mix64(fold64(w[0] + s[0], w[1] + s[1]) ^ fold64(w[2] + s[2], w[3] + s[3]));
}

#endif
