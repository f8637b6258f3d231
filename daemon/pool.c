/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/hex.h"
#include "daemon/doom.h"
#include "daemon/evictor.h"
#include "daemon/model.h"
#include "daemon/reclaim.h"
#include "daemon/shrink.h"

/* Reservations and quarantined blocks that one tick may end; a flush has its own step. */
#define TICK_BLOCKS 8192u

uint64_t pool_max_bytes(uint64_t pool_bytes, uint32_t granule_shift, uint64_t memory)
{
	uint64_t slots = (uint64_t)SLOT_NONE << SLOT_SHIFT >> granule_shift;
	uint64_t most = MIN(slots, POOL_GRANULES_MAX);

	return MAX(pool_bytes, MIN(memory >> granule_shift, most) << granule_shift);
}

/* The kernel's name of this boot, as 16 bytes; zero where there is none to be had. */
static void read_boot_id(uint8_t id[16])
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[36], digits[33];
	unsigned int n = 0;

	if (fd < 0 || read(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
		return;
	for (unsigned int i = 0; i < sizeof(text) && n < 32; i++)
		if (text[i] != '-')
			digits[n++] = text[i];
	digits[n] = '\0';
	(void)hex_decode(digits, id, 16);
}

static int random_words(uint64_t *words, size_t n)
{
	ssize_t got = getrandom(words, n * sizeof(*words), 0);

	return got == (ssize_t)(n * sizeof(*words)) ? 0 : -EIO;
}

/* The control region: made writable here, passed on read-only. */
static int make_control(struct pool *p, const struct control_config *cc)
{
	_cleanup_fd_ int fd = -1;
	int r;

	p->region_bytes = control_size(cc);
	if (!p->region_bytes)
		return -EINVAL;
	fd = fd_memory("kvpool-control", p->region_bytes, 1);
	if (fd < 0)
		return fd;
	r = fd_map(fd, p->region_bytes, 1, &p->region);
	if (r < 0)
		return r;
	control_format(p->region, cc);
	if (control_attach(p->region, p->region_bytes, &p->control))
		return -EINVAL;
	/* Keys lie anywhere in the index. What is behind it comes with the first use of a number. */
	r = fd_allocate(fd, 0, 0, p->control.head->index_offset +
					  p->control.head->n_buckets * sizeof(struct bucket));
	if (r < 0)
		return r;
	r = fd_reopen_readonly(fd);
	if (r < 0)
		return r;
	p->control_fd = r;
	return 0;
}

static int make_memory(struct pool *p)
{
	struct control_config cc = {
		.pool_bytes = p->cfg.max_bytes,
		.max_blocks = p->cfg.max_blocks,
		.max_namespaces = p->cfg.max_namespaces,
		.granule_shift = p->cfg.granule_shift,
	};
	int r = random_words(cc.index_salt, ARRAY_SIZE(cc.index_salt));

	if (r < 0)
		return r;
	r = random_words(&cc.domain_id, 1);
	if (r < 0)
		return r;
	read_boot_id(cc.boot_id);
	r = make_control(p, &cc);
	if (r < 0)
		return r;
	if (p->cfg.memory_fd) {
		p->memory_fd = p->cfg.memory_fd;
		return 0;
	}
	r = fd_memory("kvpool-memory", p->cfg.max_bytes, 1);
	if (r < 0)
		return r;
	p->memory_fd = r;
	return 0;
}

/* Zeroed by the kernel page by page: what is never used is never there. */
static int make_arrays(struct pool *p)
{
	size_t n = p->cfg.max_blocks;

	p->block = calloc(n, sizeof(*p->block));
	p->batch = calloc(RECLAIM_BLOCKS, sizeof(*p->batch));
	p->pins.bits = calloc((n + 63) / 64, sizeof(uint64_t));
	p->pins.max_blocks = p->cfg.max_blocks;
	p->index.c = &p->control;
	p->index.claimed = calloc(p->control.bucket_mask + 1, sizeof(*p->index.claimed));
	p->namespaces = calloc(p->cfg.max_namespaces, sizeof(*p->namespaces));
	return p->block && p->batch && p->pins.bits && p->index.claimed && p->namespaces ?
		       0 :
		       -ENOMEM;
}

static int make_parts(struct pool *p)
{
	struct keyhash reserved, gone;
	int r = random_words(reserved.salt, KEY_WORDS);

	if (r < 0)
		return r;
	r = random_words(gone.salt, KEY_WORDS);
	if (r < 0)
		return r;
	r = keymap_init(&p->keymap, &p->control, &reserved);
	if (r < 0)
		return r;
	r = ghost_init(&p->ghost, p->cfg.max_blocks, &gone);
	if (r < 0)
		return r;
	r = pin_table_make(&p->pin, p->cfg.max_blocks, p->cfg.pool_bytes);
	if (r < 0)
		return r;
	return extent_map_init(&p->extents, &p->control, p->ops, p->ctx,
			       (uint32_t)(p->cfg.pool_bytes >> p->cfg.granule_shift), p->cfg.fixed);
}

static int pool_make(struct pool *p)
{
	uint64_t granule = UINT64_C(1) << (p->cfg.granule_shift & 63);
	int r;

	if (p->cfg.max_blocks > POOL_BLOCKS_MAX || p->cfg.pool_bytes & (granule - 1) ||
	    p->cfg.pool_bytes < granule || p->cfg.pool_bytes > p->cfg.max_bytes)
		return -EINVAL;
	r = make_memory(p);
	if (r < 0)
		return r;
	r = make_arrays(p);
	if (r < 0)
		return r;
	return make_parts(p);
}

int pool_new(const struct pool_config *cfg, const struct pool_ops *ops, void *ctx,
	     struct pool **ret)
{
	struct pool *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->cfg = *cfg;
	p->cfg.max_bytes = cfg->max_bytes ?: cfg->pool_bytes;
	p->ops = ops;
	p->ctx = ctx;
	p->control_fd = p->memory_fd = -1;
	p->free_block = p->held = DESC_NONE;
	p->next_time_out = p->doom_again = UINT64_MAX;
	p->flush_step = POOL_FLUSH_STEP;
	p->reclaim_blocks = RECLAIM_BLOCKS;
	chain_init(&p->orphans);
	chain_init(&p->doomed);
	list_init(&p->waiters);
	owner_table_init(&p->owners);
	pin_table_init(&p->pin);
	r = pool_make(p);
	if (r < 0) {
		pool_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct pool *pool_free(struct pool *p)
{
	if (!p)
		return NULL;
	for (uint32_t i = 0; p->namespaces && i < p->cfg.max_namespaces; i++)
		namespace_fini(&p->namespaces[i]);
	pin_table_fini(&p->pin);
	extent_map_fini(&p->extents);
	ghost_fini(&p->ghost);
	keymap_fini(&p->keymap);
	free(p->namespaces);
	free(p->index.claimed);
	free(p->pins.bits);
	free(p->batch);
	free(p->block);
	fd_unmap(p->region, p->region_bytes);
	if (!p->cfg.memory_fd)
		close_fd(p->memory_fd);
	close_fd(p->control_fd);
	free(p);
	return NULL;
}

int pool_control_fd(const struct pool *p)
{
	return p->control_fd;
}

int pool_memory_fd(const struct pool *p)
{
	return p->memory_fd;
}

uint64_t pool_control_bytes(const struct pool *p)
{
	return p->region_bytes;
}

uint64_t pool_memory_bytes(const struct pool *p)
{
	return p->cfg.max_bytes;
}

const struct control *pool_control(const struct pool *p)
{
	return &p->control;
}

uint64_t pool_epoch(const struct pool *p)
{
	return load_relaxed(&p->control.head->epoch);
}

void pool_retire(struct pool *p)
{
	store_release(&p->control.head->state, CONTROL_RETIRED);
}

void pool_scan_readers(struct pool *p)
{
	pinset_clear(&p->pins);
	p->ops->scan_pins(p->ctx, &p->pins);
	for (uint32_t i = 0; i < p->n_verify; i++)
		pinset_add(&p->pins, p->verify[i].desc);
}

void pool_scan_pins(struct pool *p)
{
	pool_scan_readers(p);
	pin_scan(&p->pin, &p->pins);
}

void pool_touch(struct pool *p, uint32_t ns, uint32_t desc, uint32_t asked, uint32_t hit,
		uint64_t now)
{
	struct namespace *x = namespace_get(p, ns);

	if (!x)
		return;
	x->used = MAX(x->used, now);
	x->lookups++;
	x->asked_tokens += asked;
	x->hit_tokens += MIN(hit, asked);
	if (desc < p->cfg.max_blocks && block_state(p, desc) == DESC_COMMITTED &&
	    block_namespace(p, desc) == x)
		block_touch(p, desc, now);
}

void pool_missed(struct pool *p, uint32_t ns, enum miss_reason why, uint64_t tokens)
{
	struct namespace *x = namespace_get(p, ns);

	if (x)
		x->missed[why] += tokens;
}

uint32_t pool_find(const struct pool *p, uint32_t ns, const struct block_key *key,
		   uint64_t *ret_gen)
{
	uint32_t d = block_find(p, key);

	if (d == DESC_NONE || block_state(p, d) != DESC_COMMITTED ||
	    block_namespace(p, d)->number != ns)
		return DESC_NONE;
	*ret_gen = block_gen(p, d);
	return d;
}

void pool_punched(struct pool *p, uint64_t offset, uint64_t bytes)
{
	extent_punched(&p->extents, offset, bytes);
}

uint64_t pool_tick(struct pool *p, uint64_t now)
{
	uint32_t budget = TICK_BLOCKS;
	uint64_t next = owner_time_out(p, now, &budget);

	next = MIN(next, owner_release_orphans(p, now, &budget));
	next = MIN(next, doom_flushes(p, now));
	next = MIN(next, doom_again(p, now));
	next = MIN(next, pin_time_out(p, now));
	next = MIN(next, evictor_expire(p, now));
	namespace_shrink_unused(p);
	next = MIN(next, shrink_step(p, now));
	next = MIN(next, evictor_background(p, now));
	return next;
}

int pool_refill(struct pool *p, uint64_t now)
{
	return evictor_background(p, now) <= now;
}
