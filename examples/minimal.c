/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a program does: what of a prompt is cached is read in place, the rest is computed
 * and stored. Run it twice: the second run finds what the first one stored.
 *
 * 	cc minimal.c $(pkg-config --cflags --libs kvpool) -o minimal
 */
#include <kvpool.h>

#include <stdio.h>
#include <string.h>

#define BLOCK_TOKENS 16
#define BLOCK_BYTES  4096
#define N_TOKENS     (8 * BLOCK_TOKENS + 5)

/* Whatever must match for two programs to share what they computed. */
static struct kvpool_ns_desc describe(void)
{
	static const unsigned char digest[32] = { 1, 2, 3 }; /* SHA-256 of the weights */
	struct kvpool_ns_desc d;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	d.model = "example";
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

/* An engine would compute K and V here. */
static int compute(void *arg, size_t i, void *block)
{
	printf("computing block %zu\n", i);
	memset(block, (int)i, BLOCK_BYTES);
	return 0;
}

int main(void)
{
	struct kvpool_ns_desc desc = describe();
	int32_t prompt[N_TOKENS];
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	char text[512];
	size_t i, tokens;
	int stored;

	for (i = 0; i < N_TOKENS; i++)
		prompt[i] = (int32_t)i;
	/* These succeed without a daemon too: then all is a miss. */
	if (kvpool_connect(NULL, &pool) < 0 || kvpool_ns_open(pool, &desc, &ns) < 0 ||
	    kvpool_lease_new(pool, 64, &lease) < 0)
		return 1;

	tokens = kvpool_acquire(ns, lease, prompt, N_TOKENS, 0);
	printf("%zu of %d tokens are cached: %s\n", tokens, N_TOKENS,
	       kvpool_reason_name(kvpool_lease_reason(lease)));
	for (i = 0; i < kvpool_lease_blocks(lease); i++)
		if (*(const unsigned char *)kvpool_lease_block(lease, i) != i)
			return 1;
	kvpool_release(lease);

	stored = kvpool_publish(ns, prompt, N_TOKENS, compute, NULL);
	if (stored < 0) {
		kvpool_error(pool, text, sizeof(text));
		printf("nothing was stored: %s\n", text);
	} else {
		printf("stored %d blocks\n", stored);
	}
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
	return 0;
}
