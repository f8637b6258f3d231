/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkvpool, told what to do by a test in Python: a command a line on stdin, an answer a line on
 * stdout. PROMPT are token numbers up to the end of the line.
 *
 *	peer SOCKET MODEL
 *
 *	keys PROMPT			-> the keys of its full blocks, in hex
 *	acquire PROMPT			-> tokens, reason
 *	extend PROMPT			-> the same
 *	bytes I				-> block I of the lease, in hex
 *	release				-> 0
 *	publish SEED PROMPT		-> blocks stored
 *	reserve FIRST PROMPT		-> the verdicts
 *	commit SEED			fills what was granted -> blocks stored, the verdicts
 *	abort				-> 0
 *	wait FIRST TIMEOUT_MS PROMPT	-> tokens
 *	hint REUSE_S PROMPT		-> blocks
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/kvpool-hint.h"
#include "client/kvpool.h"

#define BLOCK_TOKENS 16u
#define BLOCK_BYTES  4096u
#define BLOCKS_MAX   2048u
#define TOKENS_MAX   (BLOCKS_MAX * BLOCK_TOKENS)

struct peer {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *lease;
	struct kvpool_write *write;
	size_t first; /* block of the prompt that the write begins with */
	int32_t prompt[TOKENS_MAX];
	size_t n;
};

/* SHA-256 of "weights", as in the other half of the test. */
static const uint8_t weights[32] = {
	0x9a, 0x12, 0x90, 0x38, 0xd9, 0xa0, 0x0a, 0xed, 0x0c, 0xf6, 0xa7,
	0xea, 0x05, 0x9c, 0xa5, 0x0a, 0x81, 0x34, 0x49, 0x06, 0x1a, 0xb8,
	0x78, 0x48, 0xcf, 0x1a, 0x13, 0xea, 0xfd, 0xf3, 0x3b, 0x2c,
};

static void connect_to(struct peer *p, const char *socket, const char *model)
{
	struct kvpool_options o = {
		.size = sizeof(o), .socket = socket, .name = "peer", .timeout_ms = 20000
	};
	struct kvpool_ns_desc d = {
		.size = sizeof(d),
		.model = model,
		.weights = weights,
		.type_k = "f16",
		.type_v = "f16",
		.n_layers = 1,
		.n_kv_heads = 1,
		.head_dim_k = 64,
		.head_dim_v = 64,
		.block_tokens = BLOCK_TOKENS,
		.block_bytes = BLOCK_BYTES,
		.layout = "k v",
		.engine = "second-1",
	};

	assert(kvpool_connect(&o, &p->pool) == 0);
	assert(kvpool_state(p->pool) == KVPOOL_CONNECTED);
	assert(kvpool_ns_open(p->pool, &d, &p->ns) == 0);
	assert(kvpool_lease_new(p->pool, BLOCKS_MAX, &p->lease) == 0);
}

static void fill(unsigned long seed, size_t i, uint8_t *block)
{
	for (size_t j = 0; j < BLOCK_BYTES; j++)
		block[j] = (uint8_t)(seed * 131 + i * 17 + j * 7);
}

static int fill_block(void *arg, size_t i, void *block)
{
	fill(*(unsigned long *)arg, i, block);
	return 0;
}

static void print_hex(const void *bytes, size_t n)
{
	const uint8_t *b = bytes;

	while (n--)
		printf("%02x", *b++);
}

static void print_keys(const struct peer *p)
{
	static struct kvpool_key keys[BLOCKS_MAX];
	size_t n = kvpool_hash(p->ns, NULL, p->prompt, p->n, keys, BLOCKS_MAX);

	for (size_t i = 0; i < n; i++) {
		print_hex(&keys[i], sizeof(keys[i]));
		printf(" ");
	}
}

static void print_verdicts(const struct peer *p)
{
	for (size_t i = 0; i < kvpool_write_blocks(p->write); i++)
		printf("%d ", kvpool_write_verdict(p->write, i));
}

static void commit(const struct peer *p, unsigned long seed)
{
	size_t n = kvpool_write_blocks(p->write);

	for (size_t i = 0; i < n; i++) {
		void *block = kvpool_write_block(p->write, i);

		if (block)
			fill(seed, p->first + i, block);
	}
	printf("%d ", kvpool_commit(p->write, n));
	print_verdicts(p);
}

/* Numbers before the prompt, of which there are n; and the prompt. */
static void read_numbers(struct peer *p, char *line, unsigned long *numbers, size_t n)
{
	char *end = line;

	for (p->n = 0;; line = end) {
		unsigned long v = strtoul(line, &end, 10);

		if (end == line)
			break;
		if (n) {
			*numbers++ = v;
			n--;
		} else {
			assert(p->n < TOKENS_MAX);
			p->prompt[p->n++] = (int32_t)v;
		}
	}
	assert(!n);
}

static void write_free(struct peer *p)
{
	p->write = kvpool_write_free(p->write);
}

enum command { KEYS, ACQUIRE, EXTEND, BYTES, RELEASE, PUBLISH, RESERVE, COMMIT, ABORT, WAIT, HINT };

static const struct {
	const char *name;
	size_t numbers;
} commands[] = {
	[KEYS] = { "keys", 0 },       [ACQUIRE] = { "acquire", 0 }, [EXTEND] = { "extend", 0 },
	[BYTES] = { "bytes", 1 },     [RELEASE] = { "release", 0 }, [PUBLISH] = { "publish", 1 },
	[RESERVE] = { "reserve", 1 }, [COMMIT] = { "commit", 1 },   [ABORT] = { "abort", 0 },
	[WAIT] = { "wait", 2 },       [HINT] = { "hint", 1 },
};

static void read_command(struct peer *p, enum command c, unsigned long *v)
{
	switch (c) {
	case ACQUIRE:
		printf("%zu ", kvpool_acquire(p->ns, p->lease, p->prompt, p->n, 0));
		printf("%d", kvpool_lease_reason(p->lease));
		break;
	case EXTEND:
		printf("%zu ", kvpool_extend(p->lease, p->prompt, p->n));
		printf("%d", kvpool_lease_reason(p->lease));
		break;
	case BYTES:
		assert(v[0] < kvpool_lease_blocks(p->lease));
		print_hex(kvpool_lease_block(p->lease, v[0]), BLOCK_BYTES);
		break;
	case RELEASE:
		kvpool_release(p->lease);
		printf("0");
		break;
	default:
		print_keys(p);
		break;
	}
}

static void write_command(struct peer *p, enum command c, unsigned long *v)
{
	struct kvpool_hint hint = { .size = sizeof(hint) };

	switch (c) {
	case PUBLISH:
		printf("%d", kvpool_publish(p->ns, p->prompt, p->n, fill_block, &v[0]));
		break;
	case RESERVE:
		write_free(p);
		p->first = v[0];
		assert(kvpool_reserve(p->ns, p->prompt, p->n, p->first, &p->write) >= 0);
		print_verdicts(p);
		break;
	case COMMIT:
		commit(p, v[0]);
		break;
	case ABORT:
		write_free(p);
		printf("0");
		break;
	case WAIT:
		printf("%ld", kvpool_wait(p->ns, p->prompt, p->n, v[0], (unsigned int)v[1]));
		break;
	default:
		hint.reuse_s = (unsigned int)v[0];
		printf("%d", kvpool_hint(p->ns, p->prompt, p->n, &hint));
		break;
	}
}

static void obey(struct peer *p, char *line)
{
	size_t word = strcspn(line, " \n");
	unsigned long v[2];
	size_t c = 0;

	while (strlen(commands[c].name) != word || strncmp(commands[c].name, line, word) != 0)
		assert(++c < sizeof(commands) / sizeof(commands[0]));
	read_numbers(p, line + word, v, commands[c].numbers);
	if (c <= RELEASE)
		read_command(p, c, v);
	else
		write_command(p, c, v);
}

int main(int argc, char **argv)
{
	static struct peer p;
	char *line = NULL;
	size_t room = 0;

	assert(argc == 3);
	connect_to(&p, argv[1], argv[2]);
	while (getline(&line, &room, stdin) > 0) {
		obey(&p, line);
		printf("\n");
		fflush(stdout);
	}
	free(line);
	write_free(&p);
	kvpool_lease_free(p.lease);
	kvpool_ns_close(p.ns);
	kvpool_close(p.pool);
	return 0;
}
