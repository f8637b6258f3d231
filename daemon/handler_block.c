/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on blocks: reserve, commit, abort, and the uses that have no ring. */
#include "daemon/request.h"
#include "daemon/touches.h"
#include "shm/index.h"

/* The lists of a reply, of which each GRANTED key has an entry. */
struct granted {
	struct pool_grant grant[FRAME_KEYS_MAX];
	uint32_t desc[FRAME_KEYS_MAX], slot[FRAME_KEYS_MAX];
	uint64_t gen[FRAME_KEYS_MAX];
	uint8_t verdict[FRAME_KEYS_MAX];
};

static void reserve_reply(struct request *rq, struct granted *g, uint32_t n, uint32_t n_granted,
			  uint32_t full)
{
	Kvpool__ReserveReply reply = KVPOOL__RESERVE_REPLY__INIT;

	for (uint32_t i = 0; i < n_granted; i++) {
		g->desc[i] = g->grant[i].desc;
		g->slot[i] = g->grant[i].slot;
		g->gen[i] = g->grant[i].gen;
	}
	reply.verdict = (ProtobufCBinaryData){ n, g->verdict };
	reply.desc = g->desc;
	reply.slot = g->slot;
	reply.gen = g->gen;
	reply.n_desc = reply.n_slot = reply.n_gen = n_granted;
	reply.full = full;
	request_reply(rq, &reply.base);
}

void handler_reserve(struct request *rq)
{
	const Kvpool__Reserve *m = rq->msg;
	struct granted g;
	uint32_t n, n_parent, full;
	const struct block_key *keys = request_keys(&m->keys, &n);
	const struct block_key *parent = request_keys(&m->parent, &n_parent);
	int granted;

	if (!n == !m->unnamed || (m->unnamed && n_parent)) {
		request_fail(rq, ERROR_BAD_FIELD, n || m->unnamed ? "unnamed" : "keys",
			     "reserve: give either keys, with their parent, or unnamed");
		return;
	}
	if (!request_ns(rq, m->ns))
		return;
	domain_drain_touches(rq->domain, rq->now);
	if (n)
		granted = pool_reserve(rq->domain->pool, &rq->session->owner, m->ns,
				       n_parent ? parent : NULL, keys, n, rq->now, g.verdict,
				       g.grant, &full);
	else
		granted = pool_reserve_unnamed(rq->domain->pool, &rq->session->owner, m->ns,
					       m->unnamed, rq->now, g.verdict, g.grant, &full);
	if (granted < 0) {
		request_fail(rq, ERROR_NO_NAMESPACE, "ns", "namespace %u is closed: open it again",
			     m->ns);
		return;
	}
	rq->domain->changed = 1;
	reserve_reply(rq, &g, n + m->unnamed, (uint32_t)granted, full);
}

void handler_commit(struct request *rq)
{
	const Kvpool__Commit *m = rq->msg;
	Kvpool__CommitReply reply = KVPOOL__COMMIT_REPLY__INIT;
	struct pool_names names = { .desc = m->desc, .gen = m->gen, .crc = m->crc };
	uint8_t verdict[FRAME_KEYS_MAX];
	uint32_t n_parent;

	names.keys = request_keys(&m->keys, &names.n);
	names.parent = request_keys(&m->parent, &n_parent);
	if (names.n ? names.n != m->n_desc : n_parent) {
		request_fail(rq, ERROR_BAD_FIELD, "keys",
			     "commit: give a key for each block, or neither keys nor parent");
		return;
	}
	if (!n_parent)
		names.parent = NULL;
	if (names.n)
		pool_commit_named(rq->domain->pool, &rq->session->owner, &names, rq->now, verdict);
	for (size_t i = 0; !names.n && i < m->n_desc; i++)
		verdict[i] = (uint8_t)pool_commit(rq->domain->pool, &rq->session->owner, m->desc[i],
						  m->gen[i], m->crc[i], rq->now);
	rq->domain->changed = 1;
	reply.verdict = (ProtobufCBinaryData){ m->n_desc, verdict };
	request_reply(rq, &reply.base);
}

void handler_abort(struct request *rq)
{
	const Kvpool__Abort *m = rq->msg;
	Kvpool__AbortReply reply = KVPOOL__ABORT_REPLY__INIT;
	uint8_t verdict[FRAME_KEYS_MAX];

	for (size_t i = 0; i < m->n_desc; i++)
		verdict[i] = (uint8_t)pool_abort(rq->domain->pool, &rq->session->owner, m->desc[i],
						 m->gen[i]);
	rq->domain->changed = 1;
	reply.verdict = (ProtobufCBinaryData){ m->n_desc, verdict };
	request_reply(rq, &reply.base);
}

void handler_touch(struct request *rq)
{
	const Kvpool__Touch *m = rq->msg;
	Kvpool__TouchReply reply = KVPOOL__TOUCH_REPLY__INIT;
	const struct control *c = pool_control(rq->domain->pool);
	uint32_t n, desc = DESC_NONE;
	const struct block_key *keys = request_keys(&m->keys, &n);
	uint64_t word;

	if (!request_ns(rq, m->ns))
		return;
	reply.present = pool_present(rq->domain->pool, m->ns, keys, n);
	if (reply.present)
		(void)index_probe(c, &keys[reply.present - 1], &desc, &word);
	touches_tell(rq->session, m->ns, keys, n, reply.present, desc, rq->now);
	request_reply(rq, &reply.base);
}

/* Nothing lies beyond memory: there is no disk tier and no remote one. */
void handler_locate(struct request *rq)
{
	const Kvpool__Locate *m = rq->msg;
	Kvpool__LocateReply reply = KVPOOL__LOCATE_REPLY__INIT;

	if (!request_ns(rq, m->ns))
		return;
	request_reply(rq, &reply.base);
}
