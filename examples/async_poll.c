/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that must not block, with nothing but poll(): several requests at once, each of which
 * reserves, fills and commits its blocks. No callbacks: the loop asks what is done.
 *
 * 	cc async_poll.c $(pkg-config --cflags --libs kvpool) -o async_poll
 */
#include <kvpool.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_TOKENS 16
#define BLOCK_BYTES  4096
#define BLOCKS       4
#define N_TOKENS     (BLOCKS * BLOCK_TOKENS)
#define REQUESTS     8

struct request {
	int32_t prompt[N_TOKENS];
	struct kvpool_write *write; /* NULL: being reserved */
	int stored;                 /* or why not */
	int over;
};

static struct kvpool_ns_desc describe(void)
{
	static const unsigned char digest[32] = { 1, 2, 3 };
	struct kvpool_ns_desc d;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	d.model = "example-poll";
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

static void end(struct request *r, int stored)
{
	/* Gives back what was granted and not stored, without waiting for that. */
	r->write = kvpool_write_free_start(r->write);
	r->stored = stored;
	r->over = 1;
}

static void begin(struct request *r, struct kvpool_ns *ns)
{
	struct kvpool_op *op;
	int err = kvpool_reserve_start(ns, r->prompt, N_TOKENS, 0, 500, NULL, r, &op);

	/* No daemon, say: the engine goes on without the cache. */
	if (err < 0)
		end(r, err);
}

/* One step of a request: its operation is done. */
static void step(struct request *r, struct kvpool_op *op)
{
	int n;

	if (r->write) {
		end(r, kvpool_commit_finish(op));
		return;
	}
	n = kvpool_reserve_finish(op, &r->write);
	if (n <= 0) {
		end(r, n);
		return;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (kvpool_write_block(r->write, i))
			memset(kvpool_write_block(r->write, i), (int)i, BLOCK_BYTES);
	n = kvpool_commit_start(r->write, BLOCKS, 500, NULL, r, &op);
	if (n < 0)
		end(r, n);
}

int main(void)
{
	static struct request requests[REQUESTS];
	struct kvpool_ns_desc desc = describe();
	struct kvpool_op *op;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct pollfd p = { .events = POLLIN };
	int left = REQUESTS, stored = 0;

	if (kvpool_connect(NULL, &pool) < 0 || kvpool_ns_open(pool, &desc, &ns) < 0)
		return 1;
	p.fd = kvpool_fd(pool);
	if (p.fd < 0)
		return 1;
	for (int r = 0; r < REQUESTS; r++) {
		for (int i = 0; i < N_TOKENS; i++)
			requests[r].prompt[i] = 1000 * r + i;
		begin(&requests[r], ns);
		left -= requests[r].over;
	}
	while (left) {
		/* An engine would do its own work here, and only look (a time-out of 0). */
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return 1;
		kvpool_dispatch(pool);
		while ((op = kvpool_next_done(pool)) != NULL) {
			struct request *r = kvpool_op_arg(op);

			step(r, op);
			left -= r->over;
		}
	}
	for (int r = 0; r < REQUESTS; r++)
		stored += requests[r].stored > 0 ? requests[r].stored : 0;
	printf("stored %d blocks of %d requests\n", stored, REQUESTS);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	return 0;
}
