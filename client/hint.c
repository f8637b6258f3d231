/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "client/kvpool-hint.h"
#include "client/op.h"
#include "client/prompt.h"
#include "proto/kvpool.pb-c.h"
#include "shm/lookup.h"

static int hint_take(void *arg, const ProtobufCMessage *reply)
{
	const Kvpool__HintReply *m = (const Kvpool__HintReply *)reply;

	*(uint32_t *)arg = m->blocks;
	return m->blocks > CHAIN_BLOCKS_MAX ? -EPROTO : 0;
}

/*
 * How many of the keys are cached, from the first on. Each is there if a later one is, so this is a
 * binary search; nothing is pinned, since nothing is read.
 */
static size_t cached_depth(const struct attach *a, const struct chain *c)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;
		struct lookup_note note;

		if (lookup_find(&a->control, &c->keys[middle - 1], TIER_HOST, &note))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* What is wrong with a hint, or NULL. */
static const char *hint_wrong(const struct kvpool_hint *h)
{
	if (h->size != sizeof(*h))
		return "size is none that this version knows";
	if (h->priority > PROTO_PRIORITY_MAX)
		return "priority is above 99";
	if (h->ended && (h->reuse_s || h->priority))
		return "what ended has neither a next use nor a priority";
	if (!h->ended && !h->reuse_s && !h->priority)
		return "it says nothing: give reuse_s, priority or ended";
	return NULL;
}

/* m, for the key; the caller knows the number of the namespace. */
static void hint_message(const struct block_key *key, const struct kvpool_hint *h, Kvpool__Hint *m)
{
	m->key = (ProtobufCBinaryData){ sizeof(*key), (uint8_t *)key };
	m->reuse_s = h->reuse_s;
	m->ended = h->ended != 0;
	m->priority = h->priority;
}

/* One that nobody hears of again. */
struct hint_job {
	struct op_job job;
	struct block_key key;
	struct kvpool_hint hint;
};

static const ProtobufCMessage *job_message(struct op_job *job, union op_message *m)
{
	struct hint_job *j = (struct hint_job *)job;

	job->call.op = OP_HINT;
	m->hint = (Kvpool__Hint)KVPOOL__HINT__INIT;
	m->hint.ns = job->number;
	hint_message(&j->key, &j->hint, &m->hint);
	return &m->hint.base;
}

static int job_next(struct op_job *job)
{
	return 0;
}

static void job_drop(struct op_job *job, int err, int sent)
{
	free(job);
}

static const struct op_kind hint_kind = {
	.what = "tell of the future of a prefix",
	.message = job_message,
	.next = job_next,
	.drop = job_drop,
};

static int hint_send(struct kvpool_ns *ns, const struct link *l, const struct block_key *key,
		     const struct kvpool_hint *h, uint64_t deadline)
{
	Kvpool__Hint m = KVPOOL__HINT__INIT;
	uint32_t blocks = 0;
	struct rpc_call call = { .op = OP_HINT, .take = hint_take, .arg = &blocks };
	int err = ns_register(ns, l, deadline, &m.ns);

	if (err < 0)
		return err;
	hint_message(key, h, &m);
	err = link_call(ns->pool, l, hint_kind.what, &call, &m.base, deadline);
	return err < 0 ? err : (int)blocks;
}

/* What the hint is about: the deepest cached block, NULL: none. Returns 0 or -errno. */
static int hint_key(struct kvpool_ns *ns, const struct link *l, const struct chain *c,
		    const struct block_key **ret)
{
	size_t depth;

	if (!(kvpool_features(ns->pool) & KVPOOL_HINTS))
		return handle_error(ns->pool, -EOPNOTSUPP,
				    "cannot tell of the future of a prefix: this kvpoold takes no "
				    "hints; it is older than the library");
	depth = cached_depth(l->attach, c);
	*ret = depth ? &c->keys[depth - 1] : NULL;
	return 0;
}

/* Sends it, and does not wait for the answer. */
static int hint_post(struct kvpool_ns *ns, const struct link *l, const struct block_key *key,
		     const struct kvpool_hint *h, uint64_t deadline)
{
	struct hint_job *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return handle_error(ns->pool, -ENOMEM, "no memory for a hint");
	op_job_init(&j->job, &hint_kind, ns->pool, ns);
	link_dup(l, &j->job.link);
	j->key = *key;
	j->hint = *h;
	pthread_mutex_lock(&ns->pool->ops.lock);
	err = op_start_unheard(&j->job, deadline);
	pthread_mutex_unlock(&ns->pool->ops.lock);
	return err;
}

/* How a hint reaches the daemon. */
enum hint_way {
	HINT_WAIT,
	HINT_START,
};

static int hint_link(struct kvpool_ns *ns, enum hint_way way, uint64_t deadline, struct link *ret)
{
	int err;

	if (way == HINT_WAIT)
		return link_get(ns->pool, LINK_PATIENT, deadline, ret);
	err = link_peek(ns->pool, ret);
	return err == -ENOTCONN ? handle_error(ns->pool, err,
					       "cannot tell of the future of a prefix: there is no "
					       "connection to kvpoold")
				: err;
}

static int hint_run(struct kvpool_ns *ns, const struct chain *c, const struct kvpool_hint *h,
		    enum hint_way way)
{
	uint64_t deadline = handle_deadline(ns->pool);
	const char *wrong = hint_wrong(h);
	const struct block_key *key = NULL;
	struct link l;
	int r;

	if (wrong)
		return handle_error(ns->pool, -EINVAL, "hint: %s", wrong);
	r = hint_link(ns, way, deadline, &l);
	if (r < 0)
		return link_errno(r);
	r = hint_key(ns, &l, c, &key);
	if (!r && key)
		r = way == HINT_WAIT ? hint_send(ns, &l, key, h, deadline)
				     : hint_post(ns, &l, key, h, deadline);
	link_put(ns->pool, &l);
	return r;
}

static int hint_tokens(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		       const struct kvpool_hint *hint, enum hint_way way)
{
	struct chain c;
	int r;

	r = chain_open(&c, ns, tokens, n_tokens, 0, CHAIN_ALL);
	if (r < 0)
		return r;
	r = hint_run(ns, &c, hint, way);
	chain_close(&c);
	return r;
}

static int hint_keys(struct kvpool_ns *ns, const struct kvpool_key *keys, size_t n_keys,
		     const struct kvpool_hint *hint, enum hint_way way)
{
	/* Only read. */
	const struct chain c = { .n = n_keys, .keys = (struct block_key *)(uintptr_t)keys };

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	if (n_keys > CHAIN_BLOCKS_MAX)
		return handle_error(ns->pool, -EINVAL, "%zu blocks in one call: %u are the most",
				    n_keys, CHAIN_BLOCKS_MAX);
	return hint_run(ns, &c, hint, way);
}

static int hint_chain(const struct kvpool_chain *chain, const struct kvpool_hint *hint,
		      enum hint_way way)
{
	struct chain c;
	int r;

	r = prompt_run(chain, 0, &c);
	return r < 0 ? r : hint_run(chain->ns, &c, hint, way);
}

int kvpool_hint(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		const struct kvpool_hint *hint)
{
	return hint_tokens(ns, tokens, n_tokens, hint, HINT_WAIT);
}

int kvpool_hint_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		      const struct kvpool_hint *hint)
{
	return hint_tokens(ns, tokens, n_tokens, hint, HINT_START);
}

int kvpool_hint_keys(struct kvpool_ns *ns, const struct kvpool_key *keys, size_t n_keys,
		     const struct kvpool_hint *hint)
{
	return hint_keys(ns, keys, n_keys, hint, HINT_WAIT);
}

int kvpool_hint_keys_start(struct kvpool_ns *ns, const struct kvpool_key *keys, size_t n_keys,
			   const struct kvpool_hint *hint)
{
	return hint_keys(ns, keys, n_keys, hint, HINT_START);
}

int kvpool_hint_chain(const struct kvpool_chain *chain, const struct kvpool_hint *hint)
{
	return hint_chain(chain, hint, HINT_WAIT);
}

int kvpool_hint_chain_start(const struct kvpool_chain *chain, const struct kvpool_hint *hint)
{
	return hint_chain(chain, hint, HINT_START);
}
