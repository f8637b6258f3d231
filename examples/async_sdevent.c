/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same pool in a loop of sd-event: one descriptor, one handler, callbacks for what is done. A
 * second program may compute the same prompt: then this one waits for it, and computes nothing.
 *
 * 	cc async_sdevent.c $(pkg-config --cflags --libs kvpool libsystemd) -o async_sdevent
 */
#include <kvpool.h>

#include <stdio.h>
#include <string.h>
#include <systemd/sd-event.h>

#define BLOCK_TOKENS 16
#define BLOCK_BYTES  4096
#define BLOCKS       4
#define N_TOKENS     (BLOCKS * BLOCK_TOKENS)

struct program {
	sd_event *event;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_write *write;
	int32_t prompt[N_TOKENS];
};

static struct kvpool_ns_desc describe(void)
{
	static const unsigned char digest[32] = { 1, 2, 3 };
	struct kvpool_ns_desc d;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	d.model = "example-sdevent";
	d.weights = digest;
	d.type_k = d.type_v = "f16";
	d.n_layers = 2;
	d.n_kv_heads = 1;
	d.head_dim_k = d.head_dim_v = 32;
	d.block_tokens = BLOCK_TOKENS;
	d.block_bytes = BLOCK_BYTES;
	d.layout = "plain";
	d.engine = "example-1";
	return d;
}

static void finish(struct program *p, const char *what, long n)
{
	char text[512];

	kvpool_error(p->pool, text, sizeof(text));
	printf("%s %ld%s%s\n", what, n, n < 0 ? ": " : "", n < 0 ? text : "");
	p->write = kvpool_write_free_start(p->write);
	sd_event_exit(p->event, 0);
}

static void on_waited(void *arg, struct kvpool_op *op)
{
	finish(arg, "tokens that another program computed:", kvpool_wait_finish(op));
}

static void on_committed(void *arg, struct kvpool_op *op)
{
	finish(arg, "blocks stored:", kvpool_commit_finish(op));
}

static void on_reserved(void *arg, struct kvpool_op *op)
{
	struct program *p = arg;
	int n = kvpool_reserve_finish(op, &p->write);

	if (n < 0) {
		finish(p, "blocks reserved:", n);
		return;
	}
	if (kvpool_write_verdict(p->write, 0) == KVPOOL_BUSY) {
		/* Somebody else is at it. */
		n = kvpool_wait_start(p->ns, p->prompt, N_TOKENS, 0, 10000, on_waited, p, &op);
	} else {
		for (size_t i = 0; i < BLOCKS; i++)
			if (kvpool_write_block(p->write, i))
				memset(kvpool_write_block(p->write, i), (int)i, BLOCK_BYTES);
		n = kvpool_commit_start(p->write, BLOCKS, 0, on_committed, p, &op);
	}
	if (n < 0)
		finish(p, "went no further:", n);
}

static int on_pool(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct program *p = arg;

	return kvpool_dispatch(p->pool) < 0 ? -1 : 0;
}

int main(void)
{
	struct kvpool_ns_desc desc = describe();
	struct program p = { .event = NULL };
	sd_event_source *source = NULL;
	struct kvpool_op *op;
	int r;

	for (int i = 0; i < N_TOKENS; i++)
		p.prompt[i] = i;
	if (kvpool_connect(NULL, &p.pool) < 0 || kvpool_ns_open(p.pool, &desc, &p.ns) < 0 ||
	    sd_event_default(&p.event) < 0)
		return 1;
	if (sd_event_add_io(p.event, &source, kvpool_fd(p.pool), 1 /* EPOLLIN */, on_pool, &p) < 0)
		return 1;
	r = kvpool_reserve_start(p.ns, p.prompt, N_TOKENS, 0, 0, on_reserved, &p, &op);
	if (r < 0)
		finish(&p, "could not ask:", r);
	r = sd_event_loop(p.event);
	/* Before the descriptor goes. */
	sd_event_source_unref(source);
	sd_event_unref(p.event);
	kvpool_ns_close(p.ns);
	kvpool_close(p.pool);
	return r < 0;
}
