/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/chain.h"
#include "client/ns.h"
#include "client/prompt.h"
#include "client/write.h"
#include "client/write_op.h"
#include "kernels/copy.h"
#include "kernels/crc32c.h"
#include "proto/kvpool.pb-c.h"
#include "shm/control.h"

#define RUNS_MAX     128u
#define FAULT_AROUND KIB(64)

static_assert((int)KVPOOL_GRANTED == VERDICT_GRANTED && (int)KVPOOL_PRESENT == VERDICT_PRESENT &&
		      (int)KVPOOL_BUSY == VERDICT_BUSY && (int)KVPOOL_FULL == VERDICT_FULL &&
		      (int)KVPOOL_NO_PARENT == VERDICT_NO_PARENT &&
		      (int)KVPOOL_COMMITTED == VERDICT_COMMITTED &&
		      (int)KVPOOL_STALE == VERDICT_STALE,
	      "verdicts of the library and of the protocol are the same numbers");

/* One block of memory: the entries of gen first, for their alignment. */
static int message_init(struct write_message *m, size_t max)
{
	uint8_t *memory = calloc(MAX(max, (size_t)1), sizeof(*m->gen) + 3 * sizeof(*m->desc));

	if (!memory)
		return -ENOMEM;
	m->max = max;
	m->gen = (uint64_t *)memory;
	m->desc = (uint32_t *)(m->gen + max);
	m->crc = m->desc + max;
	m->block = m->crc + max;
	return 0;
}

static void message_add(struct kvpool_write *w, size_t block)
{
	struct write_message *m = &w->message;
	const struct write_block *b = &w->blocks[block];

	m->desc[m->n] = b->desc;
	m->gen[m->n] = b->gen;
	m->crc[m->n] = b->crc;
	m->block[m->n++] = (uint32_t)block;
}

struct kvpool_write *write_new(struct kvpool_ns *ns, size_t n, const struct link *l)
{
	struct kvpool_write *w = calloc(1, sizeof(*w) + n * sizeof(w->blocks[0]));

	if (!w || message_init(&w->message, MIN(n, (size_t)l->max_keys)) < 0) {
		free(w);
		return NULL;
	}
	w->pool = ns->pool;
	w->ns = ns;
	w->link = *l;
	w->n_blocks = n;
	handle_ref(ns->pool);
	ns_ref(ns);
	return w;
}

void write_drop(struct kvpool_write *w)
{
	struct kvpool *p = w->pool;

	if (w->link.rpc)
		link_put(p, &w->link);
	ns_put(w->ns);
	free(w->message.gen);
	free(w);
	handle_tidy(p);
	handle_unref(p);
}

int write_is_stale(const struct kvpool_write *w)
{
	const char *why;

	return w->link.rpc && rpc_status(w->link.rpc, &why) != 0;
}

uint8_t *write_slot(const struct kvpool_write *w, const struct write_block *b)
{
	return w->link.attach->pool + slot_offset(b->slot);
}

static int take_grant(const struct kvpool_write *w, struct write_block *b,
		      const Kvpool__ReserveReply *m, size_t grant)
{
	const struct attach *a = w->link.attach;

	if (grant >= m->n_desc || m->desc[grant] >= a->control.max_blocks ||
	    slot_offset(m->slot[grant]) + w->ns->block_bytes > a->pool_bytes)
		return -EPROTO;
	b->desc = m->desc[grant];
	b->gen = m->gen[grant];
	b->slot = m->slot[grant];
	b->held = 1;
	return 0;
}

int reserving_take(struct reserving *r, const ProtobufCMessage *reply)
{
	const Kvpool__ReserveReply *m = (const Kvpool__ReserveReply *)reply;
	size_t grants = 0;

	if (m->verdict.len != r->n || m->n_gen != m->n_desc || m->n_slot != m->n_desc)
		return -EPROTO;
	for (size_t i = 0; i < r->n; i++) {
		struct write_block *b = &r->w->blocks[r->at + i];

		b->verdict = m->verdict.data[i];
		if (b->verdict < VERDICT_GRANTED || b->verdict > VERDICT_NO_PARENT)
			return -EPROTO;
		if (b->verdict == VERDICT_GRANTED && take_grant(r->w, b, m, grants++) < 0)
			return -EPROTO;
	}
	if (m->full && !r->w->full)
		r->w->full = m->full;
	return grants == m->n_desc ? 0 : -EPROTO;
}

void reserving_message(struct reserving *r, uint32_t ns, Kvpool__Reserve *m)
{
	const struct block_key *parent = r->at ? &r->keys[r->at - 1] : r->parent;

	r->n = MIN(r->w->message.max, r->w->n_blocks - r->at);
	m->ns = ns;
	if (parent)
		m->parent = (ProtobufCBinaryData){ sizeof(*parent), (uint8_t *)parent->w };
	m->keys = (ProtobufCBinaryData){ r->n * sizeof(r->keys[0]), (uint8_t *)r->keys[r->at].w };
}

static int reserve_take(void *arg, const ProtobufCMessage *reply)
{
	return reserving_take(arg, reply);
}

static int can_go_deeper(enum kvpool_verdict v)
{
	return v == KVPOOL_GRANTED || v == KVPOOL_PRESENT;
}

int reserving_next(struct reserving *r)
{
	uint8_t last = r->w->blocks[r->at + r->n - 1].verdict;

	r->at += r->n;
	if (can_go_deeper(last))
		return r->at < r->w->n_blocks;
	for (; r->at < r->w->n_blocks; r->at++)
		r->w->blocks[r->at].verdict = last;
	return 0;
}

static int reserve_all(struct reserving *r, uint32_t ns)
{
	struct kvpool_write *w = r->w;
	int err;

	do {
		Kvpool__Reserve m = KVPOOL__RESERVE__INIT;
		struct rpc_call call = { .op = OP_RESERVE, .take = reserve_take, .arg = r };

		reserving_message(r, ns, &m);
		err = link_call(w->pool, &w->link, "reserve blocks", &call, &m.base,
				handle_deadline(w->pool));
	} while (!err && reserving_next(r));
	return err;
}

/*
 * The first write to each page of a shared mapping is a page fault, which costs more than copying
 * the page. A read fault maps what is there of the 64 KiB around it, writable too; so one byte of
 * each is read before the slots are written.
 */
void write_warm_up(const uint8_t *slot, uint64_t bytes)
{
	const volatile uint8_t *at = slot, *end = slot + bytes;

	for (; at < end; at += FAULT_AROUND - (uintptr_t)at % FAULT_AROUND)
		(void)*at;
}

/* Returns how many there are. */
static int warm_up_granted(const struct kvpool_write *w)
{
	int n = 0;

	for (size_t i = 0; i < w->n_blocks; i++)
		if (w->blocks[i].verdict == KVPOOL_GRANTED) {
			write_warm_up(write_slot(w, &w->blocks[i]), w->ns->block_bytes);
			n++;
		}
	return n;
}

/* The connection, the number of the namespace there, and that the pool can be written to. */
static int open_for_write(struct kvpool_ns *ns, struct link *l, uint32_t *ret_number)
{
	struct kvpool *p = ns->pool;
	uint64_t deadline = handle_deadline(p);
	int err = link_get(p, LINK_PATIENT, deadline, l);

	if (err < 0)
		return link_errno(err);
	err = ns_register(ns, l, deadline, ret_number);
	if (!err && !l->attach->writable)
		err = handle_error(p, -EROFS,
				   "cannot store blocks of namespace \"%s\": kvpoold lets "
				   "this program only read",
				   ns->model);
	if (err < 0)
		link_put(p, l);
	return err;
}

int write_reserve(struct kvpool_ns *ns, const struct block_key *parent,
		  const struct block_key *keys, size_t n_keys, struct kvpool_write **ret)
{
	struct link l = { .rpc = NULL };
	struct kvpool_write *w;
	uint32_t number = NS_NONE;
	int err = n_keys ? open_for_write(ns, &l, &number) : 0;

	if (err < 0)
		return err;
	w = write_new(ns, n_keys, &l);
	if (!w) {
		if (l.rpc)
			link_put(ns->pool, &l);
		return handle_error(ns->pool, -ENOMEM, "no memory to write %zu blocks", n_keys);
	}
	if (n_keys) {
		struct reserving r = { .w = w, .parent = parent, .keys = keys };

		err = reserve_all(&r, number);
	}
	if (err < 0) {
		kvpool_write_free(w);
		return err;
	}
	*ret = w;
	return warm_up_granted(w);
}

int kvpool_reserve_keys(struct kvpool_ns *ns, const struct kvpool_key *parent,
			const struct kvpool_key *keys, size_t n_keys, struct kvpool_write **ret)
{
	if (handle_is_forked(ns->pool))
		return -ESTALE;
	if (n_keys > CHAIN_BLOCKS_MAX)
		return handle_error(ns->pool, -EINVAL, "a write of %zu blocks: %u are the most",
				    n_keys, CHAIN_BLOCKS_MAX);
	return write_reserve(ns, (const struct block_key *)parent, (const struct block_key *)keys,
			     n_keys, ret);
}

int kvpool_reserve(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, size_t first_block,
		   struct kvpool_write **ret)
{
	struct chain c;
	int n;

	n = chain_open(&c, ns, tokens, n_tokens, first_block, CHAIN_ALL);
	if (n < 0)
		return n;
	n = write_reserve(ns, chain_parent(&c, 0), c.keys, c.n, ret);
	chain_close(&c);
	return n;
}

int kvpool_reserve_chain(const struct kvpool_chain *chain, size_t first_block,
			 struct kvpool_write **ret)
{
	struct chain c;
	int err;

	err = prompt_run(chain, first_block, &c);
	return err < 0 ? err : write_reserve(chain->ns, chain_parent(&c, 0), c.keys, c.n, ret);
}

size_t kvpool_write_blocks(const struct kvpool_write *w)
{
	return w->n_blocks;
}

const char *kvpool_write_full(const struct kvpool_write *w)
{
	return proto_full_name(w->full);
}

enum kvpool_verdict kvpool_write_verdict(const struct kvpool_write *w, size_t i)
{
	enum kvpool_verdict v;

	if (i >= w->n_blocks || handle_is_forked(w->pool))
		return KVPOOL_STALE;
	v = w->blocks[i].verdict;
	return v == KVPOOL_GRANTED && write_is_stale(w) ? KVPOOL_STALE : v;
}

void *kvpool_write_block(const struct kvpool_write *w, size_t i)
{
	if (kvpool_write_verdict(w, i) != KVPOOL_GRANTED)
		return NULL;
	if (w->cold)
		write_warm_up(write_slot(w, &w->blocks[i]), w->ns->block_bytes);
	return write_slot(w, &w->blocks[i]);
}

void write_count_copies(struct kvpool_write *w, size_t n)
{
	handle_count(w->pool, w->link.attach, COUNTER_COPIES_IN, n);
	handle_count(w->pool, w->link.attach, COUNTER_COPIED_IN_BYTES, n * w->ns->block_bytes);
}

/* Copies buffers that together are one block, and returns its checksum. */
static uint32_t copy_pieces(uint8_t *to, const struct iovec *iov, int iovcnt)
{
	struct copy_run runs[RUNS_MAX];
	uint32_t crc = 0;

	while (iovcnt) {
		unsigned int n = MIN((unsigned int)iovcnt, RUNS_MAX);

		for (unsigned int i = 0; i < n; i++) {
			runs[i] = (struct copy_run){ to, iov[i].iov_base, iov[i].iov_len, 0 };
			to += iov[i].iov_len;
		}
		copy_crc_batch(runs, n);
		for (unsigned int i = 0; i < n; i++)
			crc = crc32c_combine(crc, runs[i].crc, runs[i].n);
		iov += n;
		iovcnt -= (int)n;
	}
	return crc;
}

/* True when the buffers are together as long as one block. */
static int is_one_block(const struct iovec *iov, int iovcnt, uint64_t block_bytes)
{
	uint64_t left = block_bytes;

	for (int i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len > left)
			return 0;
		left -= iov[i].iov_len;
	}
	return !left;
}

int kvpool_write_copy(struct kvpool_write *w, size_t i, const struct iovec *iov, int iovcnt)
{
	uint8_t *to;

	if (handle_is_forked(w->pool))
		return -ESTALE;
	to = kvpool_write_block(w, i);
	if (!to)
		return handle_error(w->pool, -EINVAL,
				    "block %zu of a write is %s: not to be filled", i,
				    kvpool_verdict_name(kvpool_write_verdict(w, i)));
	if (!is_one_block(iov, iovcnt, w->ns->block_bytes))
		return handle_error(w->pool, -EINVAL,
				    "block %zu of a write: buffers of %llu bytes are needed", i,
				    (unsigned long long)w->ns->block_bytes);
	w->blocks[i].crc = iovcnt == 1 ? copy_crc(to, iov->iov_base, iov->iov_len)
				       : copy_pieces(to, iov, iovcnt);
	w->blocks[i].has_crc = 1;
	write_count_copies(w, 1);
	return 0;
}

void write_copy_blocks(struct kvpool_write *w, const struct iovec *iov, size_t n)
{
	struct copy_run runs[RUNS_MAX];
	struct write_block *block[RUNS_MAX];
	unsigned int k = 0;

	for (size_t i = 0; i < n; i++) {
		struct write_block *b = &w->blocks[i];

		if (b->verdict == KVPOOL_GRANTED) {
			if (w->cold)
				write_warm_up(write_slot(w, b), w->ns->block_bytes);
			runs[k] = (struct copy_run){ write_slot(w, b), iov[i].iov_base,
						     iov[i].iov_len, 0 };
			block[k++] = b;
		}
		if (k < RUNS_MAX && i + 1 < n)
			continue;
		if (k)
			write_count_copies(w, k);
		copy_crc_batch(runs, k);
		for (; k; k--) {
			block[k - 1]->crc = runs[k - 1].crc;
			block[k - 1]->has_crc = 1;
		}
	}
}

int committing_take(struct committing *c, const ProtobufCMessage *reply)
{
	const Kvpool__CommitReply *m = (const Kvpool__CommitReply *)reply;
	struct write_message *sent = &c->w->message;

	if (m->verdict.len != sent->n)
		return -EPROTO;
	for (size_t i = 0; i < sent->n; i++) {
		struct write_block *b = &c->w->blocks[sent->block[i]];
		uint8_t v = m->verdict.data[i];

		if (v != VERDICT_COMMITTED && v != VERDICT_STALE && v != VERDICT_NO_PARENT &&
		    v != VERDICT_NOT_OWNER)
			return -EPROTO;
		b->verdict = v == VERDICT_NOT_OWNER ? VERDICT_STALE : v;
		b->held = v == VERDICT_STALE || v == VERDICT_NO_PARENT;
		c->stored += v == VERDICT_COMMITTED;
	}
	return 0;
}

size_t committing_message(struct committing *c, Kvpool__Commit *m)
{
	struct kvpool_write *w = c->w;
	struct write_message *sent = &w->message;

	sent->n = 0;
	for (c->end = c->at; c->end < c->n && sent->n < sent->max; c->end++) {
		struct write_block *b = &w->blocks[c->end];

		if (b->verdict != KVPOOL_GRANTED)
			continue;
		if (!b->has_crc)
			b->crc = crc32c(0, write_slot(w, b), w->ns->block_bytes);
		message_add(w, c->end);
	}
	m->n_desc = m->n_gen = m->n_crc = sent->n;
	m->desc = sent->desc;
	m->gen = sent->gen;
	m->crc = sent->crc;
	return sent->n;
}

static int commit_take(void *arg, const ProtobufCMessage *reply)
{
	return committing_take(arg, reply);
}

static int commit_granted(struct kvpool_write *w, size_t n)
{
	struct committing c = { .w = w, .n = n };
	int err = 0;

	for (; !err; c.at = c.end) {
		struct rpc_call call = { .op = OP_COMMIT, .take = commit_take, .arg = &c };
		Kvpool__Commit m = KVPOOL__COMMIT__INIT;

		if (!committing_message(&c, &m))
			return c.stored;
		err = link_call(w->pool, &w->link, "commit blocks", &call, &m.base,
				handle_deadline(w->pool));
	}
	return err;
}

void write_count_stored(const struct kvpool_write *w, size_t n)
{
	handle_count(w->pool, w->link.attach, COUNTER_STORED, n);
	handle_count(w->pool, w->link.attach, COUNTER_STORED_BYTES, n * w->ns->block_bytes);
}

/* What nothing is known of. */
static void make_stale(struct kvpool_write *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (w->blocks[i].verdict == KVPOOL_GRANTED)
			w->blocks[i].verdict = KVPOOL_STALE;
}

int write_check_commit(struct kvpool_write *w, size_t n)
{
	if (write_op_is_under_way(w))
		return handle_error(w->pool, -EBUSY,
				    "cannot commit blocks: a commit of this write is under way");
	if (n > w->n_blocks)
		return handle_error(w->pool, -EINVAL, "commit of %zu blocks: the write has %zu", n,
				    w->n_blocks);
	if (write_is_stale(w))
		return handle_error(w->pool, -ENOTCONN,
				    "cannot commit blocks: the connection that they "
				    "were granted on is gone; reserve them again");
	return 0;
}

int kvpool_commit(struct kvpool_write *w, size_t n)
{
	int stored = handle_is_forked(w->pool) ? -ESTALE : write_check_commit(w, n);

	if (stored < 0)
		return stored;
	stored = commit_granted(w, n);
	if (stored < 0)
		make_stale(w, n);
	else
		write_count_stored(w, (size_t)stored);
	return stored;
}

size_t giving_back_message(struct giving_back *g, Kvpool__Abort *m)
{
	struct kvpool_write *w = g->w;
	struct write_message *sent = &w->message;

	sent->n = 0;
	for (g->end = g->at; g->end && sent->n < sent->max; g->end--)
		if (w->blocks[g->end - 1].held)
			message_add(w, g->end - 1);
	m->n_desc = m->n_gen = sent->n;
	m->desc = sent->desc;
	m->gen = sent->gen;
	return sent->n;
}

static void abort_blocks(struct kvpool_write *w)
{
	struct giving_back g = { .w = w, .at = w->n_blocks };
	int err = 0;

	for (; !err; g.at = g.end) {
		struct rpc_call call = { .op = OP_ABORT };
		Kvpool__Abort m = KVPOOL__ABORT__INIT;

		if (!giving_back_message(&g, &m))
			return;
		err = link_call(w->pool, &w->link, "give blocks back", &call, &m.base,
				handle_deadline(w->pool));
	}
}

struct kvpool_write *kvpool_write_free(struct kvpool_write *w)
{
	if (!w)
		return NULL;
	if (!handle_is_forked(w->pool)) {
		write_op_cancel(w);
		if (w->link.rpc && !write_is_stale(w))
			abort_blocks(w);
	} else {
		write_op_forget(w);
	}
	write_drop(w);
	return NULL;
}
