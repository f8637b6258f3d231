/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's changes to a descriptor. Order is everything here: see the comment at struct desc.
 */
#ifndef KVP_SHM_DESC_H
#define KVP_SHM_DESC_H

#include "shm/control.h"

struct desc_identity {
	struct block_key key;
	uint32_t parent; /* DESC_NONE for the first block of a chain */
	uint32_t ns;
	uint32_t depth;
	uint64_t writer;
};

/* FREE -> RESERVED with a new gen, which is returned. slot is where its bytes will lie in tier. */
uint64_t desc_reserve(struct control *c, uint32_t d, const struct desc_identity *id,
		      enum tier tier, uint32_t slot);

/*
 * Gives a RESERVED descriptor that was reserved for nothing yet its key and its place in a chain:
 * the rest of id is what it was reserved with. desc_commit follows.
 */
void desc_name(struct control *c, uint32_t d, const struct desc_identity *id);

/* RESERVED -> COMMITTED: the bytes are there, and crc is their CRC32C. The caller lists it next. */
void desc_commit(struct control *c, uint32_t d, enum tier tier, uint32_t crc);

/*
 * Any state that nobody reads any more -> FREE. The index does not list d by now. The tier bits go
 * with the state: a FREE descriptor has bytes nowhere.
 */
void desc_free(struct control *c, uint32_t d);

/* Any other change of state; tiers and gen stay (release store). */
void desc_set_state(struct control *c, uint32_t d, enum desc_state state);

/* The value of desc_aux.check for d as it stands. */
uint32_t desc_check(const struct control *c, uint32_t d);

#endif
