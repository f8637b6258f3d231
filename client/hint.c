/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "client/chain.h"
#include "client/ns.h"
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

static int hint_send(struct kvpool_ns *ns, const struct link *l, const struct block_key *key,
		     const struct kvpool_hint *h, uint64_t deadline)
{
	Kvpool__Hint m = KVPOOL__HINT__INIT;
	uint32_t blocks = 0;
	struct rpc_call call = { .op = OP_HINT, .take = hint_take, .arg = &blocks };
	int err = ns_register(ns, l, deadline, &m.ns);

	if (err < 0)
		return err;
	m.key = (ProtobufCBinaryData){ sizeof(*key), (uint8_t *)key };
	m.reuse_s = h->reuse_s;
	m.ended = h->ended != 0;
	m.priority = h->priority;
	err = link_call(ns->pool, l, "tell of the future of a prefix", &call, &m.base, deadline);
	return err < 0 ? err : (int)blocks;
}

static int hint_link(struct kvpool_ns *ns, const struct link *l, const struct chain *c,
		     const struct kvpool_hint *h, uint64_t deadline)
{
	size_t depth;

	if (!(kvpool_features(ns->pool) & KVPOOL_HINTS))
		return handle_error(ns->pool, -EOPNOTSUPP,
				    "cannot tell of the future of a prefix: this kvpoold takes no "
				    "hints; it is older than the library");
	depth = cached_depth(l->attach, c);
	return depth ? hint_send(ns, l, &c->keys[depth - 1], h, deadline) : 0;
}

static int hint_run(struct kvpool_ns *ns, const struct chain *c, const struct kvpool_hint *h)
{
	uint64_t deadline = handle_deadline(ns->pool);
	const char *wrong = hint_wrong(h);
	struct link l;
	int r;

	if (wrong)
		return handle_error(ns->pool, -EINVAL, "hint: %s", wrong);
	r = link_get(ns->pool, LINK_PATIENT, deadline, &l);
	if (r < 0)
		return link_errno(r);
	r = hint_link(ns, &l, c, h, deadline);
	link_put(ns->pool, &l);
	return r;
}

int kvpool_hint(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
		const struct kvpool_hint *hint)
{
	struct chain c;
	int r;

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	r = chain_open(&c, ns, tokens, n_tokens, 0, CHAIN_ALL);
	if (r < 0)
		return r;
	r = hint_run(ns, &c, hint);
	chain_close(&c);
	return r;
}

int kvpool_hint_keys(struct kvpool_ns *ns, const struct kvpool_key *keys, size_t n_keys,
		     const struct kvpool_hint *hint)
{
	/* Only read. */
	const struct chain c = { .n = n_keys, .keys = (struct block_key *)(uintptr_t)keys };

	if (handle_is_forked(ns->pool))
		return -ESTALE;
	if (n_keys > CHAIN_BLOCKS_MAX)
		return handle_error(ns->pool, -EINVAL, "%zu blocks in one call: %u are the most",
				    n_keys, CHAIN_BLOCKS_MAX);
	return hint_run(ns, &c, hint);
}

int kvpool_hint_chain(const struct kvpool_chain *chain, const struct kvpool_hint *hint)
{
	struct chain c;
	int r;

	if (handle_is_forked(chain->ns->pool))
		return -ESTALE;
	r = prompt_run(chain, 0, &c);
	return r < 0 ? r : hint_run(chain->ns, &c, hint);
}
