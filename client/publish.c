/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, reserving, filling and committing in one call, in runs that fit one message each. */
#include <errno.h>
#include <stdlib.h>

#include "client/chain.h"
#include "client/ns.h"
#include "client/prompt.h"
#include "client/write.h"
#include "shm/lookup.h"

/* Where the bytes come from: a function, or memory. */
struct source {
	kvpool_fill fill;
	void *arg;
	const struct iovec *iov; /* of each block of the chain */
};

struct publishing {
	struct kvpool_ns *ns;
	const struct chain *chain;
	const struct source *source;
	size_t at;  /* next block of the chain */
	size_t run; /* blocks in one message */
	int stored;
	int restarted;
	uint32_t full; /* enum proto_full: why the first block that is not there had no room */
};

/*
 * How many blocks of the chain are cached, as far as shared memory tells, and how many keys fit a
 * message. Nothing is pinned: the daemon says what is right.
 */
static int look_up(struct publishing *p)
{
	struct kvpool *pool = p->ns->pool;
	struct lookup_note *notes;
	struct link l;
	int err = link_get(pool, LINK_PATIENT, handle_deadline(pool), &l);

	if (err < 0)
		return link_errno(err);
	notes = malloc(MAX(p->chain->n, (size_t)1) * sizeof(*notes));
	if (notes)
		p->at = lookup_gallop(&l.attach->control, p->chain->keys, (uint32_t)p->chain->n,
				      TIER_HOST, notes);
	p->run = l.max_keys;
	free(notes);
	link_put(pool, &l);
	return 0;
}

/* Fills the granted blocks. Returns how many blocks from the first on may be committed. */
static size_t fill_blocks(struct publishing *p, struct kvpool_write *w)
{
	const struct source *s = p->source;

	if (s->iov) {
		write_copy_blocks(w, s->iov + p->at, w->n_blocks);
		return w->n_blocks;
	}
	for (size_t i = 0; i < w->n_blocks; i++) {
		void *block = kvpool_write_block(w, i);

		if (block && s->fill(s->arg, p->chain->first + p->at + i, block))
			return i;
	}
	return w->n_blocks;
}

/* True when the daemon has, or took, all blocks of the run: then there is a next one. */
static int all_went_in(const struct kvpool_write *w)
{
	for (size_t i = 0; i < w->n_blocks; i++)
		if (w->blocks[i].verdict != KVPOOL_PRESENT &&
		    w->blocks[i].verdict != KVPOOL_COMMITTED)
			return 0;
	return 1;
}

/* Sets where to go on, or the end of the chain when that is nowhere. */
static void move_on(struct publishing *p, const struct kvpool_write *w)
{
	if (all_went_in(w)) {
		p->at += w->n_blocks;
		return;
	}
	p->full = p->stored ? FULL_NONE : w->full;
	/* What was cached when it was looked up is gone: once from the start. */
	if (w->blocks[0].verdict == KVPOOL_NO_PARENT && p->at && !p->restarted) {
		p->restarted = 1;
		p->at = 0;
		return;
	}
	p->at = p->chain->n;
}

/* One run. Returns 0 or -errno. */
static int publish_run(struct publishing *p)
{
	size_t n = MIN(p->run, p->chain->n - p->at);
	struct kvpool_write *w;
	int r = write_reserve(p->ns, chain_parent(p->chain, p->at), p->chain->keys + p->at, n, &w);

	if (r > 0) {
		r = kvpool_commit(w, fill_blocks(p, w));
		p->stored += MAX(r, 0);
	} else if (r < 0) {
		return r;
	}
	if (r >= 0)
		move_on(p, w);
	kvpool_write_free(w);
	return MIN(r, 0);
}

/* What to do about it. */
static const char *full_hint(uint32_t full)
{
	switch (full) {
	case FULL_QUOTA:
		return "this program has reserved all that it may (limits.client_reserved_max); "
		       "commit or free what it has";
	case FULL_INDEX:
	case FULL_DESCRIPTORS:
		return "there are as many blocks as may be; raise host.max_blocks";
	default:
		return "all of it is being read, written or kept; kvpoolctl clients shows by whom";
	}
}

static int publish_chain(struct kvpool_ns *ns, const struct chain *chain, const struct source *s)
{
	struct publishing p = { .ns = ns, .chain = chain, .source = s };
	int err = chain->n ? look_up(&p) : 0;

	while (!err && p.at < chain->n)
		err = publish_run(&p);
	if (!err && p.full)
		err = handle_error(ns->pool, -ENOSPC,
				   "no room for blocks of namespace \"%s\": %s: %s", ns->model,
				   proto_full_name(p.full), full_hint(p.full));
	return err < 0 ? err : p.stored;
}

int kvpool_publish(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, kvpool_fill fill,
		   void *arg)
{
	struct source s = { .fill = fill, .arg = arg };
	struct chain c;
	int n;

	n = chain_open(&c, ns, tokens, n_tokens, 0, CHAIN_ALL);
	if (n < 0)
		return n;
	n = publish_chain(ns, &c, &s);
	chain_close(&c);
	return n;
}

int kvpool_publish_chain(const struct kvpool_chain *chain, kvpool_fill fill, void *arg)
{
	struct source s = { .fill = fill, .arg = arg };
	struct chain c;
	int err;

	err = prompt_run(chain, 0, &c);
	return err < 0 ? err : publish_chain(chain->ns, &c, &s);
}

static int check_lengths(const struct kvpool_ns *ns, const struct iovec *iov, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (iov[i].iov_len != ns->block_bytes)
			return handle_error(ns->pool, -EINVAL,
					    "buffer %zu has %zu bytes, not the %llu of a "
					    "block",
					    i, iov[i].iov_len, (unsigned long long)ns->block_bytes);
	return 0;
}

int kvpool_publish_iov(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		       size_t first_block, const struct iovec *iov, size_t n_blocks)
{
	struct source s = { .iov = iov };
	struct chain c;
	int n;

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	n = check_lengths(ns, iov, n_blocks);
	if (!n)
		n = chain_open(&c, ns, tokens, n_tokens, first_block, n_blocks);
	if (n < 0)
		return n;
	n = publish_chain(ns, &c, &s);
	chain_close(&c);
	return n;
}
