/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that does what a test in Python tells it, a command a line on stdin, an answer a line on
 * stdout:
 *
 *	ctl_client SOCKET NAME
 *
 *	open MODEL BLOCK_BYTES		opens a namespace; the commands below go to the last one
 *	publish CHAIN BLOCKS		-> blocks stored
 *	acquire CHAIN BLOCKS		-> blocks found, and held until release
 *	reserve CHAIN BLOCKS		-> blocks granted, and neither committed nor given back
 *	release
 *	tokens CHAIN BLOCKS FILE	writes the token ids of a chain -> how many
 *	connect N			opens N more connections
 */
#undef NDEBUG
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/pattern.h"

#define BLOCKS_MAX	1024u
#define CONNECTIONS_MAX 256u

struct actor {
	const char *socket, *name;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_write *write;
	struct kvpool *more[CONNECTIONS_MAX];
	unsigned int n_more;
};

static long reserve(struct actor *a, unsigned long chain, unsigned long blocks)
{
	int32_t tokens[BLOCKS_MAX * PATTERN_BLOCK_TOKENS + 1];

	assert(blocks <= BLOCKS_MAX && !a->write);
	pattern_tokens(chain, blocks, tokens);
	return kvpool_reserve(a->ns, tokens, blocks * PATTERN_BLOCK_TOKENS, 0, &a->write);
}

static long connect_more(struct actor *a, unsigned long n)
{
	while (n--) {
		assert(a->n_more < CONNECTIONS_MAX);
		a->more[a->n_more++] = pattern_connect(a->socket, a->name);
	}
	return a->n_more;
}

static long write_tokens(unsigned long chain, unsigned long blocks, const char *path)
{
	int32_t tokens[BLOCKS_MAX * PATTERN_BLOCK_TOKENS + 1];
	size_t n = blocks * PATTERN_BLOCK_TOKENS + 1;
	FILE *f = fopen(path, "we");

	assert(f && blocks <= BLOCKS_MAX);
	pattern_tokens(chain, blocks, tokens);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%" PRId32 "\n", tokens[i]);
	assert(fclose(f) == 0);
	return (long)n;
}

/* The number to answer, negative for a failure. */
static long obey(struct actor *a, const char *line)
{
	unsigned long x = 0, y = 0;
	char word[16], model[64], path[256];

	if (sscanf(line, "open %63s %lu", model, &y) == 2) {
		kvpool_ns_close(a->ns);
		a->ns = pattern_ns(a->pool, model, y);
		return 0;
	}
	if (sscanf(line, "tokens %lu %lu %255s", &x, &y, path) == 3)
		return write_tokens(x, y, path);
	assert(sscanf(line, "%15s %lu %lu", word, &x, &y) >= 1);
	if (!strcmp(word, "publish"))
		return pattern_publish(a->ns, x, y);
	if (!strcmp(word, "acquire"))
		return (long)pattern_acquire(a->ns, a->lease, x, y);
	if (!strcmp(word, "reserve"))
		return reserve(a, x, y);
	if (!strcmp(word, "connect"))
		return connect_more(a, x);
	assert(!strcmp(word, "release"));
	kvpool_release(a->lease);
	return 0;
}

int main(int argc, char **argv)
{
	struct actor a = { 0 };
	char line[512];

	assert(argc == 3);
	a.socket = argv[1];
	a.name = argv[2];
	a.pool = pattern_connect(a.socket, a.name);
	assert(kvpool_lease_new(a.pool, BLOCKS_MAX, &a.lease) == 0);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%ld\n", obey(&a, line));
		fflush(stdout);
	}
	while (a.n_more)
		kvpool_close(a.more[--a.n_more]);
	kvpool_write_free(a.write);
	kvpool_lease_free(a.lease);
	kvpool_ns_close(a.ns);
	kvpool_close(a.pool);
	return 0;
}
