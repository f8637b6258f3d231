/* SPDX-License-Identifier: Apache-2.0 */
/* Asking how much of a prompt lies in tiers that are not memory. */
#include <errno.h>

#include "client/keys_job.h"
#include "client/prompt.h"

/* What one LOCATE said. */
struct located {
	uint32_t asked, found;
};

static int located_take(void *arg, const ProtobufCMessage *reply)
{
	const Kvpool__LocateReply *m = (const Kvpool__LocateReply *)reply;
	struct located *l = arg;

	if (m->found > l->asked)
		return -EPROTO;
	l->found = m->found;
	return 0;
}

/* Returns how many of the keys, from the first on. */
static long locate_chain(struct kvpool_ns *ns, const struct link *l, const struct chain *c)
{
	Kvpool__Locate m = KVPOOL__LOCATE__INIT;
	struct located part = { 0 };
	size_t at = 0;
	int err = ns_register(ns, l, handle_deadline(ns->pool), &m.ns);

	for (; !err && at < c->n && part.found == part.asked; at += part.found) {
		struct rpc_call call = { .op = OP_LOCATE, .take = located_take, .arg = &part };

		part.asked = (uint32_t)MIN(c->n - at, (size_t)l->max_keys);
		m.keys = (ProtobufCBinaryData){ part.asked * sizeof(c->keys[0]),
						(uint8_t *)c->keys[at].w };
		err = link_call(ns->pool, l, "locate blocks", &call, &m.base,
				handle_deadline(ns->pool));
	}
	return err < 0 ? err : (long)at;
}

long kvpool_locate(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens, size_t first_block)
{
	struct kvpool *p = ns->pool;
	struct chain c;
	struct link l;
	long n;

	n = chain_open(&c, ns, tokens, n_tokens, first_block, CHAIN_ALL);
	if (n < 0)
		return n;
	n = c.n ? link_get(p, LINK_PATIENT, handle_deadline(p), &l) : 0;
	if (n < 0) {
		n = link_errno((int)n);
	} else if (c.n) {
		n = locate_chain(ns, &l, &c);
		link_put(p, &l);
	}
	chain_close(&c);
	return n < 0 ? n : n * (long)ns->block_tokens;
}

static int job_take(void *arg, const ProtobufCMessage *reply)
{
	struct keys_job *j = arg;
	struct located l = { .asked = j->asked };
	int err = located_take(&l, reply);

	j->good = l.found;
	return err;
}

static const ProtobufCMessage *job_message(struct op_job *job, union op_message *m)
{
	struct keys_job *j = (struct keys_job *)job;

	job->call.op = OP_LOCATE;
	job->call.take = job_take;
	m->locate = (Kvpool__Locate)KVPOOL__LOCATE__INIT;
	m->locate.ns = job->number;
	m->locate.keys = keys_job_part(j);
	return &m->locate.base;
}

static long job_result(struct op_job *job)
{
	struct keys_job *j = (struct keys_job *)job;

	return (long)(j->at * job->ns->block_tokens);
}

static const struct op_kind locate_kind = {
	.what = "locate blocks",
	.message = job_message,
	.next = keys_job_next,
	.result = job_result,
	.drop = keys_job_drop,
};

/* Takes the keys of c over. */
static int locate_start(struct kvpool_ns *ns, struct chain *c, const struct op_start *s)
{
	struct keys_job *j = keys_job_new(&locate_kind, ns, c);

	return j ? op_start(&j->job, !j->c.n, s) : -ENOMEM;
}

int kvpool_locate_start(struct kvpool_ns *ns, const int32_t *tokens, size_t n_tokens,
			size_t first_block, unsigned timeout_ms, kvpool_done done, void *arg,
			struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(ns->pool, timeout_ms), done, arg, ret };
	struct chain c;
	int err;

	err = chain_open(&c, ns, tokens, n_tokens, first_block, CHAIN_ALL);
	return err < 0 ? err : locate_start(ns, &c, &s);
}

int kvpool_locate_chain_start(const struct kvpool_chain *chain, size_t first_block,
			      unsigned timeout_ms, kvpool_done done, void *arg,
			      struct kvpool_op **ret)
{
	const struct op_start s = { op_deadline(chain->ns->pool, timeout_ms), done, arg, ret };
	struct chain c;
	int err;

	err = prompt_copy(chain, first_block, &c);
	return err < 0 ? err : locate_start(chain->ns, &c, &s);
}

long kvpool_locate_finish(struct kvpool_op *op)
{
	return op_finish(op, &locate_kind, NULL);
}
