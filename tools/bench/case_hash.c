/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash/16, hash/32: the chain of a long prompt, per block, against libcrypto's EVP with a reused
 * context.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "tools/bench/bench.h"

#define BLOCKS 4096u
#define REPEAT 8u

struct hash_case {
	struct kvpool_ns *ns;
	uint32_t block_tokens;
	int32_t tokens[BLOCKS * 32];
	struct kvpool_key keys[BLOCKS];
	EVP_MD *md;
	EVP_MD_CTX *ctx;
};

static double run_chain(void *arg)
{
	struct hash_case *c = arg;
	double t = bench_now();

	for (unsigned int i = 0; i < REPEAT; i++)
		if (kvpool_hash(c->ns, NULL, c->tokens, (size_t)BLOCKS * c->block_tokens, c->keys,
				BLOCKS) != BLOCKS)
			return -EIO;
	return (bench_now() - t) / (REPEAT * BLOCKS);
}

/* The same bytes for each block, each digest part of the next input, one update. */
static double run_evp(void *arg)
{
	struct hash_case *c = arg;
	unsigned char buf[32 + 32 * 4] = { 0 };
	size_t tokens = (size_t)c->block_tokens * 4;
	double t = bench_now();

	for (unsigned int i = 0; i < REPEAT; i++)
		for (unsigned int b = 0; b < BLOCKS; b++) {
			memcpy(buf + 32, &c->tokens[b * c->block_tokens], tokens);
			if (!EVP_DigestInit_ex(c->ctx, NULL, NULL) ||
			    !EVP_DigestUpdate(c->ctx, buf, 32 + tokens) ||
			    !EVP_DigestFinal_ex(c->ctx, buf, NULL))
				return -EIO;
		}
	return (bench_now() - t) / (REPEAT * BLOCKS);
}

static int measure(const struct bench_options *opt, struct hash_case *c, struct kvpool *pool,
		   uint32_t tokens, const char *name)
{
	struct bench_result r = { .name = name,
				  .unit = "ns",
				  .limit = "EVP SHA-256, context reused, one update",
				  .bar = 1.25 };
	int e = bench_namespace(pool, "bench-hash", tokens, 65536, &c->ns);

	if (e < 0)
		return e;
	c->block_tokens = tokens;
	e = bench_measure(&r, opt, run_chain, run_evp, c);
	if (e == 0)
		bench_emit(&r);
	c->ns = kvpool_ns_close(c->ns);
	return e;
}

static int run(const struct bench_options *opt)
{
	static struct hash_case c;
	struct kvpool *pool;
	uint64_t seed = 1;
	int e = bench_offline(&pool);

	if (e < 0)
		return e;
	bench_tokens(&seed, c.tokens, BLOCKS * 32);
	c.md = EVP_MD_fetch(NULL, "SHA256", NULL);
	c.ctx = EVP_MD_CTX_new();
	e = c.md && c.ctx && EVP_DigestInit_ex(c.ctx, c.md, NULL) ? 0 : -ENOMEM;
	if (e == 0)
		e = measure(opt, &c, pool, 16, "hash/16");
	if (e == 0)
		e = measure(opt, &c, pool, 32, "hash/32");
	EVP_MD_CTX_free(c.ctx);
	EVP_MD_free(c.md);
	kvpool_close(pool);
	return e;
}

const struct bench_group bench_hash = { "hash", { "hash/16", "hash/32" }, run };
