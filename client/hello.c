/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "client/hello.h"
#include "proto/kvpool.pb-c.h"

static int hello_take(void *arg, const ProtobufCMessage *reply)
{
	const Kvpool__HelloReply *m = (const Kvpool__HelloReply *)reply;
	struct hello *h = arg;

	if (m->protocol < PROTOCOL_MIN || m->protocol > PROTOCOL_MAX || !m->max_keys)
		return -EPROTO;
	h->offer = (struct attach_offer){
		.control_fd = -1,
		.pool_fd = -1,
		.region_fd = -1,
		.control_bytes = m->control_bytes,
		.pool_bytes = m->pool_bytes,
		.region_bytes = m->region_bytes,
		.pool_writable = m->pool_writable,
	};
	h->session = m->session;
	h->max_keys = MIN(m->max_keys, FRAME_KEYS_MAX);
	h->features = m->features & HANDLE_FEATURES;
	rpc_text(h->daemon, sizeof(h->daemon), m->daemon);
	return 0;
}

/* Why the connection ended: what the daemon said when it did, or what this process lacks. */
static int look_up_end(struct rpc *r, char *text, size_t size)
{
	const char *why;
	int err = rpc_status(r, &why);

	if (err == -ECONNRESET || err == -EPROTO || err == -EMSGSIZE)
		return err == -ECONNRESET ? -ENOTCONN : -EPROTO;
	snprintf(text, size, "%s", why);
	return err == -ESHUTDOWN ? -ENOTCONN : err;
}

static const char *explain(int err, const struct rpc_call *call)
{
	if (call->text[0])
		return call->text;
	switch (err) {
	case -ETIMEDOUT:
		return "it does not answer (is it stopped, or very busy?)";
	case -ENOTCONN:
		return "it closed the connection (its log says why)";
	default:
		return "its answer makes no sense (is this the socket of kvpoold?)";
	}
}

void hello_init(struct hello *h)
{
	*h = (struct hello){ .offer = { .control_fd = -1, .pool_fd = -1, .region_fd = -1 } };
}

void hello_ask(struct kvpool *p, struct hello *h, struct rpc_call *call, Kvpool__Hello *m)
{
	*call = (struct rpc_call){ .op = OP_HELLO, .take = hello_take, .arg = h };
	m->protocol_min = PROTOCOL_MIN;
	m->protocol_max = PROTOCOL_MAX;
	m->layout = LAYOUT_VERSION;
	m->library = (char *)KVPOOL_VERSION;
	m->name = p->name;
	m->hazards = 2 * p->max_leases;
}

int hello_explain(struct rpc *r, struct rpc_call *call, int err, char text[RPC_TEXT_MAX])
{
	if (err == -ENOTCONN)
		err = look_up_end(r, call->text, sizeof(call->text));
	snprintf(text, RPC_TEXT_MAX, "%s", explain(err, call));
	return err;
}

void hello_take_fds(struct hello *h, struct rpc_call *call)
{
	h->offer.control_fd = call->fds[0];
	h->offer.pool_fd = call->fds[1];
	h->offer.region_fd = call->fds[2];
	call->n_fds = 0;
}

void hello_close(struct hello *h)
{
	h->offer.control_fd = close_fd(h->offer.control_fd);
	h->offer.pool_fd = close_fd(h->offer.pool_fd);
	h->offer.region_fd = close_fd(h->offer.region_fd);
}
