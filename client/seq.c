/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/ns.h"
#include "client/seq.h"
#include "client/write.h"
#include "proto/kvpool.pb-c.h"

static int message_init(struct seq_message *m, size_t max)
{
	uint8_t *memory = calloc(max, sizeof(*m->gen) + 2 * sizeof(*m->desc));

	if (!memory)
		return -ENOMEM;
	m->max = max;
	m->gen = (uint64_t *)memory;
	m->desc = (uint32_t *)(m->gen + max);
	m->crc = m->desc + max;
	return 0;
}

void seq_message_add(struct kvpool_seq *s, const struct seq_block *b)
{
	struct seq_message *m = &s->message;

	m->desc[m->n] = b->desc;
	m->gen[m->n] = b->gen;
	m->crc[m->n++] = b->crc;
}

static void free_memory(struct kvpool_seq *s)
{
	free(s->message.gen);
	free(s->keys);
	free(s);
}

static struct kvpool_seq *seq_alloc(size_t max_blocks)
{
	struct kvpool_seq *s = calloc(1, sizeof(*s) + max_blocks * sizeof(s->blocks[0]));

	if (!s)
		return NULL;
	s->keys = calloc(max_blocks, sizeof(s->keys[0]));
	if (s->keys && !message_init(&s->message, MIN(max_blocks, (size_t)FRAME_KEYS_MAX)))
		return s;
	free_memory(s);
	return NULL;
}

int seq_make(struct kvpool_ns *ns, size_t max_blocks, struct kvpool_seq **ret)
{
	struct kvpool_seq *s = seq_alloc(max_blocks);

	if (!s)
		return handle_error(ns->pool, -ENOMEM, "no memory for a sequence of %zu blocks",
				    max_blocks);
	handle_ref(ns->pool);
	ns_ref(ns);
	s->pool = ns->pool;
	s->ns = ns;
	s->max_blocks = (uint32_t)max_blocks;
	s->reason = KVPOOL_BELOW_MIN;
	*ret = s;
	return 0;
}

int kvpool_seq_new(struct kvpool_ns *ns, size_t max_blocks, struct kvpool_seq **ret)
{
	struct kvpool_seq *s;
	int err;

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	if (!max_blocks || max_blocks > LEASE_BLOCKS_MAX)
		return handle_error(ns->pool, -EINVAL, "a sequence of %zu blocks: give 1 to %u",
				    max_blocks, LEASE_BLOCKS_MAX);
	err = seq_make(ns, max_blocks, &s);
	if (err < 0)
		return err;
	err = hold_new(ns->pool, max_blocks, &s->acquired);
	if (err < 0)
		kvpool_seq_free(s);
	else
		*ret = s;
	return err;
}

uint32_t seq_count_own(const struct kvpool_seq *s, uint32_t from)
{
	uint32_t n = 0;

	for (uint32_t i = from; i < s->n_blocks; i++)
		n += s->blocks[i].own;
	return n;
}

int seq_is_lost(const struct kvpool_seq *s)
{
	const char *why;

	return s->link.rpc && rpc_status(s->link.rpc, &why) != 0;
}

int seq_say_lost(const struct kvpool_seq *s)
{
	return handle_error(s->pool, -ENOTCONN,
			    "the connection that the blocks of a sequence are from is gone: they "
			    "can be read and written on; fork the sequence to move them");
}

int seq_say_busy(const struct kvpool_seq *s)
{
	return handle_error(s->pool, -EBUSY,
			    "an operation of this sequence was started and is not finished: finish "
			    "or free it first");
}

static void put_link(struct kvpool_seq *s)
{
	if (s->link.rpc)
		link_put(s->pool, &s->link);
}

int seq_check_link(const struct kvpool_seq *s, const struct link *l)
{
	if (!(kvpool_features(s->pool) & KVPOOL_UNNAMED))
		return handle_error(s->pool, -EOPNOTSUPP,
				    "kvpoold is too old to keep the blocks of a sequence: update "
				    "it");
	if (!l->attach->writable)
		return handle_error(s->pool, -EROFS,
				    "cannot keep a sequence of namespace \"%s\" in the pool: "
				    "kvpoold lets this program only read",
				    s->ns->model);
	return s->attach && s->attach != l->attach ? seq_say_lost(s) : 0;
}

int seq_connect(struct kvpool_seq *s)
{
	uint64_t deadline = handle_deadline(s->pool);
	uint32_t number;
	struct link l;
	int err;

	if (seq_is_lost(s) && s->attach)
		return seq_say_lost(s);
	if (seq_is_lost(s))
		put_link(s);
	if (s->link.rpc)
		return 0;
	err = link_get(s->pool, LINK_PATIENT, deadline, &l);
	if (err < 0)
		return link_errno(err);
	err = seq_check_link(s, &l);
	if (!err)
		err = ns_register(s->ns, &l, deadline, &number);
	if (err < 0) {
		link_put(s->pool, &l);
		return err;
	}
	s->link = l;
	s->ns_number = number;
	return 0;
}

/* ---- giving back ---- */

int seq_give_back(struct kvpool_seq *s)
{
	struct rpc_call call = { .op = OP_ABORT };
	Kvpool__Abort m = KVPOOL__ABORT__INIT;

	if (!s->message.n)
		return 0;
	m.n_desc = m.n_gen = s->message.n;
	m.desc = s->message.desc;
	m.gen = s->message.gen;
	s->message.n = 0;
	return link_call(s->pool, &s->link, "give slots back", &call, &m.base,
			 handle_deadline(s->pool));
}

/* Own slots from block number n on, unless the daemon has taken them back with the session. */
static int give_back_from(struct kvpool_seq *s, uint32_t n)
{
	int err = 0;

	s->message.n = 0;
	if (seq_is_lost(s))
		return 0;
	for (uint32_t i = n; i < s->n_blocks && !err; i++) {
		if (!s->blocks[i].own)
			continue;
		seq_message_add(s, &s->blocks[i]);
		if (s->message.n == s->message.max)
			err = seq_give_back(s);
	}
	return err ? err : seq_give_back(s);
}

/*
 * The last hold. The lease for acquiring is used again; where a fork has it too, it is the fork's
 * now.
 */
static void drop_hold(struct kvpool_seq *s)
{
	struct hold *h = s->holds[--s->n_holds].hold;

	if (h == s->acquired && hold_refs(h) == 2)
		kvpool_release(h->lease[0]);
	else if (h == s->acquired)
		s->acquired = hold_unref(h);
	hold_unref(h);
}

/* Whether h keeps the first n blocks; one of an unsure commit may keep nothing but its own. */
static int is_enough(const struct seq_hold *h, uint32_t n)
{
	return h->depth >= n && !h->hold->unsure;
}

/* Lets go of holds that the first n blocks do not need. */
static void trim_holds(struct kvpool_seq *s, uint32_t n)
{
	while (s->n_holds && (!n || (s->n_holds > 1 && is_enough(&s->holds[s->n_holds - 2], n))))
		drop_hold(s);
	for (uint32_t i = 0; i < s->n_holds; i++)
		s->holds[i].depth = MIN(s->holds[i].depth, n);
}

void seq_cut(struct kvpool_seq *s, uint32_t n)
{
	s->n_blocks = n;
	s->n_keys = MIN(s->n_keys, n);
	s->keys_from = MIN(s->keys_from, n);
	trim_holds(s, n);
	if (!n)
		s->attach = NULL;
}

int seq_check_truncate(const struct kvpool_seq *s, size_t n_blocks)
{
	if (handle_is_forked(s->pool))
		return -ESTALE;
	if (seq_is_busy(s))
		return seq_say_busy(s);
	if (n_blocks > s->n_blocks)
		return handle_error(s->pool, -EINVAL,
				    "a sequence of %u blocks cannot be cut to %zu", s->n_blocks,
				    n_blocks);
	return 0;
}

int kvpool_seq_truncate(struct kvpool_seq *s, size_t n_blocks)
{
	int err = seq_check_truncate(s, n_blocks);

	if (err < 0)
		return err;
	err = give_back_from(s, (uint32_t)n_blocks);
	seq_cut(s, (uint32_t)n_blocks);
	return err;
}

void seq_destroy(struct kvpool_seq *s)
{
	struct kvpool *p = s->pool;

	while (s->n_holds)
		hold_unref(s->holds[--s->n_holds].hold);
	hold_unref(s->acquired);
	put_link(s);
	ns_put(s->ns);
	free_memory(s);
	if (!handle_is_forked(p))
		handle_tidy(p);
	handle_unref(p);
}

struct kvpool_seq *kvpool_seq_free(struct kvpool_seq *s)
{
	struct kvpool *p;

	if (!s)
		return NULL;
	p = s->pool;
	if (!handle_is_forked(p)) {
		seq_op_let_go(s);
		(void)give_back_from(s, 0);
	}
	seq_destroy(s);
	return NULL;
}

/* ---- holds ---- */

/* The last block of the cache among the first n; n when there is none. */
static uint32_t last_cached(const struct kvpool_seq *s, uint32_t n)
{
	for (uint32_t i = n; i-- > 0;)
		if (!s->blocks[i].own)
			return i;
	return n;
}

/* Whether block number t, of the cache, is above desc, block number at of what is pinned. */
static int is_above(const struct kvpool_seq *s, uint32_t desc, uint32_t at, uint32_t t)
{
	const struct control *c = &s->attach->control;

	for (; at > t && desc < c->max_blocks; at--)
		desc = load_relaxed(&c->desc[desc].parent);
	return at == t && desc == s->blocks[t].desc;
}

/* Whether a pin on desc, block number at, keeps all that hold h keeps. */
static int replaces(const struct kvpool_seq *s, const struct seq_hold *h, uint32_t desc,
		    uint32_t at)
{
	uint32_t t = last_cached(s, h->depth);

	if (h->hold->unsure)
		return 0;
	return t == h->depth || is_above(s, desc, at, t);
}

int seq_is_above(const struct kvpool_seq *s, uint32_t at, uint32_t t)
{
	return is_above(s, s->blocks[at].desc, at, t);
}

void seq_fit_holds(struct kvpool_seq *s)
{
	for (uint32_t i = 0; i < s->n_holds; i++) {
		struct seq_hold *h = &s->holds[i];
		uint32_t t = last_cached(s, h->depth);

		if (!h->hold->unsure)
			h->depth = t == h->depth ? 0 : t + 1;
	}
}

int seq_hold_suffices(const struct kvpool_seq *s, uint32_t desc, uint32_t depth)
{
	for (uint32_t i = 0; i < s->n_holds; i++)
		if (!s->holds[i].hold->unsure && !replaces(s, &s->holds[i], desc, depth - 1))
			return 0;
	return 1;
}

int seq_add_hold(struct kvpool_seq *s, struct hold *h, uint32_t desc, uint32_t depth)
{
	while (s->n_holds && replaces(s, &s->holds[s->n_holds - 1], desc, depth - 1))
		drop_hold(s);
	if (s->n_holds == SEQ_HOLDS)
		return 0;
	s->holds[s->n_holds++] = (struct seq_hold){ h, depth };
	return 1;
}

void seq_read_keys(struct kvpool_seq *s)
{
	for (uint32_t i = 0; i < s->keys_from; i++)
		s->keys[i] = desc_key(&s->attach->control, s->blocks[i].desc);
	s->keys_from = 0;
}

/* ---- acquiring ---- */

/* Gives back all, and has an empty lease of its own. 0: there is none. */
static int reset(struct kvpool_seq *s)
{
	if (seq_is_busy(s))
		seq_op_let_go(s);
	if (s->n_blocks)
		(void)kvpool_seq_truncate(s, 0);
	return s->acquired || hold_new(s->pool, s->max_blocks, &s->acquired) == 0;
}

/* What the lease found becomes the table. */
static void take_lease(struct kvpool_seq *s, const struct kvpool_lease *l)
{
	s->reason = l->reason;
	if (!l->depth)
		return;
	for (uint32_t i = 0; i < l->depth; i++)
		s->blocks[i] = (struct seq_block){
			.desc = l->notes[i].desc,
			.slot = l->notes[i].slot,
			.verdict = KVPOOL_PRESENT,
		};
	s->attach = l->attach;
	s->n_blocks = s->n_keys = l->depth;
	s->keys_from = l->depth;
	s->holds[s->n_holds++] = (struct seq_hold){ hold_ref(s->acquired), l->depth };
	/* Own slots are asked for on the connection that these are from. */
	if (s->link.rpc && s->link.attach != l->attach)
		put_link(s);
}

static struct kvpool_lease *start_acquire(struct kvpool_seq *s)
{
	if (handle_is_forked(s->pool))
		return NULL;
	if (reset(s))
		return s->acquired->lease[0];
	s->reason = KVPOOL_PINS;
	return NULL;
}

size_t kvpool_seq_acquire(struct kvpool_seq *s, const int32_t *tokens, size_t n_tokens)
{
	struct kvpool_lease *l = start_acquire(s);
	size_t n;

	if (!l)
		return 0;
	n = kvpool_acquire(s->ns, l, tokens, n_tokens, 0);
	take_lease(s, l);
	return n;
}

size_t kvpool_seq_acquire_keys(struct kvpool_seq *s, const struct kvpool_key *keys, size_t n_keys)
{
	struct kvpool_lease *l = start_acquire(s);
	size_t n;

	if (!l)
		return 0;
	n = kvpool_acquire_keys(s->ns, l, keys, n_keys, 0);
	take_lease(s, l);
	return n;
}

enum kvpool_reason kvpool_seq_reason(const struct kvpool_seq *s)
{
	return handle_is_forked(s->pool) ? KVPOOL_FORKED : s->reason;
}

/* ---- growing ---- */

/* One RESERVE for n unnamed slots, which go to the end of the table. */
struct asking {
	struct kvpool_seq *s;
	uint32_t n, full;
};

static int take_slot(struct kvpool_seq *s, const Kvpool__ReserveReply *m, size_t i)
{
	const struct attach *a = s->link.attach;

	if (m->verdict.data[i] != VERDICT_GRANTED || m->desc[i] >= a->control.max_blocks ||
	    slot_offset(m->slot[i]) + s->ns->block_bytes > a->pool_bytes)
		return -EPROTO;
	s->blocks[s->n_blocks + i] = (struct seq_block){
		.desc = m->desc[i],
		.gen = m->gen[i],
		.slot = m->slot[i],
		.own = 1,
		.verdict = KVPOOL_GRANTED,
	};
	return 0;
}

static int ask_take(void *arg, const ProtobufCMessage *reply)
{
	const Kvpool__ReserveReply *m = (const Kvpool__ReserveReply *)reply;
	struct asking *a = arg;
	int err = 0;

	if (m->verdict.len != a->n || m->n_desc > a->n || m->n_gen != m->n_desc ||
	    m->n_slot != m->n_desc)
		return -EPROTO;
	for (size_t i = 0; i < m->n_desc && !err; i++)
		err = take_slot(a->s, m, i);
	if (err)
		return err;
	a->s->n_blocks += (uint32_t)m->n_desc;
	a->full = m->n_desc < a->n ? m->full : FULL_NONE;
	return m->n_desc < a->n && !a->full ? -EPROTO : 0;
}

static int seq_ask(struct kvpool_seq *s, uint32_t n, uint32_t *ret_full)
{
	struct asking a = { .s = s, .n = n };
	struct rpc_call call = { .op = OP_RESERVE, .take = ask_take, .arg = &a };
	Kvpool__Reserve m = KVPOOL__RESERVE__INIT;
	uint32_t had = s->n_blocks;
	int err;

	m.ns = s->ns_number;
	m.unnamed = n;
	err = link_call(s->pool, &s->link, "reserve slots", &call, &m.base,
			handle_deadline(s->pool));
	if (err < 0)
		return err;
	if (s->n_blocks)
		s->attach = s->link.attach;
	for (uint32_t i = had; i < s->n_blocks; i++)
		write_warm_up(seq_bytes(s, i), s->ns->block_bytes);
	*ret_full = a.full;
	return 0;
}

int seq_say_full(const struct kvpool_seq *s, uint32_t n, uint32_t full)
{
	return handle_error(s->pool, -ENOSPC,
			    "a sequence of namespace \"%s\" got %u blocks of %u: %s", s->ns->model,
			    s->n_blocks, n,
			    full == FULL_QUOTA ? "this program holds all the unnamed slots that it "
						 "may (limits.client_unnamed_max)"
					       : "the pool has no room for more");
}

int seq_check_grow(struct kvpool_seq *s, size_t n_blocks)
{
	if (seq_is_busy(s))
		return seq_say_busy(s);
	if (n_blocks > s->max_blocks)
		return handle_error(s->pool, -EINVAL, "%zu blocks: this sequence may have %u",
				    n_blocks, s->max_blocks);
	if (n_blocks <= s->n_blocks)
		return 0;
	if (seq_is_lost(s) && s->attach)
		return seq_say_lost(s);
	if (seq_is_lost(s))
		put_link(s);
	return 0;
}

int seq_extend(struct kvpool_seq *s, uint32_t n)
{
	uint32_t full = FULL_NONE;
	int err = 0;

	while (s->n_blocks < n && !full && !err)
		err = seq_ask(s, MIN(n - s->n_blocks, s->link.max_keys), &full);
	if (full)
		(void)seq_say_full(s, n, full);
	return err;
}

long kvpool_seq_grow(struct kvpool_seq *s, size_t n_blocks)
{
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	err = seq_check_grow(s, n_blocks);
	if (err < 0)
		return err;
	if (n_blocks <= s->n_blocks)
		return (long)s->n_blocks;
	err = seq_connect(s);
	if (!err)
		err = seq_extend(s, (uint32_t)n_blocks);
	return err ? err : (long)s->n_blocks;
}

/* ---- looking ---- */

size_t kvpool_seq_blocks(const struct kvpool_seq *s)
{
	return handle_is_forked(s->pool) ? 0 : s->n_blocks;
}

const void *kvpool_seq_block(const struct kvpool_seq *s, size_t i)
{
	return i < kvpool_seq_blocks(s) ? seq_bytes(s, (uint32_t)i) : NULL;
}

void *kvpool_seq_own_block(const struct kvpool_seq *s, size_t i)
{
	return i < kvpool_seq_blocks(s) && load_relaxed(&s->blocks[i].own)
		       ? seq_bytes(s, (uint32_t)i)
		       : NULL;
}

enum kvpool_verdict kvpool_seq_verdict(const struct kvpool_seq *s, size_t i)
{
	return i < kvpool_seq_blocks(s) ? (enum kvpool_verdict)load_relaxed(&s->blocks[i].verdict)
					: KVPOOL_STALE;
}

void *kvpool_seq_base(const struct kvpool_seq *s, uint64_t *ret_bytes)
{
	if (!kvpool_seq_blocks(s))
		return NULL;
	if (ret_bytes)
		*ret_bytes = s->attach->pool_bytes;
	return s->attach->pool;
}

size_t kvpool_seq_table(const struct kvpool_seq *s, size_t first, uint32_t *table, size_t max)
{
	size_t n = kvpool_seq_blocks(s);

	n = first < n ? MIN(n - first, max) : 0;
	for (size_t i = 0; i < n; i++)
		table[i] = s->blocks[first + i].slot;
	return n;
}
