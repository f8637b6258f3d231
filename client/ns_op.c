/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "client/ns_op.h"
#include "client/op.h"

static void set_later(struct kvpool *p, enum ns_later later)
{
	pthread_mutex_lock(&p->lock);
	p->ns_later = later;
	pthread_mutex_unlock(&p->lock);
}

/* On to the next one; to the same one when it had no answer in time. */
static void register_drop(struct op_job *job, int err, int sent)
{
	struct kvpool *p = job->pool;

	free(job);
	if (handle_is_forked(p))
		return;
	set_later(p, NS_LATER_LOOK);
	/* What never set out is tried when there is something else to do. */
	if (err != -EAGAIN && err != -ENOMEM)
		loop_ring(&p->ops.loop);
}

/* It asks its question, as every job does about a namespace, and has no message of its own. */
static const struct op_kind register_kind = {
	.what = "open a namespace",
	.drop = register_drop,
};

static void ask(struct kvpool_ns *ns, const struct link *l)
{
	struct op_job *j = calloc(1, sizeof(*j));

	if (!j)
		return;
	op_job_init(j, &register_kind, ns->pool, ns);
	link_dup(l, &j->link);
	set_later(ns->pool, NS_LATER_ASKED);
	(void)op_start_unheard(j, handle_deadline(ns->pool));
}

void ns_op_register(struct kvpool *p)
{
	struct kvpool_ns *ns;
	struct link l;

	if (link_peek(p, &l) < 0)
		return;
	set_later(p, NS_LATER_NONE);
	ns = ns_find_unregistered(p, l.attach);
	if (ns)
		ask(ns, &l);
	ns_put(ns);
	link_put(p, &l);
}
