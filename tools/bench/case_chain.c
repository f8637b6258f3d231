/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain/turn: the keys of a conversation of 30 000 tokens after a turn of 200 more, against hashing
 * 200 tokens that stand alone.
 */
#include <errno.h>

#include "tools/bench/bench.h"

#define HISTORY      30000u
#define TURN         200u
#define BLOCK_TOKENS 16u
#define TURNS        256u

struct chain_case {
	struct kvpool_ns *ns;
	struct kvpool_chain *chain;
	int32_t history[HISTORY], turn[TURN];
	struct kvpool_key keys[TURN / BLOCK_TOKENS];
};

/* Each turn is taken back, so that the history stays as long as it is. */
static double run_turn(void *arg)
{
	struct chain_case *c = arg;
	double t = bench_now();

	for (unsigned int i = 0; i < TURNS; i++)
		if (kvpool_chain_append(c->chain, c->turn, TURN) < 0 ||
		    kvpool_chain_truncate(c->chain, HISTORY) < 0)
			return -ENOMEM;
	return (bench_now() - t) / TURNS;
}

static double run_alone(void *arg)
{
	struct chain_case *c = arg;
	double t = bench_now();

	for (unsigned int i = 0; i < TURNS; i++)
		if (kvpool_hash(c->ns, NULL, c->turn, TURN, c->keys, TURN / BLOCK_TOKENS) !=
		    TURN / BLOCK_TOKENS)
			return -EIO;
	return (bench_now() - t) / TURNS;
}

static int measure(const struct bench_options *opt, struct chain_case *c)
{
	struct bench_result r = {
		.name = "chain/turn", .unit = "us", .limit = "hashing 200 tokens", .bar = 1.25
	};
	int e = kvpool_chain_append(c->chain, c->history, HISTORY);

	if (e == 0)
		e = bench_measure(&r, opt, run_turn, run_alone, c);
	if (e == 0)
		bench_emit(&r);
	return e;
}

static int run(const struct bench_options *opt)
{
	static struct chain_case c;
	struct kvpool *pool;
	uint64_t seed = 1;
	int e = bench_offline(&pool);

	if (e < 0)
		return e;
	bench_tokens(&seed, c.history, HISTORY);
	bench_tokens(&seed, c.turn, TURN);
	e = bench_namespace(pool, "bench-chain", BLOCK_TOKENS, 65536, &c.ns);
	if (e == 0)
		e = kvpool_chain_new(c.ns, &c.chain);
	if (e == 0)
		e = measure(opt, &c);
	c.chain = kvpool_chain_free(c.chain);
	c.ns = kvpool_ns_close(c.ns);
	kvpool_close(pool);
	return e;
}

const struct bench_group bench_turn = { "chain", { "chain/turn" }, run };
