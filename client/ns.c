/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/identity.h"
#include "client/ns.h"
#include "proto/kvpool.pb-c.h"

void ns_put(struct kvpool_ns *ns)
{
	struct kvpool *p;
	struct kvpool_ns *first;

	if (!ns || add_acq_rel(&ns->refs, (uint64_t)-1) != 1)
		return;
	p = ns->pool;
	first = load_relaxed(&p->dead_ns);
	do
		ns->next_dead = first;
	while (!cas_acq_rel(&p->dead_ns, &first, ns));
}

/* Another one of the same descriptor, alive or dead; NULL. */
static struct kvpool_ns *find_twin(const struct kvpool *p, const struct kvpool_ns *ns)
{
	struct kvpool_ns *twin;

	list_for_each(twin, &p->namespaces, link)
		if (!memcmp(&twin->seed, &ns->seed, sizeof(ns->seed)))
			return twin;
	return NULL;
}

/*
 * Lets the daemon forget one that was taken off the list, if the connection that it was opened on
 * still stands. The daemon counts a namespace once for a session, however often it was opened: so
 * the last one of a descriptor closes it, and whoever is left knows what there is to close.
 */
static void tell_closed(struct kvpool *p, const struct kvpool_ns *ns)
{
	uint64_t number = load_relaxed(&ns->number);
	Kvpool__NsClose m = KVPOOL__NS_CLOSE__INIT;
	struct kvpool_ns *twin;

	if (!p->rpc || number >> 32 != p->current->serial || (uint32_t)number == NS_NONE)
		return;
	twin = find_twin(p, ns);
	m.ns = (uint32_t)number;
	if (twin)
		store_relaxed(&twin->number, number);
	else
		rpc_post(p->rpc, OP_NS_CLOSE, &m.base);
}

void ns_bury(struct kvpool *p)
{
	struct kvpool_ns *ns = xchg_acq_rel(&p->dead_ns, NULL), *next;

	for (; ns; ns = next) {
		next = ns->next_dead;
		list_del(&ns->link);
		tell_closed(p, ns);
		free(ns);
	}
}

static int opened_take(void *arg, const ProtobufCMessage *reply)
{
	const Kvpool__NsOpenReply *m = (const Kvpool__NsOpenReply *)reply;
	struct ns_answer *o = arg;

	if (m->ns == NS_NONE)
		return -EPROTO;
	o->ns = m->ns;
	rpc_text(o->field, sizeof(o->field), m->near_field);
	rpc_text(o->here, sizeof(o->here), m->near_here);
	rpc_text(o->there, sizeof(o->there), m->near_there);
	return 0;
}

static void set_number(struct kvpool_ns *ns, const struct attach *a, const struct ns_answer *o)
{
	struct kvpool *p = ns->pool;

	pthread_mutex_lock(&p->lock);
	store_relaxed(&ns->number, (uint64_t)a->serial << 32 | o->ns);
	if (o->field[0])
		snprintf(ns->difference, sizeof(ns->difference),
			 "namespace \"%s\" differs in %s: %s here, %s there", ns->model, o->field,
			 o->here, o->there);
	pthread_mutex_unlock(&p->lock);
	if (o->field[0])
		handle_debug(p, "%s", ns->difference);
}

/* True for an answer of the daemon's to this request, false when there was none. */
static int was_refused(int err)
{
	return err != -ENOTCONN && err != -ETIMEDOUT && err != -EPROTO && err != -ENOMEM;
}

void ns_question_make(struct ns_question *q, struct kvpool_ns *ns, struct rpc_port *port,
		      Kvpool__NsOpen *m)
{
	q->ns = ns;
	q->answer = (struct ns_answer){ .ns = NS_NONE };
	q->call = (struct rpc_call){
		.op = OP_NS_OPEN, .take = opened_take, .arg = &q->answer, .port = port
	};
	m->descriptor = (ProtobufCBinaryData){ ns->desc_bytes, ns->desc };
}

int ns_question_end(struct kvpool_ns *ns, const struct ns_question *q, const struct link *l,
		    int err)
{
	if (err < 0)
		err = link_failed(ns->pool, l->rpc, "open a namespace", &q->call, err);
	if (err == -ETIMEDOUT)
		store_relaxed(&ns->unanswered, l->attach->serial);
	if (err < 0 && !was_refused(err))
		return err;
	set_number(ns, l->attach, &q->answer);
	if (err < 0)
		return handle_error(ns->pool, -ENOENT, "kvpoold refused namespace \"%s\": %s",
				    ns->model,
				    q->call.text[0] ? q->call.text : "it does not say why");
	return 0;
}

static int ask(struct kvpool_ns *ns, const struct link *l, uint64_t deadline, uint32_t *ret_number)
{
	Kvpool__NsOpen m = KVPOOL__NS_OPEN__INIT;
	struct ns_question q;
	int err;

	ns_question_make(&q, ns, NULL, &m);
	err = rpc_call(l->rpc, &q.call, &m.base, deadline);
	err = ns_question_end(ns, &q, l, err);
	if (!err)
		*ret_number = q.answer.ns;
	return err;
}

int ns_register(struct kvpool_ns *ns, const struct link *l, uint64_t deadline, uint32_t *ret_number)
{
	uint32_t n = ns_number(ns, l->attach);

	if (n == NS_NONE)
		return ask(ns, l, deadline, ret_number);
	*ret_number = n;
	return 0;
}

struct kvpool_ns *ns_find_unregistered(struct kvpool *p, const struct attach *a)
{
	struct kvpool_ns *ns, *found = NULL;

	pthread_mutex_lock(&p->lock);
	ns_bury(p);
	list_for_each(ns, &p->namespaces, link) {
		uint64_t refs = load_relaxed(&ns->refs);

		if (load_relaxed(&ns->number) >> 32 == a->serial)
			continue;
		while (refs && !cas_acq_rel(&ns->refs, &refs, refs + 1))
			;
		if (refs) {
			found = ns;
			break;
		}
	}
	pthread_mutex_unlock(&p->lock);
	return found;
}

int ns_register_all(struct kvpool *p, const struct link *l, uint64_t deadline)
{
	struct kvpool_ns *ns;
	uint32_t number;
	int err = 0;

	while (!err && (ns = ns_find_unregistered(p, l->attach))) {
		err = ask(ns, l, deadline, &number);
		if (err == -ENOENT)
			err = 0;
		ns_put(ns);
	}
	return err;
}

static int ns_new(struct kvpool *p, const struct kvpool_ns_desc *desc, struct kvpool_ns **ret)
{
	struct nsdesc_values values;
	struct identity *bytes = malloc(sizeof(*bytes));
	struct kvpool_ns *ns;
	int err;

	if (!bytes)
		return -ENOMEM;
	err = identity_make(p, desc, bytes, &values);
	ns = err < 0 ? NULL : calloc(1, sizeof(*ns) + bytes->n);
	if (!ns) {
		free(bytes);
		return err < 0 ? err : -ENOMEM;
	}
	ns->pool = p;
	ns->refs = 1;
	ns->block_tokens = values.block_tokens;
	ns->block_bytes = values.block_bytes;
	nsdesc_seed(bytes->data, bytes->n, (uint8_t *)ns->seed.w);
	memcpy(ns->model, values.model, sizeof(ns->model));
	ns->desc_bytes = bytes->n;
	memcpy(ns->desc, bytes->data, bytes->n);
	free(bytes);
	*ret = ns;
	return 0;
}

int kvpool_ns_open(struct kvpool *p, const struct kvpool_ns_desc *desc, struct kvpool_ns **ret)
{
	uint64_t deadline;
	struct kvpool_ns *ns;
	struct link l;
	int err;

	if (handle_is_forked(p))
		return -ESTALE;
	deadline = handle_deadline(p);
	err = ns_new(p, desc, &ns);
	if (err < 0)
		return err;
	handle_ref(p);
	pthread_mutex_lock(&p->lock);
	list_add_tail(&p->namespaces, &ns->link);
	if (p->later && p->ns_later == NS_LATER_NONE)
		p->ns_later = NS_LATER_LOOK;
	handle_tidy_locked(p);
	pthread_mutex_unlock(&p->lock);
	*ret = ns;
	if (p->later) {
		loop_ring(&p->ops.loop);
		return 0;
	}
	/* That registers it. What goes wrong is told by lookups, and tried again by other calls. */
	if (link_get(p, LINK_PATIENT, deadline, &l) == 0)
		link_put(p, &l);
	return 0;
}

struct kvpool_ns *kvpool_ns_close(struct kvpool_ns *ns)
{
	struct kvpool *p;

	if (!ns)
		return NULL;
	p = ns->pool;
	ns_put(ns);
	handle_tidy(p);
	handle_unref(p);
	return NULL;
}

const uint8_t *kvpool_ns_seed(const struct kvpool_ns *ns)
{
	return (const uint8_t *)ns->seed.w;
}

size_t kvpool_ns_difference(const struct kvpool_ns *ns, char *buf, size_t n)
{
	struct kvpool *p = ns->pool;
	int length;

	if (handle_is_forked(p))
		return (size_t)snprintf(buf, n, "%s", "");
	pthread_mutex_lock(&p->lock);
	length = snprintf(buf, n, "%s", ns->difference);
	pthread_mutex_unlock(&p->lock);
	return (size_t)length;
}

uint32_t kvpool_ns_block_tokens(const struct kvpool_ns *ns)
{
	return ns->block_tokens;
}

uint64_t kvpool_ns_block_bytes(const struct kvpool_ns *ns)
{
	return ns->block_bytes;
}
