/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same pool in a loop of libuv, which goes on when the daemon dies: a lookup every 20 ms, a
 * request for what misses, and a line for each change. With a number as argument it ends after so
 * many rounds.
 *
 * 	cc async_uv.c $(pkg-config --cflags --libs kvpool libuv) -o async_uv
 */
#include <kvpool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define BLOCK_TOKENS 16
#define BLOCK_BYTES  4096
#define BLOCKS       4
#define N_TOKENS     (BLOCKS * BLOCK_TOKENS + 1) /* the last one is always computed */

struct program {
	uv_poll_t poll;
	uv_timer_t timer;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_write *write;
	int32_t prompt[N_TOKENS];
	int busy, rounds;
	const char *said;
};

static struct kvpool_ns_desc describe(void)
{
	static const unsigned char digest[32] = { 1, 2, 3 };
	struct kvpool_ns_desc d;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	d.model = "example-uv";
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

/* Each news once. */
static void say(struct program *p, const char *what)
{
	if (!p->said || strcmp(p->said, what))
		printf("%s\n", what);
	fflush(stdout);
	p->said = what;
}

static void on_committed(void *arg, struct kvpool_op *op)
{
	struct program *p = arg;

	p->busy = 0;
	if (kvpool_commit_finish(op) > 0)
		say(p, "stored");
	p->write = kvpool_write_free_start(p->write);
}

static void on_reserved(void *arg, struct kvpool_op *op)
{
	struct program *p = arg;

	p->busy = 0;
	if (kvpool_reserve_finish(op, &p->write) < 0)
		return; /* a miss: nothing else is lost */
	for (size_t i = 0; i < BLOCKS; i++)
		if (kvpool_write_block(p->write, i))
			memset(kvpool_write_block(p->write, i), (int)i, BLOCK_BYTES);
	p->busy = kvpool_commit_start(p->write, BLOCKS, 0, on_committed, p, &op) == 0;
	if (!p->busy)
		p->write = kvpool_write_free_start(p->write);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct program *p = poll->data;

	kvpool_dispatch(p->pool);
}

static void on_time(uv_timer_t *timer)
{
	struct program *p = timer->data;
	/* While there is no daemon, it goes on finding what the last one had. */
	size_t tokens = kvpool_acquire(p->ns, p->lease, p->prompt, N_TOKENS, 0);
	struct kvpool_op *op;

	kvpool_release(p->lease);
	if (kvpool_state(p->pool) != KVPOOL_CONNECTED)
		say(p, "no daemon");
	else if (tokens)
		say(p, "cached");
	else if (!p->busy)
		p->busy = kvpool_reserve_start(p->ns, p->prompt, N_TOKENS, 0, 0, on_reserved, p,
					       &op) == 0;
	if (p->rounds && !--p->rounds)
		uv_stop(timer->loop);
}

int main(int argc, char **argv)
{
	struct kvpool_ns_desc desc = describe();
	static struct program p;
	uv_loop_t *loop = uv_default_loop();

	p.rounds = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < N_TOKENS; i++)
		p.prompt[i] = i;
	if (kvpool_connect(NULL, &p.pool) < 0 || kvpool_ns_open(p.pool, &desc, &p.ns) < 0 ||
	    kvpool_lease_new(p.pool, BLOCKS, &p.lease) < 0)
		return 1;
	p.poll.data = p.timer.data = &p;
	uv_poll_init(loop, &p.poll, kvpool_fd(p.pool));
	uv_poll_start(&p.poll, UV_READABLE, on_readable);
	uv_timer_init(loop, &p.timer);
	uv_timer_start(&p.timer, on_time, 0, 20);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_poll_stop(&p.poll); /* before the descriptor goes */
	kvpool_lease_free(p.lease);
	kvpool_ns_close(p.ns);
	kvpool_close(p.pool);
	return 0;
}
