/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/request.h"
#include "daemon/touches.h"

/*
 * What a new namespace does not share with its nearest one: why the same tokens are no hits in it.
 */
static unsigned int ns_difference(struct request *rq, uint32_t ns, uint32_t near,
				  struct nsdesc_difference *ret)
{
	size_t n_here, n_there;
	const uint8_t *here = pool_ns_desc(rq->domain->pool, ns, &n_here);
	const uint8_t *there =
		near == NS_NONE ? NULL : pool_ns_desc(rq->domain->pool, near, &n_there);

	return there ? nsdesc_compare(here, n_here, there, n_there, ret, 1) : 0;
}

static void ns_fail(struct request *rq, int r, const struct nsdesc_values *v)
{
	switch (r) {
	case -ENOSPC:
		request_fail(rq, ERROR_LIMIT, NULL,
			     "namespace \"%s\": all namespaces are taken, and none is empty: flush "
			     "one that is not used",
			     v->model);
		break;
	case -EOPNOTSUPP:
		request_fail(rq, ERROR_BAD_FIELD, "group_rule",
			     "namespace \"%s\": this daemon serves groups of rule \"all\" only",
			     v->model);
		break;
	case -EFBIG:
		request_fail(rq, ERROR_LIMIT, "block_bytes",
			     "namespace \"%s\": not even four blocks of %llu bytes fit the pool: "
			     "start kvpoold with a "
			     "larger --pool-size, or use smaller blocks",
			     v->model, (unsigned long long)v->block_bytes);
		break;
	default:
		log_line(LOG_ERR, "cannot open a namespace", LOG_TEXT("namespace", v->model),
			 LOG_ERRNO(r));
		request_fail(rq, ERROR_INTERNAL, NULL,
			     "namespace \"%s\": no memory for it: try later", v->model);
		break;
	}
}

static void ns_log_created(struct request *rq, uint32_t ns, const struct nsdesc_values *v,
			   const struct nsdesc_difference *diff)
{
	uint8_t seed[NSDESC_SEED_BYTES];
	char hex[LOG_HEX_BYTES];
	size_t n;
	const uint8_t *desc = pool_ns_desc(rq->domain->pool, ns, &n);

	nsdesc_seed(desc, n, seed);
	log_line(LOG_INFO, "namespace opened", LOG_NUMBER("ns", ns),
		 LOG_TEXT("namespace", v->model),
		 LOG_TEXT("fingerprint", log_hex(seed, sizeof(seed), hex)),
		 LOG_NUMBER("block_bytes", v->block_bytes),
		 LOG_TEXT("differs_in", diff ? diff->field : NULL),
		 LOG_TEXT("here", diff ? diff->here : NULL),
		 LOG_TEXT("there", diff ? diff->there : NULL));
}

/* Remembers it in the session, as the last one. */
static void ns_hold(struct request *rq, uint32_t ns)
{
	struct session *s = rq->session;

	if (!session_has_ns(s, ns)) {
		pool_ns_hold(rq->domain->pool, ns);
		s->ns[s->n_ns++] = ns;
		return;
	}
	for (uint32_t i = 0; i + 1 < s->n_ns; i++)
		if (s->ns[i] == ns) {
			s->ns[i] = s->ns[s->n_ns - 1];
			s->ns[s->n_ns - 1] = ns;
		}
}

/* Whether this session has the namespace of a descriptor open. */
static int ns_is_open(const struct request *rq, const ProtobufCBinaryData *desc)
{
	const struct session *s = rq->session;

	for (uint32_t i = 0; i < s->n_ns; i++) {
		size_t n;
		const uint8_t *there = pool_ns_desc(rq->domain->pool, s->ns[i], &n);

		if (there && n == desc->len && !memcmp(there, desc->data, n))
			return 1;
	}
	return 0;
}

static void ns_reply(struct request *rq, uint32_t ns, int created,
		     const struct nsdesc_difference *diff)
{
	Kvpool__NsOpenReply reply = KVPOOL__NS_OPEN_REPLY__INIT;

	reply.ns = ns;
	reply.created = created;
	if (diff) {
		reply.near_field = (char *)diff->field;
		reply.near_here = (char *)diff->here;
		reply.near_there = (char *)diff->there;
	}
	request_reply(rq, &reply.base);
}

static void ns_open(struct request *rq, const ProtobufCBinaryData *desc,
		    const struct nsdesc_values *v)
{
	struct nsdesc_difference diff;
	const struct nsdesc_difference *known = NULL;
	uint32_t ns, near;
	int created, r;

	if (rq->session->n_ns == SESSION_NAMESPACES && !ns_is_open(rq, desc)) {
		request_fail(rq, ERROR_LIMIT, NULL,
			     "namespace \"%s\": this session has %u open already, which is all that"
			     " it may: close one",
			     v->model, SESSION_NAMESPACES);
		return;
	}
	r = pool_ns_open(rq->domain->pool, desc->data, desc->len, v, rq->now, &ns, &created, &near);
	if (r < 0) {
		ns_fail(rq, r, v);
		return;
	}
	rq->domain->changed = 1;
	ns_hold(rq, ns);
	if (created) {
		domain_apply_ns(rq->domain, ns);
		if (ns_difference(rq, ns, near, &diff))
			known = &diff;
		ns_log_created(rq, ns, v, known);
	}
	ns_reply(rq, ns, created, known);
}

void handler_ns_open(struct request *rq)
{
	const Kvpool__NsOpen *m = rq->msg;
	struct nsdesc_values v;
	struct nsdesc_error err;

	if (nsdesc_check(m->descriptor.data, m->descriptor.len, &v, &err) < 0) {
		request_fail(rq, ERROR_BAD_FIELD, err.field ?: "descriptor",
			     "namespace descriptor: %s%s%s", err.field ?: "", err.field ? " " : "",
			     err.why);
		return;
	}
	ns_open(rq, &m->descriptor, &v);
}

/* What it has reserved there stays reserved: a block is committed by its own number. */
void handler_ns_close(struct request *rq)
{
	const Kvpool__NsClose *m = rq->msg;
	Kvpool__NsCloseReply reply = KVPOOL__NS_CLOSE_REPLY__INIT;
	struct session *s = rq->session;
	uint32_t at = 0;

	if (!request_ns(rq, m->ns))
		return;
	/* Lookups in it are only heard of while it is open. */
	touches_drain(s, rq->now);
	while (s->ns[at] != m->ns)
		at++;
	s->n_ns--;
	memmove(&s->ns[at], &s->ns[at + 1], (s->n_ns - at) * sizeof(s->ns[0]));
	pool_ns_drop(rq->domain->pool, m->ns);
	rq->domain->changed = 1;
	request_reply(rq, &reply.base);
}
