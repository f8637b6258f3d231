/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sha256.h"
#include "shm/desc.h"
#include "shm/word.h"
#include "tests/shm/region.h"

/*
 * The key stands at both ends of a block. It is written and read word by word: the thread sanitizer
 * does not see a memcpy or memcmp that the compiler expands.
 */
#define LAST_WORDS (REGION_BLOCK_BYTES / sizeof(uint64_t) - KEY_WORDS)

static void *memory(const struct region *r, uint64_t bytes)
{
	int how = r->cfg.shared ? MAP_SHARED : MAP_PRIVATE;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);

	assert(p != MAP_FAILED);
	return p;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	assert(p);
	return p;
}

static void init_control(struct region *r)
{
	struct control_config cfg = {
		.pool_bytes = r->pool_bytes,
		.max_blocks = r->cfg.max_blocks,
		.max_namespaces = r->cfg.namespaces + r->cfg.spare_namespaces,
		.granule_shift = REGION_GRANULE_SHIFT,
		.domain_id = 7,
		.index_salt = { 0x1234567, 0x89abcde },
	};

	r->bytes = control_size(&cfg);
	assert(r->bytes);
	r->base = memory(r, r->bytes);
	control_format(r->base, &cfg);
	assert(!control_attach(r->base, r->bytes, &r->c));
}

/* The namespaces one after the other, each with one extent behind the one of the last. */
static void init_namespace(struct region *r, uint32_t ns)
{
	uint32_t first = ns * r->cfg.granules, n = r->cfg.granules * REGION_GRANULE_SLOTS;
	struct ns_entry *e = &r->c.ns[ns];

	e->block_tokens = REGION_BLOCK_TOKENS;
	e->block_bytes = e->stride = REGION_BLOCK_BYTES;
	e->seed[0] = (uint8_t)ns;
	store_release(&e->state, NS_OPEN);
	for (uint32_t i = 0; i < r->cfg.granules; i++)
		r->c.granule[first + i].first = first;
	r->c.granule[first].count = r->cfg.granules;
	for (uint32_t i = 0; i < r->cfg.granules; i++)
		store_release(&r->c.granule[first + i].ns, ns);
	r->slots[ns].free = zeroed(n, sizeof(uint32_t));
}

static void init_sessions(struct region *r)
{
	r->session_bytes = session_size(REGION_HAZARDS, r->cfg.touches);
	for (uint32_t i = 0; i < r->cfg.sessions; i++) {
		r->session_base[i] = memory(r, r->session_bytes);
		session_format(r->session_base[i], i + 1, REGION_HAZARDS, r->cfg.touches);
		session_map_trusted(r->session_base[i], REGION_HAZARDS, r->cfg.touches,
				    &r->session[i]);
	}
}

void region_init(struct region *r, const struct region_config *cfg)
{
	uint32_t n = cfg->max_blocks;

	memset(r, 0, sizeof(*r));
	r->cfg = *cfg;
	r->cfg.namespaces = MAX(cfg->namespaces, 1u);
	r->cfg.touches = cfg->touches ? cfg->touches : REGION_TOUCHES;
	if (!cfg->granules)
		r->cfg.granules = (n + REGION_GRANULE_SLOTS - 1) / REGION_GRANULE_SLOTS;
	r->pool_bytes = ((uint64_t)r->cfg.namespaces * r->cfg.granules + cfg->spare_granules)
			<< REGION_GRANULE_SHIFT;
	r->pool = memory(r, r->pool_bytes);
	init_control(r);
	r->slots = zeroed(r->cfg.namespaces, sizeof(*r->slots));
	for (uint32_t i = 0; i < r->cfg.namespaces; i++)
		init_namespace(r, i);
	r->session = zeroed(cfg->sessions + 1, sizeof(*r->session));
	r->session_base = zeroed(cfg->sessions + 1, sizeof(*r->session_base));
	init_sessions(r);
	r->index = (struct index_writer){ &r->c, zeroed(r->c.bucket_mask + 1, 1) };
	r->pins.bits = zeroed((n + 63) / 64, sizeof(uint64_t));
	r->pins.max_blocks = n;
	r->children = zeroed(n, sizeof(uint32_t));
	r->bucket = zeroed(n, sizeof(uint64_t));
	r->free_desc = zeroed(n, sizeof(uint32_t));
	region_adopt(r);
}

static int slot_in_use(const struct region *r, uint32_t slot)
{
	for (uint32_t d = 0; d < r->cfg.max_blocks; d++)
		if (region_state(r, d) != DESC_FREE &&
		    REGION_PEEK(control_slot(&r->c, d, TIER_HOST)) == slot)
			return 1;
	return 0;
}

static void adopt_slots(struct region *r, uint32_t ns)
{
	uint32_t n = r->cfg.granules * REGION_GRANULE_SLOTS;

	r->slots[ns].n = 0;
	for (uint32_t i = n; i-- > 0;)
		if (!slot_in_use(r, ns * n + i))
			r->slots[ns].free[r->slots[ns].n++] = ns * n + i;
}

void region_adopt(struct region *r)
{
	uint32_t n = r->cfg.max_blocks;

	memset(r->index.claimed, (int)r->cfg.promised, r->c.bucket_mask + 1);
	memset(r->children, 0, n * sizeof(*r->children));
	r->n_free_desc = 0;
	for (uint32_t d = n; d-- > 0;) {
		enum desc_state state = region_state(r, d);
		uint32_t parent = REGION_PEEK(&r->c.desc[d].parent);

		if (state == DESC_FREE)
			r->free_desc[r->n_free_desc++] = d;
		else if (state != DESC_QUARANTINE && parent != DESC_NONE)
			r->children[parent]++;
	}
	for (uint32_t i = 0; i < r->cfg.namespaces; i++)
		adopt_slots(r, i);
}

void region_fini(struct region *r)
{
	munmap(r->base, r->bytes);
	munmap(r->pool, r->pool_bytes);
	for (uint32_t i = 0; i < r->cfg.sessions; i++)
		munmap(r->session_base[i], r->session_bytes);
	for (uint32_t i = 0; i < r->cfg.namespaces; i++)
		free(r->slots[i].free);
	free(r->slots);
	free(r->session);
	free(r->session_base);
	free(r->index.claimed);
	free(r->pins.bits);
	free(r->children);
	free(r->bucket);
	free(r->free_desc);
}

void region_keys(uint64_t seed, uint32_t token, uint32_t n, struct block_key *keys)
{
	struct {
		struct block_key before;
		uint32_t token[REGION_BLOCK_TOKENS];
	} in = { .before.w = { seed } };

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < REGION_BLOCK_TOKENS; k++)
			in.token[k] = token + i * REGION_BLOCK_TOKENS + k;
		sha256(&in, sizeof(in), (uint8_t *)&keys[i]);
		in.before = keys[i];
	}
}

uint32_t region_reserve(struct region *r, const struct block_key *key, uint32_t parent,
			uint32_t ns)
{
	struct region_slots *slots = &r->slots[ns];
	struct desc_identity id = { .key = *key, .parent = parent, .ns = ns, .writer = 1 };
	uint64_t bucket;
	uint32_t d;

	if (!r->n_free_desc || !slots->n || !index_claim(&r->index, key, &bucket))
		return DESC_NONE;
	d = r->free_desc[--r->n_free_desc];
	if (parent != DESC_NONE) {
		id.depth = REGION_PEEK(&r->c.desc[parent].depth) + 1;
		r->children[parent]++;
	}
	desc_reserve(&r->c, d, &id, TIER_HOST, slots->free[--slots->n]);
	r->bucket[d] = bucket;
	return d;
}

void region_commit(struct region *r, uint32_t d)
{
	struct block_key key = desc_key(&r->c, d);
	uint64_t *bytes = region_bytes(r, REGION_PEEK(control_slot(&r->c, d, TIER_HOST)));

	for (unsigned int i = 0; i < KEY_WORDS; i++)
		REGION_STORE(&bytes[i], key.w[i]);
	for (unsigned int i = 0; i < KEY_WORDS; i++)
		REGION_STORE(&bytes[LAST_WORDS + i], key.w[i]);
	desc_commit(&r->c, d, TIER_HOST, (uint32_t)key.w[0]);
	index_publish(&r->index, r->bucket[d], &key, d, word_gen(REGION_PEEK(&r->c.desc[d].word)));
}

/* Its parent may go. */
static void leave_parent(struct region *r, uint32_t d)
{
	uint32_t parent = REGION_PEEK(&r->c.desc[d].parent);

	if (parent != DESC_NONE)
		r->children[parent]--;
}

/* d is FREE: its descriptor and slot go to the next one. */
static void give_back(struct region *r, uint32_t d)
{
	struct region_slots *slots = &r->slots[REGION_PEEK(&r->c.desc[d].ns)];

	assert(!r->children[d]);
	r->free_desc[r->n_free_desc++] = d;
	slots->free[slots->n++] = REGION_PEEK(control_slot(&r->c, d, TIER_HOST));
}

void region_abort(struct region *r, uint32_t d)
{
	index_unclaim(&r->index, r->bucket[d]);
	desc_free(&r->c, d);
	leave_parent(r, d);
	give_back(r, d);
}

void region_quarantine(struct region *r, uint32_t d)
{
	index_unclaim(&r->index, r->bucket[d]);
	desc_set_state(&r->c, d, DESC_QUARANTINE);
	leave_parent(r, d);
}

void region_end_quarantine(struct region *r, uint32_t d)
{
	desc_free(&r->c, d);
	give_back(r, d);
}

void region_publish(struct region *r, const struct block_key *keys, uint32_t n, uint32_t *descs)
{
	for (uint32_t i = 0; i < n; i++) {
		struct lookup_note note;

		if (lookup_find(&r->c, &keys[i], TIER_HOST, &note)) {
			descs[i] = note.desc;
			continue;
		}
		descs[i] = region_reserve(r, &keys[i], i ? descs[i - 1] : DESC_NONE, 0);
		assert(descs[i] != DESC_NONE);
		region_commit(r, descs[i]);
	}
}

void region_snapshot(struct region *r)
{
	pinset_clear(&r->pins);
	for (uint32_t i = 0; i < r->cfg.sessions; i++)
		pinset_scan(&r->pins, r->session[i].hazard, r->session[i].hazard_count);
}

void region_forget(struct region *r, const uint32_t *batch, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (region_state(r, batch[i]) == DESC_FREE) {
			leave_parent(r, batch[i]);
			give_back(r, batch[i]);
		}
}

uint32_t region_evict(struct region *r, const uint32_t *batch, uint32_t n)
{
	uint32_t freed;

	evict_mark(&r->c, batch, n);
	region_snapshot(r);
	freed = evict_settle(&r->index, batch, n, &r->pins);
	region_forget(r, batch, n);
	return freed;
}

uint32_t region_doom_settle(struct region *r, uint32_t *batch, uint32_t n)
{
	uint32_t *before = zeroed(n + 1, sizeof(*before));
	uint32_t stay;

	memcpy(before, batch, n * sizeof(*batch));
	region_snapshot(r);
	stay = doom_settle(&r->c, batch, n, &r->pins);
	region_forget(r, before, n);
	free(before);
	return stay;
}

void region_deepest_first(const uint32_t *descs, uint32_t n, uint32_t *batch)
{
	for (uint32_t i = 0; i < n; i++)
		batch[i] = descs[n - 1 - i];
}

uint64_t *region_bytes(const struct region *r, uint32_t slot)
{
	assert(slot_offset(slot) + REGION_BLOCK_BYTES <= r->pool_bytes);
	return (uint64_t *)(r->pool + slot_offset(slot));
}

int region_bytes_are(const struct region *r, uint32_t slot, const struct block_key *key)
{
	const uint64_t *bytes = region_bytes(r, slot);
	uint64_t wrong = 0;

	for (unsigned int i = 0; i < KEY_WORDS; i++)
		wrong |= (REGION_LOAD(&bytes[i]) ^ key->w[i]) |
			 (REGION_LOAD(&bytes[LAST_WORDS + i]) ^ key->w[i]);
	return !wrong;
}

enum desc_state region_state(const struct region *r, uint32_t d)
{
	return word_state(REGION_PEEK(&r->c.desc[d].word));
}
