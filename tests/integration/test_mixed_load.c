/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon and 2 to 16 client processes that read, publish, wait and give up at the same time, with
 *far more blocks than the pool has room for. The reference is what can be known without a lock:
 *nothing is found that nobody began to publish; what is found is right to the last byte, and stays
 *so while it is held; what is held is found again.
 *
 *	test_mixed_load CLIENTS SECONDS
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "tests/integration/admin.h"
#include "tests/integration/pattern.h"

#define CHAINS      96u /* that are published; those from here on never are */
#define DEPTH       24u
#define BLOCK       12000u
#define HELD        4u
#define CLIENTS_MAX 16u

/* The reference: how deep somebody began to publish each chain. Shared by all processes. */
struct reference {
	uint32_t begun[CHAINS];
	uint64_t hits, published, lookups;
};

struct client {
	struct reference *ref;
	struct kvpool *pool;
	struct kvpool_ns *ns;
	struct kvpool_lease *held[HELD], *probe;
	uint64_t held_chain[HELD];
	uint64_t random;
};

static uint32_t below(struct client *c, uint32_t n)
{
	c->random += 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mix64(c->random) >> 32) % n;
}

/* Some chains are asked for much more often than others. */
static uint64_t some_chain(struct client *c)
{
	return below(c, below(c, 4) ? 12 : CHAINS);
}

static void begin(struct client *c, uint64_t chain, uint32_t depth)
{
	uint32_t *b = &c->ref->begun[chain], old = load_acquire(b);

	while (old < depth && !cas_acq_rel(b, &old, depth))
		;
}

static void check_held(struct client *c, unsigned int i)
{
	size_t n = kvpool_lease_blocks(c->held[i]);

	for (size_t b = 0; b < n; b++)
		assert(pattern_check(c->held_chain[i], b, kvpool_lease_block(c->held[i], b),
				     BLOCK));
}

static void read_chain(struct client *c)
{
	unsigned int i = below(c, HELD);
	uint64_t chain = some_chain(c);
	size_t found, again;

	check_held(c, i);
	found = pattern_acquire(c->ns, c->held[i], chain, 1 + below(c, DEPTH));
	c->held_chain[i] = chain;
	add_relaxed(&c->ref->lookups, 1);
	add_relaxed(&c->ref->hits, found != 0);
	assert(found <= load_acquire(&c->ref->begun[chain]));
	again = found ? pattern_acquire(c->ns, c->probe, chain, found) : 0;
	assert(again == found);
	kvpool_release(c->probe);
}

static void publish_chain(struct client *c)
{
	uint64_t chain = some_chain(c);
	uint32_t depth = 1 + below(c, DEPTH);
	int r;

	begin(c, chain, depth);
	r = pattern_publish(c->ns, chain, depth);
	assert(r >= 0 || r == -ENOSPC);
	add_relaxed(&c->ref->published, r > 0 ? (uint64_t)r : 0);
}

/* Reserves, writes something else than the block, and gives it back: nobody may ever see that. */
static void give_up(struct client *c)
{
	int32_t tokens[DEPTH * PATTERN_BLOCK_TOKENS + 1];
	struct kvpool_write *w;
	uint64_t chain = some_chain(c);

	pattern_tokens(chain, DEPTH, tokens);
	if (kvpool_reserve(c->ns, tokens, DEPTH * PATTERN_BLOCK_TOKENS, 0, &w) < 0)
		return;
	for (size_t i = 0; i < kvpool_write_blocks(w); i++)
		if (kvpool_write_block(w, i))
			memset(kvpool_write_block(w, i), 0xee, BLOCK);
	kvpool_write_free(w);
}

static void wait_chain(struct client *c)
{
	int32_t tokens[DEPTH * PATTERN_BLOCK_TOKENS + 1];
	long r;

	pattern_tokens(some_chain(c), DEPTH, tokens);
	r = kvpool_wait(c->ns, tokens, DEPTH * PATTERN_BLOCK_TOKENS, 0, 20);
	assert(r >= 0 || r == -ETIMEDOUT);
}

static void miss_chain(struct client *c)
{
	assert(pattern_acquire(c->ns, c->probe, CHAINS + below(c, 1000), DEPTH) == 0);
}

static void step(struct client *c)
{
	uint32_t what = below(c, 100);

	if (what < 60)
		read_chain(c);
	else if (what < 90)
		publish_chain(c);
	else if (what < 94)
		give_up(c);
	else if (what < 96)
		wait_chain(c);
	else
		miss_chain(c);
}

static void run_client(const struct daemon *d, struct reference *ref, unsigned int number,
		       unsigned int seconds)
{
	struct client c = { .ref = ref, .random = number * 7919 };
	time_t end = time(NULL) + seconds;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	c.pool = pattern_connect(d->socket, "mixed");
	c.ns = pattern_ns(c.pool, "mixed", BLOCK);
	for (unsigned int i = 0; i < HELD; i++)
		assert(kvpool_lease_new(c.pool, DEPTH, &c.held[i]) == 0);
	assert(kvpool_lease_new(c.pool, DEPTH, &c.probe) == 0);
	while (time(NULL) < end)
		for (unsigned int i = 0; i < 50; i++)
			step(&c);
	for (unsigned int i = 0; i < HELD; i++) {
		check_held(&c, i);
		kvpool_lease_free(c.held[i]);
	}
	kvpool_lease_free(c.probe);
	kvpool_ns_close(c.ns);
	kvpool_close(c.pool);
	exit(0);
}

int main(int argc, char **argv)
{
	/* Room for about a quarter of all blocks. */
	static const char *const args[] = { "--pool-size", "8M", NULL };
	unsigned int clients = argc > 1 ? (unsigned int)atoi(argv[1]) : 4;
	unsigned int seconds = argc > 2 ? (unsigned int)atoi(argv[2]) : 5;
	struct reference *ref =
		mmap(NULL, sizeof(*ref), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[CLIENTS_MAX];
	struct daemon d;
	int status, bad = 0;

	assert(ref != MAP_FAILED && clients <= CLIENTS_MAX && daemon_start(&d, args) == 0);
	for (unsigned int i = 0; i < clients; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			run_client(&d, ref, i + 1, seconds);
	}
	for (unsigned int i = 0; i < clients; i++)
		if (waitpid(pid[i], &status, 0) < 0 || status)
			bad++;
	printf("%u clients, %u s: %llu lookups, %llu hits, %llu blocks published\n", clients,
	       seconds, (unsigned long long)ref->lookups, (unsigned long long)ref->hits,
	       (unsigned long long)ref->published);
	admin_wait_quiet(&d, 0);
	/* The load was what it was meant to be. */
	assert(ref->hits && ref->published && admin_status(&d)->evicted_blocks);
	assert(!bad);
	assert(daemon_end(&d) == 0);
	return 0;
}
