/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Naming: own blocks of a sequence whose tokens are known become blocks of the cache, and stay
 * where they are, held for the sequence.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/hash.h"
#include "client/ns.h"
#include "client/seq_name.h"
#include "client/seq_slots.h"
#include "kernels/crc32c.h"
#include "shm/word.h"

static int is_settled(const struct seq_block *b)
{
	return !b->own || b->verdict == KVPOOL_PRESENT;
}

/* The first block before end that is ours and behind all blocks of the cache. */
static uint32_t first_own(const struct kvpool_seq *s, uint32_t end)
{
	uint32_t i = end;

	while (i && s->blocks[i - 1].own)
		i--;
	return i;
}

/* The same behind copies of what is cached, too. */
static uint32_t first_unsettled(const struct kvpool_seq *s, uint32_t end)
{
	uint32_t i = end;

	while (i && !is_settled(&s->blocks[i - 1]))
		i--;
	return i;
}

static void checksum(struct kvpool_seq *s, uint32_t i)
{
	struct seq_block *b = &s->blocks[i];

	if (!b->has_crc)
		b->crc = crc32c(0, seq_bytes(s, i), s->ns->block_bytes);
	b->has_crc = 1;
}

/* Whether a hold is the pins of these very blocks, of a commit that had no answer. */
static int is_of_blocks(const struct naming *n, const struct hold *h, size_t max)
{
	if (!h->unsure || hold_refs(h) != 1 || h->n > max)
		return 0;
	for (size_t i = 0; i < h->n; i++)
		if (h->lease[i]->notes[0].desc != n->s->blocks[n->first + i].desc)
			return 0;
	return 1;
}

/* Pins up to max blocks, anew or as the last commit of them left it. */
static int pin_blocks(struct naming *n, size_t max)
{
	struct kvpool_seq *s = n->s;
	int err;

	if (s->n_holds && is_of_blocks(n, s->holds[s->n_holds - 1].hold, max)) {
		n->hold = s->holds[--s->n_holds].hold;
		n->hold->unsure = 0;
		return 0;
	}
	if (s->n_holds == SEQ_HOLDS)
		return handle_error(s->pool, -ENOSPC,
				    "a sequence whose prefix was flushed and stored anew again "
				    "and again: make a new one");
	err = hold_new_pins(s->pool, s->attach, max, &n->hold);
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < n->hold->n; i++)
		hold_pin(n->hold, i, s->attach, s->blocks[n->first + i].desc);
	return 0;
}

void seq_name_sum_up(struct kvpool_seq *s, uint32_t end)
{
	for (uint32_t i = first_own(s, end); i < end; i++)
		checksum(s, i);
}

int seq_name_is_due(const struct kvpool_seq *s, uint32_t end)
{
	return first_unsettled(s, end) < end;
}

/* The hold and the message. Sets how many blocks it is about. */
static int prepare(struct naming *n)
{
	struct kvpool_seq *s = n->s;
	size_t want = MIN(n->end - n->first, MIN(SEQ_PART, (uint32_t)s->message.max));
	int err = pin_blocks(n, want);

	if (err < 0)
		return err;
	n->n = (uint32_t)n->hold->n;
	s->message.n = 0;
	for (uint32_t i = 0; i < n->n; i++) {
		checksum(s, n->first + i);
		seq_message_add(s, &s->blocks[n->first + i]);
	}
	return 0;
}

int seq_name_take(struct naming *n, const ProtobufCMessage *reply)
{
	const Kvpool__CommitReply *m = (const Kvpool__CommitReply *)reply;

	if (m->verdict.len != n->n)
		return -EPROTO;
	for (uint32_t i = 0; i < n->n; i++) {
		uint8_t v = m->verdict.data[i];

		if ((v < VERDICT_PRESENT || v > VERDICT_NOT_OWNER))
			return -EPROTO;
		n->s->message.verdict[i] = v;
	}
	return 0;
}

void seq_name_message(const struct naming *n, Kvpool__Commit *m)
{
	struct kvpool_seq *s = n->s;

	m->n_desc = m->n_gen = m->n_crc = s->message.n;
	m->desc = s->message.desc;
	m->gen = s->message.gen;
	m->crc = s->message.crc;
	m->keys =
		(ProtobufCBinaryData){ n->n * sizeof(s->keys[0]), (uint8_t *)s->keys[n->first].w };
	if (n->first)
		m->parent = (ProtobufCBinaryData){ sizeof(s->keys[0]),
						   (uint8_t *)s->keys[n->first - 1].w };
}

/*
 * STALE, of a block that a commit was sent for before, without an answer in time: it was committed,
 * and is pinned since then.
 */
static int was_committed(const struct kvpool_seq *s, const struct seq_block *b)
{
	uint64_t w = load_acquire(&s->attach->control.desc[b->desc].word);

	return word_gen(w) == b->gen && word_state(w) != DESC_RESERVED &&
	       word_state(w) != DESC_QUARANTINE && word_state(w) != DESC_FREE;
}

static void settle_block(struct kvpool_seq *s, struct seq_block *b, uint8_t v)
{
	if (v == VERDICT_STALE && was_committed(s, b))
		v = VERDICT_COMMITTED;
	store_relaxed(&b->verdict, (uint8_t)(v == VERDICT_NOT_OWNER ? VERDICT_STALE : v));
	store_relaxed(&b->own, (uint8_t)(v != VERDICT_COMMITTED));
}

/*
 * Whether the deepest one keeps all that are stored now. It does not when the last commit had no
 * answer, and of the prefix that it stored a part was flushed and stored anew meanwhile.
 */
static int is_one_chain(const struct naming *n, uint32_t deepest)
{
	for (uint32_t i = 0; i < deepest; i++)
		if (!n->s->blocks[n->first + i].own &&
		    !seq_is_above(n->s, n->first + deepest, n->first + i))
			return 0;
	return 1;
}

/* Returns how many were stored, and holds the deepest one of them. */
static int settle(struct naming *n)
{
	struct kvpool_seq *s = n->s;
	struct hold *hold = TAKE_PTR(n->hold);
	uint32_t deepest = UINT32_MAX;
	int stored = 0;

	for (uint32_t i = 0; i < n->n; i++) {
		struct seq_block *b = &s->blocks[n->first + i];

		settle_block(s, b, s->message.verdict[i]);
		if (b->own)
			continue;
		stored += s->message.verdict[i] == VERDICT_COMMITTED;
		deepest = i;
	}
	if (deepest == UINT32_MAX) {
		hold_unref(hold);
		return 0;
	}
	if (is_one_chain(n, deepest)) {
		hold_keep(hold, deepest);
		(void)seq_add_hold(s, hold, s->blocks[n->first + deepest].desc,
				   n->first + deepest + 1);
	} else {
		n->hold = hold;
		seq_name_lost(n);
	}
	handle_count(s->pool, s->attach, COUNTER_STORED, (uint64_t)stored);
	handle_count(s->pool, s->attach, COUNTER_STORED_BYTES,
		     (uint64_t)stored * s->ns->block_bytes);
	return stored;
}

void seq_name_lost(struct naming *n)
{
	struct kvpool_seq *s = n->s;

	n->hold->unsure = 1;
	s->holds[s->n_holds++] = (struct seq_hold){ TAKE_PTR(n->hold), n->first + n->n };
}

/*
 * What the first blocks lie below was a copy of a cached block, which is gone: it can have the
 * name.
 */
static int is_again(const struct naming *n)
{
	return !n->again && !n->stored && n->own < n->begin &&
	       n->s->blocks[n->begin].verdict == KVPOOL_NO_PARENT;
}

/* The next message. Returns 1, 0: there is none, or -errno. */
static int go_on(struct naming *n, int is_over)
{
	int err;

	if (is_over && !is_again(n))
		return 0;
	if (is_over) {
		n->again = 1;
		n->first = n->own;
	}
	err = prepare(n);
	if (!err)
		return 1;
	/* Without a lease to hold more, what was stored is stored. */
	return err == -ENOSPC && n->stored ? 0 : err;
}

int seq_name_begin(struct naming *n, struct kvpool_seq *s, uint32_t end)
{
	uint32_t first = first_unsettled(s, end);

	*n = (struct naming){
		.s = s,
		.end = end,
		.own = first_own(s, end),
		.begin = first,
		.first = first,
	};
	seq_fit_holds(s);
	return first < end ? go_on(n, 0) : 0;
}

int seq_name_next(struct naming *n)
{
	n->stored += settle(n);
	n->first += n->n;
	return go_on(n, n->first == n->end || !is_settled(&n->s->blocks[n->first - 1]));
}

static int take(void *arg, const ProtobufCMessage *reply)
{
	return seq_name_take(arg, reply);
}

static int send_names(struct naming *n)
{
	struct kvpool_seq *s = n->s;
	struct rpc_call call = { .op = OP_COMMIT, .take = take, .arg = n };
	Kvpool__Commit m = KVPOOL__COMMIT__INIT;
	int err;

	seq_name_message(n, &m);
	err = link_call(s->pool, &s->link, "commit blocks of a sequence", &call, &m.base,
			handle_deadline(s->pool));
	if (!err)
		return seq_name_next(n);
	seq_name_lost(n);
	return err;
}

static int name_all(struct kvpool_seq *s, uint32_t end)
{
	struct naming n;
	int r = seq_name_begin(&n, s, end);

	while (r > 0)
		r = send_names(&n);
	return r < 0 ? r : n.stored;
}

/* ---- taking the cached block in place of a copy ---- */

static uint32_t count_copies(const struct kvpool_seq *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_keys; i++)
		n += s->blocks[i].own && s->blocks[i].verdict == KVPOOL_PRESENT;
	return n;
}

/* Pins as much as is cached of the chain. Returns how many blocks. */
static uint32_t look_up(struct kvpool_seq *s, struct kvpool_lease *l)
{
	const struct control *c = &s->attach->control;
	uint32_t n;

	attach_dup(s->attach);
	l->attach = s->attach;
	n = lookup_scan(c, s->keys, s->n_keys, TIER_HOST, l->notes);
	n = lookup_pin(c, lease_hazard(l, 0), l->notes, n, n, TIER_HOST);
	l->depth = n;
	if (n && lookup_resolve(c, l->notes, 0, n, TIER_HOST) == 0)
		return n;
	kvpool_release(l);
	return 0;
}

static void swap_block(struct kvpool_seq *s, uint32_t i, const struct lookup_note *note,
		       struct kvpool_write *w)
{
	struct seq_block *b = &s->blocks[i];

	if (!b->own || b->verdict != KVPOOL_PRESENT ||
	    slot_offset(note->slot) + s->ns->block_bytes > s->attach->pool_bytes)
		return;
	seq_slots_add(w, b);
	*b = (struct seq_block){ .desc = note->desc,
				 .slot = note->slot,
				 .verdict = KVPOOL_PRESENT };
}

int seq_name_swap(struct kvpool_seq *s, struct kvpool_write **ret)
{
	uint32_t copies = count_copies(s), n;
	struct kvpool_write *w;
	struct kvpool_lease *l;
	struct hold *h;
	int err;

	if (!copies)
		return 0;
	err = hold_new(s->pool, s->n_keys, &h);
	if (err < 0)
		return err;
	w = seq_slots_new(s, copies);
	l = h->lease[0];
	n = w ? look_up(s, l) : 0;
	/*
	 * Where the prefix was flushed and stored anew, blocks that it does not keep lie between
	 * those that it would: the copies stay.
	 */
	if (!n || !seq_hold_suffices(s, l->notes[n - 1].desc, n) ||
	    !seq_add_hold(s, h, l->notes[n - 1].desc, n))
		hold_unref(h);
	else
		for (uint32_t i = 0; i < n; i++)
			swap_block(s, i, &l->notes[i], w);
	if (!w)
		return handle_error(s->pool, -ENOMEM, "no memory to give %u slots back", copies);
	*ret = w;
	return 0;
}

/* ---- what a program calls ---- */

int seq_name_check(struct kvpool_seq *s, unsigned int flags)
{
	if (seq_is_busy(s))
		return seq_say_busy(s);
	if (flags & ~(unsigned)KVPOOL_SWAP)
		return handle_error(s->pool, -EINVAL, "unknown flags 0x%x", flags);
	return 0;
}

uint32_t seq_name_tokens(struct kvpool_seq *s, const int32_t *tokens, size_t n_tokens)
{
	uint32_t block_tokens = s->ns->block_tokens;
	uint32_t n = (uint32_t)MIN(n_tokens / block_tokens, (size_t)s->n_blocks);

	seq_read_keys(s);
	if (n > s->n_keys) {
		struct block_key after = s->n_keys ? s->keys[s->n_keys - 1] : s->ns->seed;

		hash_blocks(&after, tokens + (size_t)s->n_keys * block_tokens, block_tokens,
			    n - s->n_keys, s->keys + s->n_keys);
		s->n_keys = n;
	}
	return n;
}

uint32_t seq_name_keys(struct kvpool_seq *s, const struct kvpool_key *keys, size_t n_keys)
{
	uint32_t n = (uint32_t)MIN(n_keys, (size_t)s->n_blocks);

	seq_read_keys(s);
	if (n > s->n_keys) {
		memcpy(s->keys + s->n_keys, keys + s->n_keys, (n - s->n_keys) * sizeof(s->keys[0]));
		s->n_keys = n;
	}
	return n;
}

/* The keys of the first n blocks are known. */
static int commit(struct kvpool_seq *s, uint32_t n, unsigned int flags)
{
	struct kvpool_write *w = NULL;
	int stored = name_all(s, n), err = 0;

	if (stored >= 0 && flags & KVPOOL_SWAP)
		err = seq_name_swap(s, &w);
	kvpool_write_free(w);
	return err < 0 ? err : stored;
}

static int check(struct kvpool_seq *s, unsigned int flags)
{
	int err = seq_name_check(s, flags);

	return err < 0 || !s->n_blocks ? err : seq_connect(s);
}

int kvpool_seq_commit(struct kvpool_seq *s, const int32_t *tokens, size_t n_tokens, unsigned flags)
{
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	err = check(s, flags);
	return err < 0 ? err : commit(s, seq_name_tokens(s, tokens, n_tokens), flags);
}

int kvpool_seq_commit_keys(struct kvpool_seq *s, const struct kvpool_key *keys, size_t n_keys,
			   unsigned flags)
{
	int err;

	if (handle_is_forked(s->pool))
		return -ESTALE;
	err = check(s, flags);
	return err < 0 ? err : commit(s, seq_name_keys(s, keys, n_keys), flags);
}
