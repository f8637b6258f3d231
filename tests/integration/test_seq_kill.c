/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two engines that keep their whole working K/V in the pool: they prefill and decode the same
 * conversations, store them, fork, cut and free, and check every byte of every block that they
 * hold. Again and again one of them is killed, wherever it is, and another one takes its place. At
 * the end nothing is left but the cache, and that is right.
 *
 * 	test_seq_kill [KILLS [SEED]]
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "client/kvpool-seq.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"

#define BLOCK   8192u
#define BT      PATTERN_BLOCK_TOKENS
#define ENGINES 2u
#define SEQS    12u
#define CHAINS  30u
#define DEPTH   40u /* of a conversation, at most */

struct conversation {
	struct kvpool_seq *seq; /* NULL: none */
	uint64_t chain;
	size_t n; /* blocks with their bytes written, the last one counts as not full */
};

struct engine {
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct conversation c[SEQS];
	uint64_t rng;
	int32_t tokens[DEPTH * BT + 1];
	int progress;
};

static uint32_t roll(struct engine *e, uint32_t n)
{
	e->rng = mix64(e->rng + 0x9e3779b97f4a7c15ull);
	return (uint32_t)(e->rng >> 33) % n;
}

static void check_all(const struct conversation *c)
{
	for (size_t i = 0; i < c->n; i++)
		assert(pattern_check(c->chain, i, kvpool_seq_block(c->seq, i), BLOCK));
}

/* Makes it want blocks long, as far as there is room, and computes what is not there. */
static void compute(struct conversation *c, size_t want)
{
	long n = kvpool_seq_grow(c->seq, want);

	assert(n >= (long)c->n);
	for (; c->n < (size_t)n; c->n++) {
		void *block = kvpool_seq_own_block(c->seq, c->n);

		assert(block);
		pattern_fill(c->chain, c->n, block, BLOCK);
	}
}

static void store(struct engine *e, struct conversation *c, unsigned flags)
{
	if (c->n < 2)
		return;
	pattern_tokens(c->chain, DEPTH, e->tokens);
	assert(kvpool_seq_commit(c->seq, e->tokens, (c->n - 1) * BT, flags) >= 0);
}

static void drop(struct conversation *c)
{
	c->seq = kvpool_seq_free(c->seq);
	c->n = 0;
}

static void begin(struct engine *e, struct conversation *c)
{
	if (!c->seq)
		assert(kvpool_seq_new(e->ns, DEPTH, &c->seq) == 0);
	c->chain = roll(e, CHAINS);
	pattern_tokens(c->chain, DEPTH, e->tokens);
	c->n = kvpool_seq_acquire(c->seq, e->tokens, (1 + roll(e, DEPTH)) * BT) / BT;
	check_all(c);
	compute(c, MIN(c->n + roll(e, 10), (size_t)DEPTH));
}

/* An answer of its own, or the place of the one that it came from. */
static void split(struct engine *e, struct conversation *c)
{
	struct conversation *other = &e->c[roll(e, SEQS)];
	struct kvpool_seq *copy;
	int err;

	if (other == c)
		return;
	drop(other);
	err = kvpool_seq_fork(c->seq, &copy);
	assert(!err || err == -ENOSPC);
	if (err)
		return;
	*other = (struct conversation){ copy, c->chain, c->n };
	if (roll(e, 2))
		drop(c);
	check_all(other);
}

static void step(struct engine *e)
{
	struct conversation *c = &e->c[roll(e, SEQS)];

	if (!c->seq) {
		begin(e, c);
		return;
	}
	switch (roll(e, 10)) {
	case 0:
		begin(e, c);
		break;
	case 1:
		drop(c);
		break;
	case 2:
		split(e, c);
		break;
	case 3:
		c->n -= c->n ? roll(e, (uint32_t)c->n) : 0;
		assert(kvpool_seq_truncate(c->seq, c->n) == 0);
		break;
	case 4:
	case 5:
		store(e, c, roll(e, 3) ? 0 : KVPOOL_SWAP);
		break;
	default:
		compute(c, MIN(c->n + 1 + roll(e, 3), (size_t)DEPTH));
	}
	if (c->seq)
		check_all(c);
}

/* Until it is killed, or its standard output is closed to say that it is enough. */
static void run(const char *socket, uint64_t seed, int progress)
{
	static struct engine e;

	e.rng = seed;
	e.pool = pattern_connect(socket, "engine");
	e.ns = pattern_ns(e.pool, "engine", BLOCK);
	signal(SIGPIPE, SIG_IGN);
	do
		step(&e);
	while (write(progress, "", 1) == 1);
	for (unsigned int i = 0; i < SEQS; i++)
		drop(&e.c[i]);
	kvpool_ns_close(e.ns);
	kvpool_close(e.pool);
	_exit(0);
}

static struct child {
	pid_t pid;
	int progress; /* -1: none */
} c[ENGINES];

static void start(struct child *new, const char *socket, uint64_t seed)
{
	int p[2];

	assert(pipe(p) == 0);
	new->progress = p[0];
	new->pid = fork();
	assert(new->pid >= 0);
	if (!new->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The other one's, too: it has to see that nobody reads any more. */
		for (unsigned int i = 0; i < ENGINES; i++)
			close(c[i].progress);
		run(socket, seed, p[1]);
	}
	close(p[1]);
}

/* It has done n steps more. */
static void watch(const struct child *x, unsigned int n)
{
	char byte;

	while (n--)
		assert(read(x->progress, &byte, 1) == 1);
}

static void kill_one(struct child *x)
{
	int status;

	kill(x->pid, SIGKILL);
	assert(waitpid(x->pid, &status, 0) == x->pid);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* no assertion of its own */
	close(x->progress);
}

static void end_one(struct child *x)
{
	int status;

	close(x->progress);
	assert(waitpid(x->pid, &status, 0) == x->pid);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What is cached at the end is what it should be, by another program. */
static void check_cache(const struct daemon *d)
{
	struct kvpool *pool = pattern_connect(d->socket, "checker");
	struct kvpool_ns *ns = pattern_ns(pool, "engine", BLOCK);
	struct kvpool_lease *lease;
	size_t found = 0;

	assert(kvpool_lease_new(pool, DEPTH, &lease) == 0);
	for (uint64_t c = 0; c < CHAINS; c++)
		found += pattern_acquire(ns, lease, c, DEPTH);
	printf("%zu blocks of %u conversations are cached\n", found, CHAINS);
	kvpool_lease_free(lease);
	kvpool_ns_close(ns);
	kvpool_close(pool);
}

int main(int argc, char **argv)
{
	/* A tight pool: it evicts, and an engine is stopped by its quota now and then. */
	static const char *const args[] = { "--pool-size", "12M", "--limits.client_unnamed_max",
					    "512K", NULL };
	unsigned int kills = argc > 1 ? (unsigned int)atoi(argv[1]) : 24;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	const Kvpool__StatusReply *s;
	struct daemon d;

	assert(daemon_start(&d, args) == 0);
	for (unsigned int i = 0; i < ENGINES; i++)
		c[i].progress = -1;
	for (unsigned int i = 0; i < ENGINES; i++)
		start(&c[i], d.socket, seed + i);
	for (unsigned int i = 0; i < kills; i++) {
		struct child *victim = &c[mix64(seed + i) % ENGINES];

		watch(victim, 20 + (unsigned int)(mix64(seed ^ i) % 150));
		kill_one(victim);
		start(victim, d.socket, seed + 100 + i);
	}
	for (unsigned int i = 0; i < ENGINES; i++)
		watch(&c[i], 300);
	s = admin_status(&d);
	assert(s->clients == ENGINES && s->unnamed_bytes <= s->writing_bytes);
	admin_check_sums(s);
	for (unsigned int i = 0; i < ENGINES; i++)
		end_one(&c[i]);
	admin_wait_quiet(&d, 0);
	s = admin_status(&d);
	printf("seed %llu: %llu published, %llu duplicate, %llu evicted, %llu full (%llu by "
	       "quota), "
	       "%llu quarantined\n",
	       (unsigned long long)seed, (unsigned long long)s->published_blocks,
	       (unsigned long long)s->duplicate_blocks, (unsigned long long)s->evicted_blocks,
	       (unsigned long long)s->full_blocks, (unsigned long long)s->quota_blocks,
	       (unsigned long long)s->quarantined_blocks);
	fflush(stdout);
	assert(!s->unnamed_bytes && !s->writing_bytes && !s->leased_bytes);
	/* A run in which nothing of this happens tests nothing. */
	assert(s->published_blocks && s->duplicate_blocks && s->evicted_blocks && s->quota_blocks &&
	       s->quarantined_blocks && s->ended_crash == kills);
	admin_check_sums(s);
	check_cache(&d);
	assert(daemon_end(&d) == 0);
	return 0;
}
