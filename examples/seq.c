/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine whose working K/V lies in the pool: a prompt is read, two answers to it are decoded,
 * each in a sequence of its own, and what is full gets its name and is there for the next program.
 *
 * 	cc seq.c $(pkg-config --cflags --libs kvpool) -o seq
 */
#include <kvpool-seq.h>

#include <stdio.h>
#include <string.h>

#define BLOCK_TOKENS 16
#define ROW_BYTES    256 /* K and V of a token, of all layers */
#define BLOCK_BYTES  ((uint64_t)BLOCK_TOKENS * ROW_BYTES)
#define N_PROMPT     70
#define N_ANSWER     50
#define N_MAX        (N_PROMPT + N_ANSWER)

struct conversation {
	struct kvpool_seq *seq;
	int32_t tokens[N_MAX];
	size_t n;
};

static struct kvpool_ns_desc describe(void)
{
	static const unsigned char digest[32] = { 1, 2, 3 }; /* SHA-256 of the weights */
	struct kvpool_ns_desc d;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	d.model = "example-seq";
	d.weights = digest;
	d.type_k = d.type_v = "f16";
	d.n_layers = 1;
	d.n_kv_heads = 1;
	d.head_dim_k = d.head_dim_v = 64;
	d.block_tokens = BLOCK_TOKENS;
	d.block_bytes = BLOCK_BYTES;
	d.layout = "token k v";
	d.engine = "example-1";
	return d;
}

/* Writes the K/V of tokens [from, c->n). Returns 0, or -1 when the pool has no room or is gone. */
static int forward(struct conversation *c, size_t from)
{
	size_t n_blocks = (c->n + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
	unsigned char *block;

	if (kvpool_seq_grow(c->seq, n_blocks) < (long)n_blocks)
		return -1;
	for (size_t t = from; t < c->n; t++) {
		block = kvpool_seq_own_block(c->seq, t / BLOCK_TOKENS);
		memset(block + t % BLOCK_TOKENS * ROW_BYTES, c->tokens[t] & 0xff, ROW_BYTES);
	}
	return 0;
}

/* What attention would read: here it only has to be right. */
static int is_right(const struct conversation *c)
{
	const unsigned char *block;

	for (size_t t = 0; t < c->n; t++) {
		block = kvpool_seq_block(c->seq, t / BLOCK_TOKENS);
		if (block[t % BLOCK_TOKENS * ROW_BYTES] != (c->tokens[t] & 0xff))
			return 0;
	}
	return 1;
}

static int prefill(struct conversation *c)
{
	size_t cached;

	for (c->n = 0; c->n < N_PROMPT; c->n++)
		c->tokens[c->n] = (int32_t)c->n;
	cached = kvpool_seq_acquire(c->seq, c->tokens, c->n);
	printf("%zu tokens of the prompt are cached: %s\n", cached,
	       kvpool_reason_name(kvpool_seq_reason(c->seq)));
	/* Before the fork: then the answers share all full blocks. */
	return forward(c, cached) < 0 ? -1 : kvpool_seq_commit(c->seq, c->tokens, c->n, 0);
}

static int decode(struct conversation *c, int32_t first)
{
	for (int i = 0; i < N_ANSWER; i++) {
		c->tokens[c->n++] = first + i;
		if (forward(c, c->n - 1) < 0)
			return -1;
	}
	/* What another program stored meanwhile takes the place of what was computed. */
	return kvpool_seq_commit(c->seq, c->tokens, c->n, KVPOOL_SWAP);
}

int main(void)
{
	struct kvpool_ns_desc desc = describe();
	struct conversation a, b;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	char text[512];
	int stored[3] = { -1, -1, -1 };

	if (kvpool_connect(NULL, &pool) < 0 || kvpool_ns_open(pool, &desc, &ns) < 0 ||
	    kvpool_seq_new(ns, 64, &a.seq) < 0)
		return 1;
	b.seq = NULL;
	stored[0] = prefill(&a);
	if (stored[0] >= 0) {
		b = a;
		if (kvpool_seq_fork(a.seq, &b.seq) < 0)
			b.seq = NULL;
	}
	if (b.seq) {
		stored[1] = decode(&a, 1000);
		stored[2] = decode(&b, 2000);
	}
	if (stored[1] >= 0 && stored[2] >= 0) {
		printf("stored %d + %d + %d blocks: %s\n", stored[0], stored[1], stored[2],
		       is_right(&a) && is_right(&b) ? "right" : "wrong");
	} else {
		/* An engine would go on in memory of its own. */
		kvpool_error(pool, text, sizeof(text));
		printf("not in the pool: %s\n", text);
	}
	kvpool_seq_free(b.seq);
	kvpool_seq_free(a.seq);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	return 0;
}
