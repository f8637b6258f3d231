/* SPDX-License-Identifier: Apache-2.0 */
/* The control region as a set of pointers, and how it is laid out. */
#ifndef KVP_SHM_CONTROL_H
#define KVP_SHM_CONTROL_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "shm/layout.h"

/* What the daemon chooses; everything else about the region follows. */
struct control_config {
	uint64_t pool_bytes;      /* size of the memory, whole granules */
	uint32_t max_blocks;      /* at least 1, at most CONTROL_BLOCKS_MAX */
	uint32_t max_namespaces;  /* at least 1, at most CONTROL_NAMESPACES_MAX */
	uint32_t granule_shift;   /* SLOT_SHIFT to CONTROL_GRANULE_SHIFT_MAX */
	uint64_t domain_id;
	uint64_t index_salt[2];
	uint8_t boot_id[16];
};

#define CONTROL_BLOCKS_MAX        0xfffffff0u
#define CONTROL_NAMESPACES_MAX    65536u
#define CONTROL_GRANULE_SHIFT_MAX 40u

/* What follows from it: where the parts lie, in this order, and how many there are. */
struct control_geometry {
	uint64_t ns_offset, granule_offset, index_offset, desc_offset, aux_offset, total_bytes;
	uint64_t n_buckets;
	uint32_t n_granules;
};

/* Returns 0, or -EINVAL when cfg is out of its bounds. */
int control_geometry(const struct control_config *cfg, struct control_geometry *ret);

/* The header's own numbers, as the configuration that they claim to come from. */
void control_config_of(const struct control_header *h, struct control_config *ret);

/*
 * A mapped control region. The daemon's is writable; a client that writes through its own gets
 * SIGSEGV.
 */
struct control {
	struct control_header *head;
	struct ns_entry *ns;
	struct granule *granule;
	struct bucket *index;
	struct desc *desc;
	struct desc_aux *aux;
	uint64_t bucket_mask;
	uint64_t salt[2];
	uint32_t max_blocks;
	uint32_t max_namespaces;
};

/* Bytes of the region that cfg asks for; 0 when cfg is out of its bounds. */
uint64_t control_size(const struct control_config *cfg);

/*
 * Lays out zeroed memory of control_size(cfg) bytes, which must not be 0. The magic is stored last,
 * so a half-made region attaches nowhere.
 */
void control_format(void *base, const struct control_config *cfg);

/*
 * Makes *c from a mapped region of size bytes. Returns NULL, or a text that says what is wrong with
 * it; *c is then as it was. Every offset is checked, so that later accesses through *c stay inside
 * the region.
 */
const char *control_attach(void *base, uint64_t size, struct control *c);

/* The key of a descriptor, word by word: whole where nobody reuses it meanwhile. */
static inline struct block_key desc_key(const struct control *c, uint32_t d)
{
	struct block_key key;

	for (unsigned int i = 0; i < KEY_WORDS; i++)
		key.w[i] = load_relaxed(&c->desc[d].key[i]);
	return key;
}

/* Where the bytes of a slot lie, as an offset into the pool. */
static inline uint64_t slot_offset(uint32_t slot)
{
	return (uint64_t)slot << SLOT_SHIFT;
}

/* The slot field of a memory tier. */
static inline uint32_t *control_slot(const struct control *c, uint32_t d, enum tier tier)
{
	return &c->desc[d].slot[tier];
}

#endif
